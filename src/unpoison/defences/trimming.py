"""Trimming defence: drop the most extreme half of the reports, average the others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unpoison.defences.base import SelectingDefence, decoded_cells, defences
from unpoison.errors import InvalidParameter, NotEnoughData
from unpoison.filters.sides import SIDES, without_extremes
from unpoison.registry import check_name
from unpoison.summary import Summary
from unpoison.types import FloatArray


@defences.register("trimming", order=2)
@dataclass(frozen=True)
class Trimming(SelectingDefence):
    """Removes the `share` largest (side right) or smallest (left) reports; it is told the side.

    >>> from unpoison import Plan, simulate
    >>> plan = Plan.new(epsilon=1.0, min_epsilon=1.0, low=0, high=1)
    >>> run = simulate(plan, np.full(50_000, 0.5), "none", 0, np.random.default_rng(1))
    >>> Trimming().mean(run.summary) < 0 < Trimming(side="left").mean(run.summary)
    True
    """

    side: str = "right"
    share: float = 0.5
    """The share of reports that is dropped: the paper's."""
    runs_by_default = True

    def __post_init__(self) -> None:
        check_name("side", self.side, SIDES)
        if not 0 < self.share < 1:
            raise InvalidParameter("share", "must be in (0, 1)", self.share)

    def kept_counts(self, summary: Summary) -> FloatArray:
        """The reports of all groups without the extremes, by their decoded values."""
        counts = summary.counts
        order = np.argsort(decoded_cells(summary), axis=None, kind="stable")
        kept = np.empty(counts.size)
        kept[order] = without_extremes(counts.ravel()[order], self.side, self.share)
        if not kept.any():
            raise NotEnoughData(
                f"trimming a share {self.share:g} must leave a report; received {counts.sum():g}"
            )
        return kept.reshape(counts.shape)

    def describe(self) -> str:
        """A sentence on which end was cut, and how much of it."""
        ends = {"right": "largest", "left": "smallest"}
        return (
            f"The average without the {100 * self.share:g} % {ends[self.side]} reports: honest "
            "ones are cut too, so it is biased even if nobody attacks."
        )
