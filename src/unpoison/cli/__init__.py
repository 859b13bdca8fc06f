"""The command line: parse, call, print; errors of the user end with code 2 and one line."""

from __future__ import annotations

import io
import os
import signal
import sys
import warnings
from collections.abc import Sequence
from copy import copy
from functools import cache
from typing import TYPE_CHECKING

from typer import Abort
from typer.main import get_command

from unpoison.cli.app import app
from unpoison.cli.bench import bench
from unpoison.cli.campaign import campaign
from unpoison.cli.campaign_alarms import alarms
from unpoison.cli.estimate import estimate
from unpoison.cli.help_names import CommandWithNames
from unpoison.cli.issuer import issuer
from unpoison.cli.perturb import perturb
from unpoison.cli.plan import plan
from unpoison.cli.report import report
from unpoison.cli.reproduce import reproduce
from unpoison.cli.serve import serve
from unpoison.cli.simulate import simulate
from unpoison.cli.summarise import merge, summarise
from unpoison.cli.watch import watch
from unpoison.errors import ConvergenceWarning, UnpoisonError

if TYPE_CHECKING:
    from unpoison.cli.click_types import Command

BAD_INPUT = 2
"""The exit code that shells and argparse use for wrong usage."""
INTERRUPTED = 130
"""128 and the number of SIGINT, as shells report it."""
TERMINATED = 143
"""128 and the number of SIGTERM."""

# In the order in which `unpoison --help` lists them: along the path of a value, then the tools.
for command in (plan, perturb, summarise, merge, estimate, watch, simulate, reproduce, serve):
    app.command(cls=CommandWithNames)(command)
campaign.command()(alarms)
app.add_typer(campaign)
app.add_typer(issuer)
app.command(cls=CommandWithNames)(report)
app.command(cls=CommandWithNames)(bench)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command as a process of its own, and leave with its exit code."""
    # As an exception, so that half-written files are removed and child processes are ended.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))
    # Python has no stdout if the descriptor was closed (`>&-`).
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    # A terminal whose encoding has no ε gets a question mark rather than a traceback.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    sys.exit(run(arguments))


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code. Without any argument it shows the help."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    with warnings.catch_warnings():
        # Shown also where Python runs with -W ignore: a result that did not converge needs it.
        warnings.simplefilter("default", ConvergenceWarning)
        warnings.showwarning = _print_warning
        return _exit_code(words or ["--help"])


@cache
def _parser(first_word: str) -> Command:
    """The parser of the command that the first word names, else of all commands.

    To inspect the signatures of all commands takes as long as to import typer.
    """
    named = copy(app)
    named.registered_commands = [
        command
        for command in app.registered_commands
        if command.callback is not None and command.callback.__name__ == first_word
    ]
    named.registered_groups = [
        group
        for group in app.registered_groups
        if group.typer_instance is not None and group.typer_instance.info.name == first_word
    ]
    is_command = named.registered_commands or named.registered_groups
    return get_command(named if is_command else app)


def _exit_code(arguments: list[str]) -> int:
    """Run a command, and report what went wrong in one line."""
    try:
        code = _parser(arguments[0])(args=arguments, prog_name="unpoison", standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:
        return _discard_output()
    except (KeyboardInterrupt, EOFError, Abort):
        code = INTERRUPTED
    except Exception as fault:
        message = _user_message(fault)
        if message is None:
            raise
        return _print_error(message)
    if code == INTERRUPTED:
        _print_error("interrupted")
    return code if isinstance(code, int) else 0


def _user_message(fault: Exception) -> str | None:
    """The message of an error that the user can correct; None for a bug: it shows a traceback."""
    if isinstance(fault, UnpoisonError):
        return str(fault)
    if isinstance(fault, OSError):
        return f"{fault.filename or 'output'}: {fault.strerror or fault}"
    if isinstance(fault, MemoryError):
        return f"not enough memory: {fault or 'use fewer users, groups or cells'}"
    # Typer's own errors: its classes are not all public, but all have this method.
    if hasattr(fault, "format_message"):
        return f"{fault.format_message().rstrip('.')} (see --help)"
    return None


def _print_error(message: str) -> int:
    """Print one line, in which no text of a file can move the cursor or look like another line."""
    line = " ".join(message.split())
    line = "".join(character if character.isprintable() else "?" for character in line)
    sys.stderr.write(f"unpoison: {line}\n")
    return BAD_INPUT


def _print_warning(message: Warning | str, *_: object, **__: object) -> None:
    _print_error(f"warning: {message}")


def _discard_output() -> int:
    """Send the rest of the output nowhere, because its reader has gone (`| head`): no failure.

    Else Python would try to flush it at exit, and print another error.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0
