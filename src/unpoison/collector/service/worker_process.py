"""A child process for long computations, which can be ended at any moment."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, TypeVar

from unpoison.errors import UnpoisonError

NICENESS = 10
"""Added to the child's niceness: a device gives up waiting for its answer, an estimate can wait."""
CONTEXT = multiprocessing.get_context("spawn")
"""How the child starts: not by a fork, which would copy locks that other threads hold just then."""
Result = TypeVar("Result")


class WorkerEnded(UnpoisonError):
    """The child ended before it returned a result."""


class WorkerProcess:
    """A child process that runs functions one after another until it is ended.

    `ProcessPoolExecutor` has no public way to end a busy child before Python 3.14.

    >>> worker = WorkerProcess()
    >>> worker.run(divmod, 7, 2)
    (3, 1)
    >>> worker.end()
    >>> worker.run(divmod, 7, 2)
    Traceback (most recent call last):
        ...
    unpoison.collector.service.worker_process.WorkerEnded: the worker process has ended
    """

    def __init__(self) -> None:
        self.connection, child_end = CONTEXT.Pipe()
        self.process = CONTEXT.Process(target=_serve, args=(child_end,), daemon=True)
        self.process.start()
        # The child holds the only copy of its end, so that its death ends `recv` here.
        child_end.close()

    def run(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """Run a function in the child; blocks until it returns, raises, or the child ends."""
        try:
            self.connection.send((function, arguments))
            result, fault = self.connection.recv()
        except (EOFError, OSError):
            raise WorkerEnded("the worker process has ended") from None
        if fault is not None:
            raise fault
        return result  # type: ignore[no-any-return]

    def end(self) -> None:
        """End the child at once; `run` raises WorkerEnded if it is waiting in another thread."""
        self.process.terminate()
        self.process.join()


def _serve(connection: Connection) -> None:
    """The child's loop: receive a function, run it, send what it returned or raised."""
    # Ctrl-C reaches all processes of a terminal; the server then ends its child itself.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    # A thread, because while a function runs nobody else would notice that the server was killed.
    threading.Thread(target=_end_with_parent, daemon=True).start()
    while True:
        try:
            function, arguments = connection.recv()
        except EOFError:
            return
        try:
            connection.send((function(*arguments), None))
        except Exception as fault:
            connection.send((None, fault))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
