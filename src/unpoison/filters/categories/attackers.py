"""Attackers who push categories: alike in a set of groups, or in each group in their own way."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unpoison.filters.categories.constants import MOST_ATTACKERS, SETTLED, SHARE_ROUNDS
from unpoison.filters.categories.lines import Lines, through_origin, variances, with_poison
from unpoison.filters.categories.support import SupportCounts
from unpoison.types import BoolArray, FloatArray

NOBODY, ALIKE, OWN = "nobody", "alike", "own"


@dataclass(frozen=True, eq=False)
class Attackers:
    """The lines of all categories, and the poison that is added to them in each group.

    >>> one = np.ones(1)
    >>> supports = SupportCounts(np.ones((1, 2)), 9 * one, 0 * one, one, one, 0 * one, 9 * one)
    >>> Attackers.nobody(supports, through_origin(supports)).shares.tolist()
    [0.0]
    """

    kind: str
    lines: Lines
    poison: FloatArray
    """What attackers add to each category in each group, as a share of the group's reports."""
    shares: FloatArray
    """The attackers' share of each group's users."""
    deviation: float
    """The standard deviation of their share."""
    numbers: int
    """Numbers that were fitted besides one frequency a category."""
    most_honest: FloatArray
    """The largest frequency of each category that leaves no group with negative poison."""

    @classmethod
    def nobody(cls, supports: SupportCounts, lines: Lines) -> Attackers:
        """Lines without any poison."""
        nothing = np.zeros_like(supports.counts)
        return cls(NOBODY, lines, nothing, np.zeros(len(supports.reports)), 0.0, 0, lines.honest)

    def squares(self, supports: SupportCounts) -> FloatArray:
        """Squared distances between groups and lines, each over its variance."""
        signal = supports.signal * (1 - self.shares)
        expected = signal[:, None] * self.lines.honest + self.poison
        expected = expected + (self.shares * supports.unpushed)[:, None]
        spread = variances(supports, self.lines.honest, self.poison)
        return np.asarray((supports.lift - expected) ** 2 / spread)


def alike_attackers(supports: SupportCounts, attacked: BoolArray, pushed: BoolArray) -> Attackers:
    """Attackers who push the same categories as often in every group of a set.

    They support other categories less or more than honest users do, so that lines and share depend
    on each other.

    >>> one, both = np.ones(2), np.ones(2, dtype=bool)
    >>> counts = np.array([[60.0, 40.0], [35.0, 65.0]])
    >>> supports = SupportCounts(
    ...     counts, 100 * one, 0 * one, np.array([1.0, 0.5]), one, 0 * one, 100 * one)
    >>> alike_attackers(supports, both, np.array([True, False])).shares.round(2).tolist()
    [0.1, 0.1]
    """
    share = 0.0
    for _ in range(SHARE_ROUNDS):
        shares = share * attacked.astype(np.float64)
        offset = shares * supports.unpushed
        among = supports.among_attackers(shares)
        poisoned = with_poison(among.chosen(pushed), attacked, offset)
        before, share = share, float(poisoned.poison.sum())
        share = min(max(share, 0.0), MOST_ATTACKERS)
        if abs(share - before) < SETTLED:
            break
    lines = _merged(pushed, poisoned, through_origin(among, offset))
    poison = (supports.pushed * attacked)[:, None] * lines.poison
    deviation = float(np.sqrt(lines.poison_variance.sum()))
    numbers = int(pushed.sum())
    return Attackers(ALIKE, lines, poison, shares, deviation, numbers, lines.honest)


def own_poison(supports: SupportCounts, pushed: BoolArray) -> tuple[FloatArray, FloatArray]:
    """All reports of some categories as poison, by group; and the attackers' share of each group.

    >>> one = np.ones(2)
    >>> counts = np.array([[30.0, 70.0], [60.0, 40.0]])
    >>> supports = SupportCounts(counts, 100 * one, 0 * one, one, one, 0 * one, 100 * one)
    >>> own_poison(supports, np.array([True, False]))[1].tolist()
    [0.3, 0.6]
    """
    shares = np.zeros(len(supports.reports))
    for _ in range(SHARE_ROUNDS):
        lift = supports.lift_above(shares * supports.unpushed)
        poison = np.where(pushed, np.maximum(lift, 0.0), 0.0)
        before = shares
        shares = np.minimum(poison.sum(axis=1) / supports.pushed, MOST_ATTACKERS)
        if np.abs(shares - before).max() < SETTLED:
            break
    return poison, shares


def own_attackers(supports: SupportCounts, pushed: BoolArray) -> Attackers:
    """Attackers who push categories in each group in another way.

    Honest and poisoned reports of such a category cannot be told apart. All of them are taken as
    poison, and `most_honest` says how many honest users the group with the least of it allows. All
    other categories can be estimated: their lines need the share of attackers alone.

    >>> one = np.ones(2)
    >>> counts = np.array([[30.0, 70.0], [60.0, 40.0]])
    >>> supports = SupportCounts(counts, 100 * one, 0 * one, one, one, 0 * one, 100 * one)
    >>> attackers = own_attackers(supports, np.array([True, False]))
    >>> attackers.shares.tolist(), attackers.most_honest.round(2).tolist()
    ([0.3, 0.6], [0.43, 1.0])
    """
    poison, shares = own_poison(supports, pushed)
    offset = shares * supports.unpushed
    among = supports.among_attackers(shares)
    others = through_origin(among, offset)
    most = np.where(pushed, (poison / among.signal[:, None]).min(axis=0), others.honest)
    # A line's own variance is that of honest reports: it bounds how far the least group is off.
    lines = Lines(
        np.where(pushed, 0.0, others.honest),
        poison.max(axis=0),
        others.honest_variance,
        np.zeros(len(pushed)),
    )
    spread = variances(supports, lines.honest, poison)[:, pushed]
    deviation = float(np.sqrt(spread.sum(axis=1).max()))
    numbers = len(shares) * int(pushed.sum())
    return Attackers(OWN, lines, poison, shares, deviation, numbers, most)


def _merged(pushed: BoolArray, poisoned: Lines, others: Lines) -> Lines:
    """The lines of the pushed categories in their places among all others."""
    nothing = np.zeros(len(pushed))
    merged = Lines(others.honest.copy(), nothing, others.honest_variance.copy(), nothing.copy())
    merged.honest[pushed], merged.poison[pushed] = poisoned.honest, poisoned.poison
    merged.honest_variance[pushed] = poisoned.honest_variance
    merged.poison_variance[pushed] = poisoned.poison_variance
    return merged
