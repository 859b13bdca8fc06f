"""Waiting for what happens in other threads and processes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

HANG_SECONDS = 60.0
"""Time after which a wait is taken for a hang. It bounds a failure and says nothing about speed:
a busy machine may need several seconds for what takes milliseconds on an idle one."""


def eventually(condition: Callable[..., object], seconds: float = HANG_SECONDS) -> None:
    """Wait until a condition holds; fail if it does not within `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"still not so after {seconds:g} seconds"
        time.sleep(0.02)


class Repetition:
    """Work that is done over and over again in a thread."""

    def __init__(self, work: Callable[[], None], thread: ThreadPoolExecutor) -> None:
        self.work, self.turns, self.ended = work, 0, threading.Event()
        self.running = thread.submit(self._run)

    def _run(self) -> None:
        while not self.ended.is_set():
            self.work()
            self.turns += 1

    def wait_for_a_turn(self) -> None:
        """Wait until the work was begun and ended once more."""
        # The first turn to end may have begun before this call.
        target = self.turns + 2
        eventually(lambda: self.running.done() or self.turns >= target)


@contextmanager
def meanwhile(work: Callable[[], None]) -> Iterator[Repetition]:
    """Repeat some work during the block."""
    with ThreadPoolExecutor(1) as thread:
        repetition = Repetition(work, thread)
        try:
            yield repetition
        finally:
            repetition.ended.set()
        repetition.running.result()
