"""Sources of random bits: a seeded generator to simulate, the operating system's to report.

Every function that draws takes `rng`: a `numpy.random.Generator`, or a `SystemGenerator`, which
asks the operating system for every bit and is what a real device uses.
"""

from __future__ import annotations

import os
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from unpoison.types import FloatArray

Words = NDArray[np.uint64]


class SystemGenerator:
    """The operating system's generator, with the one method of NumPy's that we need.

    >>> bool(0 <= SystemGenerator().random(1)[0] < 1)
    True
    """

    def random(self, size: int) -> FloatArray:
        """Uniform floats in [0, 1) with 53 bits."""
        uniform: FloatArray = (self.words(size) >> np.uint64(11)) * np.float64(2.0**-53)
        return uniform

    def words(self, size: int) -> Words:
        """Draw uniform 64-bit words."""
        return np.frombuffer(os.urandom(8 * size), dtype=np.uint64)

    def spawn(self, count: int) -> list[SystemGenerator]:
        """A list of generators, which share the system's one source."""
        return [self] * count


Generator = np.random.Generator | SystemGenerator


class WordSource(Protocol):
    """Anything that gives the next `size` words of one stream."""

    def __call__(self, size: int) -> Words:
        """Return the next `size` words."""


def word_source(rng: Generator) -> WordSource:
    """The stream of 64-bit words behind a generator.

    >>> at_once = word_source(np.random.default_rng(1))(3)
    >>> one_by_one = word_source(np.random.default_rng(1))
    >>> [int(one_by_one(1)[0]) for _ in range(3)] == at_once.tolist()
    True
    """
    if isinstance(rng, SystemGenerator):
        return rng.words
    generator = rng

    def words(size: int) -> Words:
        return generator.integers(0, 2**64, size=(size,), dtype=np.uint64)

    return words
