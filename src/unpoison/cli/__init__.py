"""The command line: parse, call, print. Exit code 2 and one line for whatever the user can mend."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from unpoison.cli.app import app
from unpoison.cli.bench import bench
from unpoison.cli.estimate import estimate
from unpoison.cli.perturb import perturb
from unpoison.cli.plan import plan
from unpoison.cli.simulate import simulate
from unpoison.cli.summarise import merge, summarise
from unpoison.errors import UnpoisonError

BAD_INPUT = 2
INTERRUPTED = 130

for command in (plan, perturb, summarise, merge, estimate, simulate, bench):
    app.command()(command)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command and leave with its exit code."""
    sys.exit(run(arguments))


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code."""
    try:
        code = app(args=arguments, prog_name="unpoison", standalone_mode=False)
    except UnpoisonError as fault:
        return _complain(str(fault), BAD_INPUT)
    except (KeyboardInterrupt, EOFError):
        return _complain("interrupted", INTERRUPTED)
    except BrokenPipeError:
        sys.stderr.close()
        return 0
    except OSError as fault:
        return _complain(f"{fault.filename or 'file'}: {fault.strerror or fault}", BAD_INPUT)
    except Exception as fault:
        if not hasattr(fault, "format_message"):
            raise
        return _complain(f"{fault.format_message()} (see --help)", BAD_INPUT)
    return code if isinstance(code, int) else 0


def _complain(message: str, code: int) -> int:
    line = " ".join(message.split())
    sys.stderr.write(f"unpoison: {line}\n")
    return code
