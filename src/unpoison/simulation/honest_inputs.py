"""Honest users' normalised inputs, with how many users have each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unpoison.types import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class HonestInputs:
    """Honest users' normalised inputs, and how many users have each (one, if `numbers` is None).

    >>> HonestInputs(np.array([0.0, 1.0]), np.array([3, 1])).mean_of(np.array([0.0, 4.0]))
    1.0
    """

    values: FloatArray
    numbers: IntArray | None = None

    def mean_of(self, quantity: FloatArray) -> float:
        """The average over users of a quantity that is given for every input."""
        return float(np.average(quantity, weights=self.numbers))

    @property
    def variance(self) -> float:
        """S², the variance of the inputs over users."""
        return self.mean_of((self.values - self.mean_of(self.values)) ** 2)

    def histogram(self, edges: FloatArray) -> FloatArray:
        """The fraction of users in each bucket."""
        counts = np.histogram(self.values, edges, weights=self.numbers)[0]
        return np.asarray(counts / counts.sum())
