"""A signal between the processes of one server: something that they may have cached has changed."""

from __future__ import annotations

import mmap
import os

SIGNAL_BYTES = 8
"""Of a random mark: two in a row are never the same."""


class ChangeSignal:
    """A random mark in memory that is shared with processes forked later.

    Each change replaces it. A counter would need a lock: two processes that add one to it at the
    same moment could leave what a third has seen already.

    >>> signal = ChangeSignal()
    >>> before = signal.mark()
    >>> signal.change()
    >>> signal.mark() == before
    False
    """

    def __init__(self) -> None:
        self.memory = mmap.mmap(-1, SIGNAL_BYTES)

    def mark(self) -> bytes:
        """The present mark, which is another after each change."""
        return self.memory[:SIGNAL_BYTES]

    def change(self) -> None:
        """Tell all processes that something has changed."""
        self.memory[:SIGNAL_BYTES] = os.urandom(SIGNAL_BYTES)
