"""What the worst case looks at: observed shares of reports, and what honest users would send."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from unpoison.filters.joint.counts import JointCounts
from unpoison.filters.worst_case import constants
from unpoison.types import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class ReportCells:
    """Reports of all groups in some cells each, for every value that a user may have.

    A row is a cell of a group. Groups may have different numbers of cells.

    >>> from unpoison import Plan, simulate
    >>> plan, rng = Plan.new(epsilon=0.5, low=0, high=1), np.random.default_rng(1)
    >>> counts = JointCounts.of(simulate(plan, rng.random(20_000), rng=rng).summary, range(4))
    >>> cells = ReportCells.of_numbers(counts)
    >>> len(cells.observed) < counts.counts.size, len(cells.values) > 100
    (True, True)
    """

    counts: FloatArray
    """Reports in each row's cell."""
    groups: IntArray
    """The group of each row."""
    transitions: FloatArray
    """The chance of each row's cell among its group's reports, for each value of a user."""
    values: FloatArray
    """The values that a bound is about: numbers, or 1 for one category and 0 for the others."""
    users: FloatArray
    """n_t: the users of each group."""
    reports_per_user: IntArray
    standard_error: float
    """Standard error of the plain estimate from all groups, which takes nobody for an attacker."""

    @classmethod
    def of_numbers(cls, counts: JointCounts) -> ReportCells:
        """Few buckets a group, and all values of a lattice, or those that suffice for any users."""
        on_lattice = counts.bucket_inputs == 0
        values = counts.values if on_lattice else counts.extreme_values()
        transitions = counts.transitions_from(values)
        rows = [
            _first_buckets(transition, users)
            for transition, users in zip(transitions, counts.users, strict=True)
        ]
        return cls(
            counts=np.concatenate(_merged(counts.counts, rows)),
            groups=np.repeat(np.arange(len(rows)), [len(first) for first in rows]),
            transitions=np.concatenate(_merged(transitions, rows)),
            values=values,
            users=counts.users,
            reports_per_user=counts.reports_per_user,
            standard_error=_plain_error(counts),
        )

    @classmethod
    def of_category(cls, counts: JointCounts, category: int) -> ReportCells:
        """Two cells a group: reports of the category, and of any other.

        With k-RR all other categories are alike to this one: its reports are as likely from each.
        """
        other = (category + 1) % counts.inputs
        chances = counts.transitions[:, category, [category, other]]
        of_category = counts.counts[:, category]
        return cls(
            counts=np.stack([of_category, counts.reports - of_category], axis=1).ravel(),
            groups=np.repeat(np.arange(len(chances)), 2),
            transitions=np.stack([chances, 1 - chances], axis=1).reshape(-1, 2),
            values=np.array([1.0, 0.0]),
            users=counts.users,
            reports_per_user=counts.reports_per_user,
            standard_error=_plain_error(counts),
        )

    @classmethod
    def of_categories(cls, counts: JointCounts) -> ReportCells:
        """One cell for each category and group, for a bound on the share of honest users."""
        groups, categories = counts.counts.shape
        return cls(
            counts=counts.counts.ravel(),
            groups=np.repeat(np.arange(groups), categories),
            transitions=counts.stacked_transitions,
            values=np.ones(categories),
            users=counts.users,
            reports_per_user=counts.reports_per_user,
            standard_error=_plain_error(counts),
        )

    def about(self, values: FloatArray) -> ReportCells:
        """These reports, for a bound about other values of users."""
        return replace(self, values=values)

    @cached_property
    def reports(self) -> FloatArray:
        """The reports of each row's group."""
        totals = np.bincount(self.groups, self.counts)[self.groups]
        return totals.astype(np.float64)

    @cached_property
    def observed(self) -> FloatArray:
        """p̂: each row's share of its group's reports."""
        shares: FloatArray = self.counts / self.reports
        return shares

    @cached_property
    def deviations(self) -> FloatArray:
        """Standard deviations of the shares if users had all values alike.

        They do not come from the counts: bounds would follow the noise of these in a way that no
        correction knows of.
        """
        expected = self.transitions.mean(axis=1)
        deviations: FloatArray = np.sqrt(expected / self.reports)
        return deviations

    def covariance(self, honest: FloatArray, values: IntArray, attackers: float) -> FloatArray:
        """Covariance of the shares if honest users have a histogram over some of the values.

        The unit is the user: reports of an honest user are about one value, and those of an
        attacker may be all the same. What honest users leave of a share is poison.
        """
        covariance = np.zeros((len(self.counts), len(self.counts)))
        for group, users in enumerate(self.users):
            rows = np.flatnonzero(self.groups == group)
            transition = self.transitions[np.ix_(rows, values)]
            expected, alike = transition @ honest, (transition * honest) @ transition.T
            of_honest = alike + (np.diag(expected) - alike) / self.reports_per_user[group]
            poison = np.maximum(self.observed[rows] - (1 - attackers) * expected, 0.0)
            mean = (1 - attackers) * expected + poison
            second = (1 - attackers) * of_honest + np.diag(poison)
            covariance[np.ix_(rows, rows)] = (second - np.outer(mean, mean) / mean.sum()) / users
        return covariance


def _plain_error(counts: JointCounts) -> float:
    """1/√Σ N_t/variance_t, with the largest variance that a group's mechanism has."""
    variances = [buckets.mechanism.worst_variance for buckets in counts.buckets]
    return float(1 / np.sqrt((counts.reports / np.array(variances)).sum()))


def _first_buckets(transition: FloatArray, users: float) -> IntArray:
    """The first bucket of each cell: as many cells as users allow, or as the noise is narrow.

    The noise of a value reaches over 1/Σ p² buckets, if they had it in equal parts.
    """
    buckets = len(transition)
    reach = float((1 / (transition**2).sum(axis=0)).min()) / buckets
    wanted = max(constants.CELLS_IN_NOISE / reach, users**constants.CELL_EXPONENT)
    number = min(math.ceil(wanted), buckets)
    return np.linspace(0, buckets, number + 1).astype(np.int64)[:-1]


def _merged(by_bucket: FloatArray, rows: list[IntArray]) -> list[FloatArray]:
    """Sums over the buckets of each cell, by group."""
    return [
        np.add.reduceat(of_group, first) for of_group, first in zip(by_bucket, rows, strict=True)
    ]
