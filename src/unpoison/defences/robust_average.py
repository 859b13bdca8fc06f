"""Robust averages of counted values, and defences that keep the reports with inlying values."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from unpoison.defences.base import SelectingDefence, decoded_cells
from unpoison.errors import NotEnoughData
from unpoison.summary import Summary
from unpoison.types import BoolArray, FloatArray


class RobustAverage(ABC):
    """An average of counted values, `counts[i]` times `values[i]`, that withstands outliers.

    >>> class Middle(RobustAverage):
    ...     def average(self, values, counts):
    ...         return float((values.min() + values.max()) / 2)
    >>> Middle().average(np.array([0.0, 1.0]), np.array([5.0, 1.0]))
    0.5
    """

    @abstractmethod
    def average(self, values: FloatArray, counts: FloatArray) -> float:
        """The average of the values; their order does not matter."""

    def __post_init__(self) -> None:  # noqa: B027
        """Check the parameters; here, so that dataclasses that share this base may call it."""


class InlierAverage(RobustAverage):
    """The average of the values that are no outliers; a subclass says which by `inliers`.

    >>> class Positive(InlierAverage):
    ...     def inliers(self, values, counts):
    ...         return values > 0
    >>> Positive().average(np.array([-9.0, 1.0, 3.0]), np.array([7.0, 1.0, 1.0]))
    2.0
    """

    @abstractmethod
    def inliers(self, values: FloatArray, counts: FloatArray) -> BoolArray:
        """Which values are no outliers."""

    def average(self, values: FloatArray, counts: FloatArray) -> float:
        """The average of the inliers."""
        return float(np.average(values, weights=self.inlier_counts(values, counts)))

    def inlier_counts(self, values: FloatArray, counts: FloatArray) -> FloatArray:
        """The counts of inliers, and 0 for outliers.

        If all values were outliers, none would stand out from the others: then all are kept.
        """
        if not counts.any():
            raise NotEnoughData("a report must be there to judge; received none")
        inlying: FloatArray = np.where(self.inliers(values, counts), counts, 0.0)
        return inlying if inlying.any() else counts


class InlierDefence(InlierAverage, SelectingDefence):
    """Keeps the reports whose decoded values are inliers among those of all groups.

    >>> from unpoison import Plan, simulate
    >>> class Small(InlierDefence):
    ...     def inliers(self, values, counts):
    ...         return abs(values) < 1
    ...     def describe(self):
    ...         return "The average of small reports."
    >>> plan = Plan.new(epsilon=0.5, low=0, high=1)
    >>> run = simulate(plan, np.full(4000, 0.5), rng=np.random.default_rng(1))
    >>> bool(0 < Small().kept_counts(run.summary).sum() < run.summary.counts.sum())
    True
    """

    def kept_counts(self, summary: Summary) -> FloatArray:
        """The reports in cells whose decoded values are inliers."""
        counts = summary.counts.astype(np.float64)
        kept = self.inlier_counts(decoded_cells(summary).ravel(), counts.ravel())
        return kept.reshape(counts.shape)
