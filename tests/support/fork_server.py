"""Script that forks collectors on request, run by `support.forked_collectors`.

It imports the collector once, then reads one JSON command a line and answers each with one line:
`{"folder": …, "environment": …}` forks `unpoison serve` there and gives its `pid`, `{"read_line":
pid}` gives the next line of its standard output, and `{"wait": pid}` waits for its end and gives
its exit code.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any, TextIO

outputs: dict[int, TextIO] = {}
"""The standard output of each child, by its process id."""


def main() -> None:
    from unpoison.cli import main as unpoison
    from unpoison.collector import server

    assert server is not None, "imported so that no child has to"
    for line in sys.stdin:
        sys.stdout.write(json.dumps(_answer(json.loads(line), unpoison)) + "\n")
        sys.stdout.flush()


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
