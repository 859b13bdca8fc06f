"""Waiting for what happens in other threads and processes."""

from __future__ import annotations

import time
from collections.abc import Callable

HANG_SECONDS = 60.0
"""Time after which a wait is taken for a hang. It bounds a failure and says nothing about speed:
a busy machine may need several seconds for what takes milliseconds on an idle one."""


def eventually(condition: Callable[..., object], seconds: float = HANG_SECONDS) -> None:
    """Wait until a condition holds; fail if it does not within `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"still not so after {seconds:g} seconds"
        time.sleep(0.02)
