"""Defences that look at the decoded values of reports, and at how many reports have each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from unpoison.defences.base import Keeping, decoded_cells, defences
from unpoison.errors import InvalidParameter, NotEnoughData
from unpoison.summary import Summary
from unpoison.types import BoolArray, FloatArray, IntArray


class Averaging(ABC):
    """Any robust average of values of which `counts[i]` are `values[i]`.

    >>> class Middle(Averaging):
    ...     def average(self, values, counts):
    ...         return float((values.min() + values.max()) / 2)
    >>> Middle().average(np.array([0.0, 1.0]), np.array([5.0, 1.0]))
    0.5
    """

    @abstractmethod
    def average(self, values: FloatArray, counts: FloatArray) -> float:
        """The average."""

    def __post_init__(self) -> None:  # noqa: B027
        """Check the parameters, if there are any."""


class Judging(Averaging):
    """An average that leaves some values out: `trusted` is all it must give.

    >>> class Positive(Judging):
    ...     def trusted(self, values, counts):
    ...         return values > 0
    >>> Positive().average(np.array([-9.0, 1.0, 3.0]), np.array([7.0, 1.0, 1.0]))
    2.0
    """

    @abstractmethod
    def trusted(self, values: FloatArray, counts: FloatArray) -> BoolArray:
        """Which values are trusted."""

    def average(self, values: FloatArray, counts: FloatArray) -> float:
        """The average of those that are."""
        return float(np.average(values, weights=self.kept_of(values, counts)))

    def kept_of(self, values: FloatArray, counts: FloatArray) -> FloatArray:
        """The counts of those that are, and 0 for the others.

        Where no value would be left, none stands out from the others, and all are kept.
        """
        if not counts.any():
            raise NotEnoughData("a report must be there to judge; received none")
        kept: FloatArray = np.where(self.trusted(values, counts), counts, 0.0)
        return kept if kept.any() else counts


class KeepingByValue(Judging, Keeping):
    """Keeps the reports of all groups whose decoded values are trusted.

    >>> from unpoison import Plan, simulate
    >>> class Small(KeepingByValue):
    ...     def trusted(self, values, counts):
    ...         return abs(values) < 1
    ...     def describe(self):
    ...         return "The average of small reports."
    >>> run = simulate(Plan.new(epsilon=0.5, low=0, high=1), np.full(4000, 0.5))
    >>> bool(0 < Small().kept(run.summary).sum() < run.summary.counts.sum())
    True
    """

    def kept(self, summary: Summary) -> FloatArray:
        """Those of trusted cells."""
        counts = summary.counts.astype(np.float64)
        kept = self.kept_of(decoded_cells(summary).ravel(), counts.ravel())
        return kept.reshape(counts.shape)

    def frequencies(self, summary: Summary) -> FloatArray:
        """Categories have no values."""
        name = next((name for name in defences if defences[name] is type(self)), "this defence")
        raise InvalidParameter("method", "must be one that takes categories", repr(name))


@dataclass(frozen=True)
class Coarse:
    """Values in buckets of equal width: the mean and the count of each, and where each value is.

    The mean of all values stays exact; their variance loses at most a quarter of a squared width.

    >>> coarse = Coarse.of(np.array([0.0, 1.0, 9.0, 10.0]), np.array([1.0, 3.0, 1.0, 1.0]), 2)
    >>> coarse.values.tolist(), coarse.counts.tolist(), coarse.places.tolist()
    ([0.75, 9.5], [4.0, 2.0], [0, 0, 1, 1])
    """

    values: FloatArray
    counts: FloatArray
    places: IntArray

    @classmethod
    def of(cls, values: FloatArray, counts: FloatArray, buckets: int) -> Coarse:
        """At most that many buckets; those without a report are left out of `values`."""
        present = values[counts > 0]
        low, width = present.min(), np.ptp(present)
        shares = np.clip((values - low) / (width or 1.0), 0.0, 1.0)
        raw = np.minimum((shares * buckets).astype(np.int64), buckets - 1)
        totals: FloatArray = np.bincount(raw, counts, buckets).astype(np.float64)
        filled = np.flatnonzero(totals)
        means = np.bincount(raw, counts * values, buckets)[filled] / totals[filled]
        # A value in a bucket without reports has no count either: any place will do.
        places = np.minimum(np.searchsorted(filled, raw), len(filled) - 1)
        return cls(means, totals[filled], places)


def whole_counts(counts: FloatArray) -> IntArray:
    """Whole numbers near the counts, with their total rounded: none is off by 1 or more.

    >>> whole_counts(np.array([0.5, 0.5, 1.0, 2.0])).tolist()
    [0, 1, 1, 2]
    """
    whole: IntArray = np.rint(np.cumsum(counts)).astype(np.int64)
    whole[1:] -= whole[:-1].copy()
    return whole
