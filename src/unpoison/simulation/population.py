"""A population as a histogram: distinct values, and how many users have each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unpoison.errors import InvalidParameter
from unpoison.types import IntArray

QUANTA = 2**12
"""The most distinct numbers that are kept as they are; drawing takes time for each."""


@dataclass(frozen=True, eq=False)
class Population:
    """Users who are known by their values alone: `numbers[i]` of them have `values[i]`.

    >>> population = Population(np.array([0.25, 0.75]), np.array([10**8, 10**8]))
    >>> population.users
    200000000
    """

    values: NDArray[Any]
    numbers: IntArray
    bucketed: bool = False
    """Whether values are means of buckets, which need not be values that a user could have."""

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

        >>> population = Population.of([1.0, 2.0, 2.0, 9.0])
        >>> population.values.tolist(), population.numbers.tolist()
        ([1.0, 2.0, 9.0], [1, 2, 1])
        """
        column = np.asarray(values)
        distinct, numbers = np.unique(column, return_counts=True)
        if len(distinct) <= quanta or column.dtype.kind not in "iuf":
            return cls(distinct, numbers)
        low, high = float(distinct[0]), float(distinct[-1])
        buckets = ((column - low) * (quanta / (high - low))).astype(np.int64)
        np.minimum(buckets, quanta - 1, out=buckets)
        numbers = np.bincount(buckets, minlength=quanta)
        sums = np.bincount(buckets, weights=column, minlength=quanta)
        filled = numbers > 0
        # Rounding may carry a mean of equal values just out of their range.
        means = np.clip(sums[filled] / numbers[filled], low, high)
        return cls(means, numbers[filled], bucketed=True)

    @property
    def users(self) -> int:
        """The number of users."""
        return int(self.numbers.sum())

    def resampled(self, users: int, rng: np.random.Generator) -> Population:
        """`users` users, each drawn from this population with replacement."""
        numbers = rng.multinomial(users, self.numbers / self.numbers.sum())
        return replace(self, numbers=numbers)
