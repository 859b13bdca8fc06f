"""How many reports of each group support each category, and what honest users would give."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from unpoison.errors import InvalidParameter
from unpoison.mechanisms import CategoricalMechanism
from unpoison.summary import Summary
from unpoison.types import BoolArray, FloatArray


@dataclass(frozen=True, eq=False)
class SupportCounts:
    """Counts of supporting reports, one row a group and one column a category.

    An honest user of another category supports a category with probability `baseline`, one of the
    category itself with `baseline + signal`.

    >>> one = np.ones(1)
    >>> counts = np.array([[25.0, 75.0]])
    >>> SupportCounts(counts, 100 * one, 0.25 * one, 0.5 * one, one, 0 * one, 100 * one).lift
    array([[0. , 0.5]])
    """

    counts: FloatArray
    reports: FloatArray
    """Reports of each group."""
    baseline: FloatArray
    signal: FloatArray
    pushed: FloatArray
    """By how much more an attacker supports the category that he pushes than any other."""
    unpushed: FloatArray
    """By how much more he supports any other than an honest user of another category does."""
    users: FloatArray
    """Users of each group, who may send several reports each."""

    @property
    def lift(self) -> FloatArray:
        """The share of supporting reports above the baseline."""
        lift: FloatArray = self.counts / self.reports[:, None] - self.baseline[:, None]
        return lift

    def lift_above(self, offset: FloatArray | float) -> FloatArray:
        """The lift without what each group has of every category alike."""
        return np.asarray(self.lift - np.reshape(offset, (-1, 1)))

    def chosen(self, categories: BoolArray) -> SupportCounts:
        """The counts of some categories alone.

        >>> one = np.ones(1)
        >>> counts = np.array([[1.0, 2.0]])
        >>> both = SupportCounts(counts, 9 * one, 0 * one, one, one, 0 * one, 9 * one)
        >>> both.chosen(np.array([False, True])).counts.tolist()
        [[2.0]]
        """
        return replace(self, counts=self.counts[:, categories])

    def among_attackers(self, shares: FloatArray) -> SupportCounts:
        """The same counts where shares of the groups' users are attackers.

        The others are fewer, and their signal with them.

        >>> one = np.ones(2)
        >>> supports = SupportCounts(np.ones((2, 1)), one, 0 * one, one, one, 0 * one, one)
        >>> supports.among_attackers(np.array([0.25, 0.0])).signal.tolist()
        [0.75, 1.0]
        """
        return replace(self, signal=self.signal * (1 - shares))

    @classmethod
    def of_categories(cls, summary: Summary, groups: Sequence[int]) -> SupportCounts:
        """A summary of k-RR: a report supports the category that it names.

        >>> from unpoison import Plan, simulate
        >>> plan = Plan.new("k-rr", 1.0, min_epsilon=0.5, categories=["tea", "milk"])
        >>> run = simulate(plan, ["tea"] * 90, rng=np.random.default_rng(1))
        >>> SupportCounts.of_categories(run.summary, range(2)).reports.tolist()
        [45.0, 90.0]
        """
        members = [group for group in groups if summary.reports[group]]
        mechanisms = [summary.plan.group_mechanisms[group] for group in members]
        categorical = [one for one in mechanisms if isinstance(one, CategoricalMechanism)]
        if len(categorical) < len(mechanisms):
            raise InvalidParameter("plan", "must be of categories", summary.plan.mechanism)
        other = np.array([mechanism.other for mechanism in categorical])
        kept = np.array([mechanism.kept for mechanism in categorical])
        return cls(
            summary.counts[members].astype(np.float64),
            summary.reports[members].astype(np.float64),
            baseline=other,
            signal=kept - other,
            pushed=np.ones(len(members)),
            unpushed=-other,
            users=summary.users[members],
        )
