"""The counts of all groups beside one another, and what one honest histogram would give in each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import xlogy

from unpoison.errors import NotEnoughData
from unpoison.filters.buckets import MIN_REPORTS, Buckets
from unpoison.mechanisms import Mechanism
from unpoison.summary import Summary
from unpoison.types import FloatArray, IntArray

MOST_BUCKETS = 64
FEWEST_BUCKETS = 8
AT_THE_END = 1e-6


@dataclass(frozen=True, eq=False)
class JointCounts:
    """Counts by group and bucket. Buckets of the same number are at the same place of every domain.

    Groups are drawn at random, so all share one honest histogram; `transitions[t]` says what it
    gives in group t. There are at most 64 buckets: poison that may be anywhere soaks up noise, and
    the less the fewer buckets there are. Of numbers, either end is a value by itself.

    >>> from unpoison import Plan, simulate
    >>> plan = Plan.new(epsilon=1.0, low=0, high=1)
    >>> run = simulate(plan, np.full(20_000, 0.3), rng=np.random.default_rng(1))
    >>> counts = JointCounts.of(run.summary, range(5))
    >>> counts.counts.shape, counts.transitions.shape, float(counts.reports[0])
    ((5, 63), (5, 63, 65), 4000.0)
    """

    groups: tuple[int, ...]
    buckets: tuple[Buckets, ...]
    transitions: FloatArray
    values: FloatArray
    counts: FloatArray
    users: FloatArray
    repeats: IntArray
    """How many reports a user of each group sends."""

    @classmethod
    def of(cls, summary: Summary, groups: Sequence[int]) -> JointCounts:
        """The groups with enough reports to say anything."""
        present = tuple(group for group in groups if summary.reports[group] >= MIN_REPORTS)
        if not present:
            raise NotEnoughData(f"a group needs at least {MIN_REPORTS} reports; none has them")
        fewest = int(summary.reports[list(present)].min())
        mechanisms = [summary.plan.group_mechanisms[group] for group in present]
        buckets = tuple(_buckets(mechanism, fewest) for mechanism in mechanisms)
        counted = cls(
            groups=present,
            buckets=buckets,
            transitions=np.stack([each.transition.dense() for each in buckets]),
            values=buckets[0].input_values,
            counts=np.stack(
                [each.count(summary.counts[g]) for each, g in zip(buckets, present, strict=True)]
            ),
            users=summary.users[list(present)].astype(np.float64),
            repeats=np.array([summary.plan.all_groups[group].reports for group in present]),
        )
        if buckets[0].mechanism.categorical:
            return counted
        ends, values = counted.transitions_of(buckets[0].input_edges[[0, -1]])
        return counted.with_inputs(ends[:, :, [0, -1]], values[[0, -1]])

    def transitions_of(self, edges: FloatArray) -> tuple[FloatArray, FloatArray]:
        """What users in finer input buckets report, and their values; either end is one by itself.

        Values beyond a range are moved to its end, so many users may have exactly that.
        """
        near = (edges[-1] - edges[0]) * AT_THE_END
        inner = [[edges[0] + near], edges[1:-1], [edges[-1] - near]]
        finer = np.concatenate([edges[:1], *inner, edges[-1:]])
        columns = [
            each.mechanism.transition(finer, each.output_edges).dense() for each in self.buckets
        ]
        return np.stack(columns), (finer[1:] + finer[:-1]) / 2

    @cached_property
    def reports(self) -> FloatArray:
        """How many reports each group has."""
        total: FloatArray = self.counts.sum(axis=1)
        return total

    @cached_property
    def shares(self) -> FloatArray:
        """The share of each bucket among its group's reports."""
        shares: FloatArray = self.counts / self.reports[:, None]
        return shares

    @cached_property
    def best_likelihood(self) -> float:
        """That of a model which gives every bucket the share it has."""
        return float(xlogy(self.counts, self.shares).sum())

    @property
    def rows(self) -> FloatArray:
        """The transitions of all groups below one another: a row for each bucket of each group."""
        return self.transitions.reshape(-1, self.inputs)

    @property
    def inputs(self) -> int:
        """The number of input buckets, or of values that users may have."""
        return int(self.transitions.shape[2])

    def with_inputs(self, transitions: FloatArray, values: FloatArray) -> JointCounts:
        """The same counts, with more values that users may have."""
        together = np.concatenate([self.transitions, transitions], axis=2)
        return replace(self, transitions=together, values=np.concatenate([self.values, values]))

    def with_noise(self, share: float) -> JointCounts:
        """The same counts, if so many users send noise over the whole domain."""
        noise = share / self.counts.shape[1]
        return replace(self, transitions=(1 - share) * self.transitions + noise)

    @property
    def penalty(self) -> float:
        """What a parameter costs in deviance (BIC): the logarithm of the number of users."""
        return math.log(max(float(self.users.sum()), math.e))

    def deviance(self, expected: FloatArray) -> float:
        """Twice the log-likelihood that a model falls short of the best."""
        return 2 * (self.best_likelihood - float(xlogy(self.counts, expected).sum()))

    def precision(self, expected: FloatArray) -> FloatArray:
        """1/variance of the share of every bucket, where these are expected."""
        weights: FloatArray = self.reports[:, None] / expected
        return weights

    def over_users(self, by_group: FloatArray) -> float:
        """The average of something over all users."""
        return float(self.users @ by_group / self.users.sum())

    def drawn(
        self, honest: FloatArray, rng: np.random.Generator, poison: FloatArray | None = None
    ) -> JointCounts:
        """A collection of as many users: all reports of an honest user are about one value.

        `poison` is a fraction of the reports, by group and bucket.
        """
        poison = np.zeros(self.counts.shape) if poison is None else poison
        counts = []
        for group, users in enumerate(self.users):
            repeats, attackers = int(self.repeats[group]), round(users * poison[group].sum())
            reports = _reports(users - attackers, repeats, honest, self.transitions[group], rng)
            if attackers:
                shares = poison[group] / poison[group].sum()
                reports = reports + rng.multinomial(attackers * repeats, shares)
            counts.append(reports)
        return replace(self, counts=np.array(counts, dtype=np.float64))


def _reports(
    users: float, repeats: int, honest: FloatArray, transition: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """The counts of one group of honest users."""
    members = rng.multinomial(round(users), honest / honest.sum()) * repeats
    held = np.flatnonzero(members)
    shares = transition[:, held] / transition[:, held].sum(axis=0)
    drawn: FloatArray = rng.multinomial(members[held], shares.T).sum(axis=0).astype(np.float64)
    return drawn


def _buckets(mechanism: Mechanism, fewest: int) -> Buckets:
    if mechanism.categorical:
        return Buckets(mechanism, mechanism.cells, mechanism.cells)
    number = min(max(math.isqrt(fewest), FEWEST_BUCKETS), MOST_BUCKETS, mechanism.cells)
    return Buckets(mechanism, number, number)
