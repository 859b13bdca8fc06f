"""Script that forks collectors on request, run by `support.forked_collectors`.

It imports the collector once, then reads one JSON command a line and answers each with one line:
`{"folder": …, "environment": …}` forks `unpoison serve` there and gives its `pid`, `{"read_line":
pid}` gives the next line of its standard output, and `{"wait": pid}` waits for its end and gives
its exit code.
"""

from __future__ import annotations

import gc
import json
import os
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
from tempfile import TemporaryDirectory
from typing import Any, TextIO

outputs: dict[int, TextIO] = {}
"""The standard output of each child, by its process id."""


def main() -> None:
    from unpoison.cli import main as unpoison

    prepare()
    for line in sys.stdin:
        sys.stdout.write(json.dumps(_answer(json.loads(line), unpoison)) + "\n")
        sys.stdout.flush()


def prepare() -> None:
    """Import what a collector needs, and do once what every start does, so that no child has to."""
    from unpoison.cli import run
    from unpoison.collector import server

    assert server is not None
    with TemporaryDirectory() as folder, redirect_stdout(StringIO()):
        # A command that makes a database: this imports and compiles most of what a start does.
        assert run(["serve", "--new-token", "--database", f"{folder}/reports.db"]) == 0
    # Children's collectors of garbage need not look at, and so copy, what is here already.
    gc.collect()
    gc.freeze()


def _answer(command: dict[str, Any], unpoison: Callable[[], None]) -> dict[str, Any]:
    if "wait" in command:
        _, status = os.waitpid(command["wait"], 0)
        outputs.pop(command["wait"]).close()
        return {"code": os.waitstatus_to_exitcode(status)}
    if "read_line" in command:
        return {"line": outputs[command["read_line"]].readline()}
    return {"pid": _fork(command["folder"], command["environment"], unpoison)}


def _fork(folder: str, environment: dict[str, str], unpoison: Callable[[], None]) -> int:
    """Fork a collector whose standard output is kept in `outputs`."""
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.dup2(theirs, sys.stdout.fileno())
        os.close(ours)
        os.chdir(folder)
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
    outputs[pid] = open(ours)  # noqa: SIM115 - open for as long as the child lives
    return pid


if __name__ == "__main__":
    main()
