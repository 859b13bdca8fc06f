"""Ostrich defence: average everything, as if nobody attacked."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unpoison.defences.base import SelectingDefence, defences
from unpoison.summary import Summary
from unpoison.types import FloatArray


@defences.register("ostrich", order=1)
@dataclass(frozen=True)
class Ostrich(SelectingDefence):
    """The plain average of all decoded reports; for SW by EMS, for k-RR by EM without a filter.

    >>> from unpoison import Plan, simulate
    >>> plan = Plan.new(epsilon=1.0, min_epsilon=1.0, low=0, high=1)
    >>> run = simulate(plan, np.full(50_000, 0.3), "none", 0, np.random.default_rng(1))
    >>> bool(abs(Ostrich().mean(run.summary) - (-0.4)) < 0.05)
    True
    """

    categorical = True
    runs_by_default = True

    def kept_counts(self, summary: Summary) -> FloatArray:
        """The counts of all reports."""
        return summary.counts.astype(np.float64)

    def mean(self, summary: Summary) -> float:
        """Decoded from the exact sums; each group weighs by its number of reports."""
        if not summary.plan.group_mechanisms[0].unbiased:
            return super().mean(summary)
        reports = summary.reports
        present = np.flatnonzero(reports)
        averages = np.array([summary.decoded_average(int(group)) for group in present])
        return float(averages @ reports[present] / reports.sum())

    def describe(self) -> str:
        """A sentence that says that nothing was left out."""
        return "The plain average of all reports: it trusts everybody."
