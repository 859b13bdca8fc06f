"""How a budget is shared out: groups, tiers, and the promise that nobody spends more than ε."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from unpoison.errors import InvalidParameter
from unpoison.mechanisms.base import MIN_EPSILON, check_epsilon
from unpoison.mechanisms.exact import decimal_at_most, exact, halvings

DAP, BASELINE = "dap", "baseline"
PROTOCOLS = (DAP, BASELINE)
SHARE_TOLERANCE = 1e-9
"""Thirds and sevenths in decimal do not add up to 1 exactly."""
MIN_SHARE = 1e-6
"""A group of a smaller share would stay empty below a million users."""
DEFAULT_PARTS = 8
"""ε over ε0 of a plan that names none: what serves the joint filter best (docs/method.md, Which
plan suits it)."""


@dataclass(frozen=True)
class Group:
    """Users who report `reports` times with budget `epsilon` each; `share` of all users.

    >>> Group(epsilon=0.25, reports=4, share=0.5).spent
    Fraction(1, 1)
    """

    epsilon: float
    reports: int
    share: float

    def __post_init__(self) -> None:
        check_epsilon("epsilon", self.epsilon)
        if self.reports < 1:
            raise InvalidParameter("reports", "must be at least 1", self.reports)
        if not MIN_SHARE <= self.share <= 1:
            raise InvalidParameter("share", f"must be in [{MIN_SHARE:g}, 1]", self.share)

    @property
    def spent(self) -> Fraction:
        """The budget that a user of this group spends in all, exactly."""
        return exact(self.epsilon) * self.reports


@dataclass(frozen=True)
class Tier:
    """Users of one personal budget, and the groups that they are spread over.

    >>> Tier(1.0, (Group(1.0, 1, 0.5), Group(0.5, 3, 0.5))).check("dap")
    Traceback (most recent call last):
        ...
    unpoison.errors.InvalidParameter: groups must spend at most epsilon 1 a user; received 3 x 0.5
    """

    epsilon: float
    groups: tuple[Group, ...]

    def check(self, protocol: str) -> None:
        """No user's total may exceed ε; shares must add up."""
        check_epsilon("epsilon", self.epsilon)
        if protocol == BASELINE:
            self._check_baseline()
        else:
            self._check_dap()

    def _check_dap(self) -> None:
        for group in self.groups:
            if group.spent > exact(self.epsilon):
                rule = f"must spend at most epsilon {self.epsilon:g} a user"
                raise InvalidParameter("groups", rule, f"{group.reports} x {group.epsilon:g}")
        if abs(sum(group.share for group in self.groups) - 1) > SHARE_TOLERANCE:
            shares = [group.share for group in self.groups]
            raise InvalidParameter("groups", "must have shares that add up to 1", shares)
        budgets = [group.epsilon for group in self.groups]
        if budgets != sorted(budgets, reverse=True):
            raise InvalidParameter("groups", "must be in order of falling epsilon", budgets)

    def _check_baseline(self) -> None:
        if len(self.groups) != 2 or any(g.reports != 1 or g.share != 1 for g in self.groups):
            rule = "must be two with one report and share 1 each in the baseline"
            raise InvalidParameter("groups", rule, len(self.groups))
        if sum(group.spent for group in self.groups) > exact(self.epsilon):
            budgets = [group.epsilon for group in self.groups]
            rule = f"must spend at most epsilon {self.epsilon:g} a user together"
            raise InvalidParameter("groups", rule, budgets)
        if self.groups[0].epsilon < self.groups[1].epsilon:
            raise InvalidParameter("groups", "must have the larger epsilon first", "the smaller")


def dap_groups(epsilon: float, min_epsilon: float) -> tuple[Group, ...]:
    """Equal-sized groups with budgets ε, ε/2, …, ε0 (Section V-A, for any ratio).

    >>> [(g.epsilon, g.reports) for g in dap_groups(1.5, 0.0625)][-2:]
    [(0.09375, 16), (0.0625, 24)]
    >>> dap_groups(0.3, 0.1)[-1].reports
    3
    """
    _check_budgets(epsilon, min_epsilon)
    budget_limit, smallest = exact(epsilon), exact(min_epsilon)
    count = halvings(budget_limit, smallest)
    halves = [decimal_at_most(budget_limit / 2**step) for step in range(count)]
    budgets = [max(budget, min_epsilon) for budget in halves] + [min_epsilon]
    share = 1 / (count + 1)
    # Rounding the number of reports down, in exact fractions, is what keeps a user's total under ε.
    return tuple(
        Group(budget, math.floor(budget_limit / exact(budget)), share) for budget in budgets
    )


def default_groups(epsilon: float) -> tuple[Group, ...]:
    """Budgets ε, ε/2, ε/4 and ε/8, with half of all users in the first group.

    Reports of the largest budget tell most of the mean, those of the others tell poison from it.

    >>> [(group.epsilon, group.reports) for group in default_groups(1.0)]
    [(1.0, 1), (0.5, 2), (0.25, 4), (0.125, 8)]
    >>> [round(group.share, 3) for group in default_groups(1.0)]
    [0.5, 0.167, 0.167, 0.167]
    """
    check_epsilon("epsilon", epsilon)
    smallest = max(decimal_at_most(exact(epsilon) / DEFAULT_PARTS), min(MIN_EPSILON, epsilon))
    groups = dap_groups(epsilon, smallest)
    return with_shares(groups, half_first(len(groups)))


def half_first(groups: int) -> list[float]:
    """Weights that give the first of several groups as much as all others together.

    >>> half_first(4), half_first(1)
    ([3.0, 1.0, 1.0, 1.0], [1.0])
    """
    return [float(max(groups - 1, 1)), *[1.0] * (groups - 1)]


def with_shares(groups: Sequence[Group], weights: Sequence[float]) -> tuple[Group, ...]:
    """The groups with users shared out by weight.

    >>> [group.share for group in with_shares(dap_groups(1.0, 0.5), [3.0, 1.0])]
    [0.75, 0.25]
    """
    total = sum(weights)
    pairs = zip(groups, weights, strict=True)
    return tuple(replace(group, share=weight / total) for group, weight in pairs)


def baseline_groups(epsilon: float, min_epsilon: float) -> tuple[Group, ...]:
    """The baseline's two reports of every user: ε_β = ε − ε_α, then ε_α (Section IV).

    >>> [g.epsilon for g in baseline_groups(2.0, 0.0625)]
    [1.9375, 0.0625]
    """
    _check_budgets(epsilon, min_epsilon)
    larger = exact(epsilon) - exact(min_epsilon)
    if larger < exact(min_epsilon):
        rule = "must be at most half of epsilon in the baseline"
        raise InvalidParameter("min_epsilon", rule, min_epsilon)
    return (Group(decimal_at_most(larger), 1, 1.0), Group(min_epsilon, 1, 1.0))


def _check_budgets(epsilon: float, min_epsilon: float) -> None:
    check_epsilon("epsilon", epsilon)
    check_epsilon("min_epsilon", min_epsilon)
    if min_epsilon > epsilon:
        raise InvalidParameter("min_epsilon", f"must be at most epsilon {epsilon:g}", min_epsilon)
