"""Candidate plans: values of ε0, each with several ways to share users out among groups."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from unpoison.errors import InvalidParameter
from unpoison.mechanisms.base import MIN_EPSILON
from unpoison.mechanisms.exact import decimal_at_most, exact
from unpoison.plan import Plan
from unpoison.plan.budgets import Group, dap_groups, half_first, with_shares
from unpoison.types import FloatArray

MOST_BUDGETS = 4
"""Values of ε0 that are tried at most: one plan of each is simulated."""
SMALLEST_PART = 1 / 16
"""ε0 over ε that is tried at least, unless a smaller one is asked for: smaller budgets than that
hardly lower an error, and cost reports."""


def _equal(groups: tuple[Group, ...]) -> FloatArray:
    return np.ones(len(groups))


def _half_first(groups: tuple[Group, ...]) -> FloatArray:
    return np.array(half_first(len(groups)))


def _equal_reports(groups: tuple[Group, ...]) -> FloatArray:
    return np.array([1 / group.reports for group in groups])


DESIGNS: dict[str, Callable[[tuple[Group, ...]], FloatArray]] = {
    "equal users": _equal,
    "half first": _half_first,
    "equal reports": _equal_reports,
}
"""Weights by which each design shares users out among groups."""


@dataclass(frozen=True)
class Candidate:
    """A plan, and the name of the design by which it shares users out.

    >>> plan = Plan.new(epsilon=1.0, min_epsilon=0.25, low=0, high=1)
    >>> candidate = Candidate("equal users", plan)
    >>> round(candidate.reports_a_user, 3), candidate.label
    (2.333, 'ε0 0.25, equal users')
    """

    design: str
    plan: Plan

    @property
    def reports_a_user(self) -> float:
        """The cost of the plan: how many reports a user sends on average."""
        return sum(group.share * group.reports for group in self.plan.groups)

    @property
    def label(self) -> str:
        """A short name: ε0 and the design."""
        return f"ε0 {self.plan.min_epsilon:g}, {self.design}"


def candidates(
    epsilon: float = 1.0, min_epsilon: float | str | None = None, **keys: Any
) -> list[Candidate]:
    """Plans with ε0 of ε/2, ε/4, … down to `min_epsilon`, each with several designs of shares.

    `equal users` is the paper's. `half first` has half of all users in the group of ε, and `equal
    reports` gives every group as many reports as the others. Without it
    the smallest is ε/16. At most four ε0 are tried. Other keys
    are those of a plan.

    >>> plans = candidates(1.0, 0.25, low=0, high=1)
    >>> [plan.label for plan in plans][:2]
    ['ε0 0.5, equal users', 'ε0 0.5, equal reports']
    >>> [round(group.share, 3) for group in plans[-1].plan.groups]
    [0.571, 0.286, 0.143]
    """
    equal_plans = [
        Plan.new(epsilon=epsilon, min_epsilon=smallest, **keys)
        for smallest in _smallest_budgets(epsilon, min_epsilon)
    ]
    designed = [
        Candidate(design, shared_out(plan, weights(plan.groups)))
        for plan in equal_plans
        for design, weights in DESIGNS.items()
    ]
    # Designs that give the same shares are one plan, under the name of the first.
    by_plan = {candidate.plan.fingerprint: candidate for candidate in reversed(designed)}
    return list(by_plan.values())[::-1]


def _smallest_budgets(epsilon: float, min_epsilon: float | str | None) -> list[float]:
    """ε/2, ε/4, …; where there are many, some of them, with the first and the last."""
    Plan.new(epsilon=epsilon, min_epsilon=epsilon, low=0, high=1)  # Refuses a bad ε.
    lowest = max(_lowest(epsilon, min_epsilon), MIN_EPSILON)
    halves: list[float] = []
    exact_epsilon = exact(epsilon)
    while (half := decimal_at_most(exact_epsilon / 2 ** (len(halves) + 1))) >= lowest:
        halves.append(half)
    if not halves:
        rule = f"must be at most half of epsilon {epsilon:g}, or there are no groups to compare"
        raise InvalidParameter("min_epsilon", rule, f"{lowest:g}")
    indices = np.linspace(0, len(halves) - 1, min(len(halves), MOST_BUDGETS)).round()
    return [halves[int(index)] for index in indices]


def _lowest(epsilon: float, min_epsilon: float | str | None) -> float:
    """The smallest ε0 to try: as given, the paper's by its name, or a part of ε."""
    if min_epsilon is None:
        return SMALLEST_PART * epsilon
    if isinstance(min_epsilon, str):
        return Plan.new(epsilon=epsilon, min_epsilon=min_epsilon, low=0, high=1).min_epsilon
    return min_epsilon


def shared_out(plan: Plan, weights: FloatArray) -> Plan:
    """The plan with its users shared out among groups by weight.

    >>> plan = Plan.new(epsilon=1.0, min_epsilon=0.5, low=0, high=1)
    >>> [group.share for group in shared_out(plan, np.array([3.0, 1.0])).groups]
    [0.75, 0.25]
    """
    groups = with_shares(dap_groups(plan.epsilon, plan.min_epsilon), weights.tolist())
    return Plan.from_dict({**plan.to_dict(), "groups": [asdict(group) for group in groups]})
