"""A population as a histogram: distinct values, and how many users have each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unpoison.errors import InvalidParameter
from unpoison.types import IntArray

QUANTA = 2**12


@dataclass(frozen=True, eq=False)
class Population:
    """Users who are known by their values alone; as many as one likes.

    >>> crowd = Population(np.array([0.25, 0.75]), np.array([10**8, 10**8]))
    >>> crowd.users
    200000000
    """

    values: NDArray[Any]
    numbers: IntArray

    def __post_init__(self) -> None:
        if self.values.shape != self.numbers.shape or self.values.ndim != 1:
            raise InvalidParameter("numbers", "must be one a value", self.numbers.shape)
        if (self.numbers < 0).any() or not self.numbers.any():
            raise InvalidParameter("numbers", "must be counts, not all 0", "others")

    @classmethod
    def of(cls, values: Any, quanta: int = QUANTA) -> Population:
        """Users by their own values; numbers that are too many to count are put into buckets.

        All users of a bucket get its mean, so the mean of all stays as it is, and no value moves by
        more than a bucket: 1/4096 of the range.

        >>> crowd = Population.of([1.0, 2.0, 2.0, 9.0])
        >>> crowd.values.tolist(), crowd.numbers.tolist()
        ([1.0, 2.0, 9.0], [1, 2, 1])
        """
        column = np.asarray(values)
        distinct, numbers = np.unique(column, return_counts=True)
        if len(distinct) <= quanta or column.dtype.kind not in "iuf":
            return cls(distinct, numbers)
        low, high = float(distinct[0]), float(distinct[-1])
        places = ((column - low) * (quanta / (high - low))).astype(np.int64)
        np.minimum(places, quanta - 1, out=places)
        numbers = np.bincount(places, minlength=quanta)
        sums = np.bincount(places, weights=column, minlength=quanta)
        used = numbers > 0
        means = np.clip(sums[used] / numbers[used], low, high)
        return cls(means, numbers[used])

    @property
    def users(self) -> int:
        """How many there are."""
        return int(self.numbers.sum())

    def resampled(self, users: int, rng: np.random.Generator) -> Population:
        """So many users, each drawn from this population."""
        drawn = rng.multinomial(users, self.numbers / self.numbers.sum())
        return Population(self.values, drawn)
