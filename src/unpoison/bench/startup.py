"""Processor time to start: the package, the command line and the collector."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.request import urlopen

from unpoison.bench.result import Result, benchmarks, duration
from unpoison.errors import InvalidParameter, MissingExtra

ROUNDS = 5
"""The best of so many starts counts; the first of them also compiles all modules."""
BARE = "a bare interpreter"
LIBRARIES = "import fastapi, uvicorn, sqlalchemy"
"""What a server has to load in any case."""
FIRST_START, LATER_START = "unpoison serve, first start", "unpoison serve, later start"
MOST_SECONDS = {"import unpoison": 0.5, "unpoison --help": 0.5, FIRST_START: 1.0, LATER_START: 1.0}
"""Seconds of processor time that are aimed at: a person notices half a second, and devices wait
while a server is restarted."""
MOST_OVER_LIBRARIES = 1.5
"""How many times the processor time of its libraries a server is to take at most."""


@benchmarks.register("startup", order=4)
def startup(rounds: int = ROUNDS) -> list[Result]:
    """Measure each start beside a bare interpreter, and a server beside its libraries too."""
    if find_spec("uvicorn") is None:
        raise MissingExtra("the benchmark of starts", "collector")
    with TemporaryDirectory() as bytecode:
        # Modules are compiled once, as in an installation, wherever this one may write.
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": bytecode}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        measured = [_start_all(environment) for _ in range(rounds)]
    return _results({name: min(times[name] for times in measured) for name in measured[0]})


def _start_all(environment: dict[str, str]) -> dict[str, float]:
    """The processor time of one start each; the server's first start makes its database."""
    with TemporaryDirectory() as folder:
        return {
            BARE: program_seconds(["-c", "pass"], environment),
            LIBRARIES: program_seconds(["-c", LIBRARIES], environment),
            "import unpoison": program_seconds(["-c", "import unpoison"], environment),
            "unpoison --help": program_seconds(["-m", "unpoison", "--help"], environment),
            FIRST_START: server_seconds(Path(folder), environment),
            LATER_START: server_seconds(Path(folder), environment),
        }


def _results(best: dict[str, float]) -> list[Result]:
    lines = [
        _line(f"{name}: CPU time, in bare interpreters", best[name], best[BARE], most)
        for name, most in MOST_SECONDS.items()
    ]
    later, libraries = best[LATER_START], best[LIBRARIES]
    ratio = later / libraries
    name = f"{LATER_START}: CPU time, in imports of its libraries"
    target, met = f"≤ {MOST_OVER_LIBRARIES:g}×", ratio <= MOST_OVER_LIBRARIES
    return [*lines, Result(name, duration(later), duration(libraries), ratio, target, met)]


def _line(name: str, ours: float, bare: float, most: float) -> Result:
    return Result(name, duration(ours), duration(bare), ours / bare, f"≤ {most:g} s", ours <= most)


def program_seconds(arguments: Sequence[str], environment: dict[str, str]) -> float:
    """Processor time of the Python interpreter from its start to its end.

    >>> program_seconds(["-c", "pass"], dict(os.environ)) > 0
    True
    """
    process = subprocess.Popen(
        [sys.executable, *arguments], env=environment, stdout=subprocess.DEVNULL
    )
    return _seconds_until_end(process, expected=0)


def server_seconds(folder: Path, environment: dict[str, str]) -> float:
    """Processor time of `unpoison serve` until it has answered a health check.

    >>> with TemporaryDirectory() as folder:
    ...     server_seconds(Path(folder), dict(os.environ)) > 0
    True
    """
    process = subprocess.Popen(
        [sys.executable, "-m", "unpoison", "serve", "--port", "0"],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with process:
        line = "" if process.stdout is None else process.stdout.readline()
        if line.startswith("Collector: "):
            urlopen(f"{line.split()[1]}/healthz").close()
        # Killed: an orderly end would be measured too.
        process.kill()
        if not line.startswith("Collector: "):
            raise InvalidParameter("unpoison serve", "must print its address", line)
        return _seconds_until_end(process)


def _seconds_until_end(
    process: subprocess.Popen[str] | subprocess.Popen[bytes], expected: int | None = None
) -> float:
    """Wait for a process that ends; returns the processor time that the system has counted."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if expected is not None and process.returncode != expected:
        raise InvalidParameter("program", f"must end with code {expected}", process.returncode)
    return usage.ru_utime + usage.ru_stime
