"""Collectors that are quickly there, for tests that kill many of them.

What takes longest in a start are imports. A process that has done them once forks each collector,
which then is a process of its own: it runs `unpoison serve`, and can be killed.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from support.running_collectors import STARTUP_SECONDS, Face

BUSY = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
"""A process with threads cannot be forked safely."""
said_by: dict[int, TextIO] = {}
"""The standard output of each child."""


@dataclass
class Child(Face):
    """A collector that was forked."""

    pid: int
    nursery: Nursery

    def kill(self) -> None:
        """As a power cut would: no goodbye."""
        self.end(signal.SIGKILL)

    def end(self, sign: signal.Signals) -> int:
        """Send a signal and wait for the end; returns the exit code."""
        os.kill(self.pid, sign)
        return int(self.nursery.ask({"wait": self.pid})["code"])


class Nursery:
    """The process that forks; `with` ends it, and each of its children that is still there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.pids: set[int] = set()
        self.process = subprocess.Popen(
            [sys.executable, __file__],
            cwd=folder,
            env={**os.environ, **BUSY},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Nursery:
        return self

    def __exit__(self, *_: object) -> None:
        for pid in self.pids:
            os.kill(pid, signal.SIGKILL)
        self.process.communicate(timeout=STARTUP_SECONDS)

    def begin(self, database: str, token: str, **environment: str) -> Child:
        """A collector that has just begun to start."""
        own = {
            "UNPOISON_COLLECTOR_DATABASE": database,
            "UNPOISON_COLLECTOR_KEY_FILE": str(self.folder / "tickets.keys"),
            "UNPOISON_COLLECTOR_OPERATOR_TOKEN": token,
            "UNPOISON_COLLECTOR_PORT": "0",
            "UNPOISON_COLLECTOR_LOG_LEVEL": "error",
            **environment,
        }
        pid = int(self.ask({"environment": own})["pid"])
        self.pids.add(pid)
        return Child(0, token, pid, self)

    def spawn(self, database: str, token: str, **environment: str) -> Child:
        """A collector that listens."""
        child = self.begin(database, token, **environment)
        line = str(self.ask({"hear": child.pid})["line"])
        assert line.startswith("Collector: http://127.0.0.1:"), line
        child.port = int(line.split()[1].rpartition(":")[2])
        assert child.ask("GET", "/healthz").status == 200
        return child

    def ask(self, wish: dict[str, Any]) -> dict[str, Any]:
        """One line there, one line back."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(wish) + "\n")
        self.process.stdin.flush()
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        self.pids.discard(int(wish.get("wait", 0)))
        return answer


def main() -> None:
    """What the process does: import everything, then fork as often as it is told."""
    from unpoison.cli import main as unpoison
    from unpoison.collector import server

    assert server is not None
    for line in sys.stdin:
        sys.stdout.write(json.dumps(_done(json.loads(line), unpoison)) + "\n")
        sys.stdout.flush()


def _done(wish: dict[str, Any], unpoison: Any) -> dict[str, Any]:
    if "wait" in wish:
        _, status = os.waitpid(wish["wait"], 0)
        said_by.pop(wish["wait"]).close()
        return {"code": os.waitstatus_to_exitcode(status)}
    if "hear" in wish:
        return {"line": said_by[wish["hear"]].readline()}
    return {"pid": _forked(wish["environment"], unpoison)}


def _forked(environment: dict[str, str], unpoison: Any) -> int:
    """A child whose standard output comes to us."""
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.dup2(theirs, sys.stdout.fileno())
        os.close(ours)
        os.environ.update(environment)
        sys.argv = ["unpoison", "serve"]
        code = 0
        try:
            unpoison()
        except SystemExit as end:
            code = int(end.code or 0)
        finally:
            sys.stdout.flush()
            os._exit(code)
    os.close(theirs)
    said_by[pid] = open(ours)  # noqa: SIM115 - the child may go on to say things
    return pid


if __name__ == "__main__":
    main()
