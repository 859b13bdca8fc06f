"""The command line: parse, call, print. Exit code 2 and one line for whatever the user can mend."""

from __future__ import annotations

import io
import os
import signal
import sys
import warnings
from collections.abc import Sequence
from functools import cache
from typing import Any

from typer import Abort
from typer.main import get_command

from unpoison.cli.app import app
from unpoison.cli.bench import bench
from unpoison.cli.campaign import campaign
from unpoison.cli.estimate import estimate
from unpoison.cli.perturb import perturb
from unpoison.cli.plan import plan
from unpoison.cli.report import report
from unpoison.cli.reproduce import reproduce
from unpoison.cli.serve import serve
from unpoison.cli.simulate import simulate
from unpoison.cli.summarise import merge, summarise
from unpoison.errors import ConvergenceWarning, UnpoisonError

BAD_INPUT = 2
INTERRUPTED = 130
TERMINATED = 143

for command in (plan, perturb, summarise, merge, estimate, simulate, reproduce, serve):
    app.command()(command)
app.add_typer(campaign)
app.command()(report)
app.command()(bench)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command as a process of its own, and leave with its exit code."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    sys.exit(run(arguments))


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code. Without any argument it shows the help."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    with warnings.catch_warnings():
        warnings.simplefilter("default", ConvergenceWarning)
        warnings.showwarning = _warn
        return _guarded(given or ["--help"])


@cache
def _commands() -> Any:
    """All commands, built once."""
    return get_command(app)


def _guarded(arguments: list[str]) -> int:
    try:
        code = _commands()(args=arguments, prog_name="unpoison", standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:
        return _hushed()
    except (KeyboardInterrupt, EOFError, Abort):
        code = INTERRUPTED
    except Exception as fault:
        message = _message(fault)
        if message is None:
            raise
        return _complain(message)
    if code == INTERRUPTED:
        _complain("interrupted")
    return code if isinstance(code, int) else 0


def _message(fault: Exception) -> str | None:
    """What the user can mend; None if the fault is a bug, which is shown whole."""
    if isinstance(fault, UnpoisonError):
        return str(fault)
    if isinstance(fault, OSError):
        return f"{fault.filename or 'output'}: {fault.strerror or fault}"
    if isinstance(fault, MemoryError):
        return f"not enough memory: {fault or 'use fewer users, groups or cells'}"
    if hasattr(fault, "format_message"):
        return f"{fault.format_message().rstrip('.')} (see --help)"
    return None


def _complain(message: str) -> int:
    """One line, in which nothing from a file can move the cursor or pretend to be another line."""
    line = " ".join(message.split())
    line = "".join(letter if letter.isprintable() else "?" for letter in line)
    sys.stderr.write(f"unpoison: {line}\n")
    return BAD_INPUT


def _warn(message: Warning | str, *_: Any, **__: Any) -> None:
    _complain(f"warning: {message}")


def _hushed() -> int:
    """Whoever read our output has gone (`| head`): what is left of it goes nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0
