"""Plans worth comparing: how small ε0 may be, and how many users go into each group."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from unpoison.errors import InvalidParameter
from unpoison.mechanisms.base import MIN_EPSILON
from unpoison.mechanisms.exact import decimal_at_most, exact
from unpoison.plan import Plan
from unpoison.plan.budgets import Group, dap_groups
from unpoison.plan.form import DEFAULT_MIN_EPSILON
from unpoison.types import FloatArray

MOST_DEPTHS = 5


def _equal(groups: tuple[Group, ...]) -> FloatArray:
    return np.ones(len(groups))


def _half_first(groups: tuple[Group, ...]) -> FloatArray:
    rest = len(groups) - 1
    return np.array([float(rest), *[1.0] * rest])


def _equal_reports(groups: tuple[Group, ...]) -> FloatArray:
    return np.array([1 / group.reports for group in groups])


DESIGNS: dict[str, Callable[[tuple[Group, ...]], FloatArray]] = {
    "equal users": _equal,
    "half first": _half_first,
    "equal reports": _equal_reports,
}


@dataclass(frozen=True)
class Candidate:
    """A plan, and the name of how it shares users out.

    >>> plan = Plan.new(epsilon=1.0, min_epsilon=0.25, low=0, high=1)
    >>> one = Candidate("equal users", plan)
    >>> round(one.reports_a_user, 3), one.label
    (2.333, 'ε0 0.25, equal users')
    """

    design: str
    plan: Plan

    @property
    def reports_a_user(self) -> float:
        """How many reports a user sends on average: what a plan costs."""
        return sum(group.share * group.reports for group in self.plan.groups)

    @property
    def label(self) -> str:
        """A short name."""
        return f"ε0 {self.plan.min_epsilon:g}, {self.design}"


def candidates(
    epsilon: float = 1.0, min_epsilon: float | None = None, **keys: Any
) -> list[Candidate]:
    """Plans with ε0 of ε/2, ε/4, … down to `min_epsilon`, each with several designs of shares.

    `equal users` is the paper's. `half first` has half of all users in the group of ε, and `equal
    reports` gives every group as many reports as the others. At most five ε0 are tried. Other keys
    are those of a plan.

    >>> found = candidates(1.0, 0.25, low=0, high=1)
    >>> [each.label for each in found][:2]
    ['ε0 0.5, equal users', 'ε0 0.5, equal reports']
    >>> [round(group.share, 3) for group in found[-1].plan.groups]
    [0.571, 0.286, 0.143]
    """
    plain = [
        Plan.new(epsilon=epsilon, min_epsilon=smallest, **keys)
        for smallest in _smallest_budgets(epsilon, min_epsilon)
    ]
    found = [
        Candidate(design, _shared_out(plan, weights(plan.groups)))
        for plan in plain
        for design, weights in DESIGNS.items()
    ]
    return list({each.plan.fingerprint: each for each in reversed(found)}.values())[::-1]


def _smallest_budgets(epsilon: float, min_epsilon: float | None) -> list[float]:
    """ε/2, ε/4, …; where there are many, some of them, with the first and the last."""
    Plan.new(epsilon=epsilon, min_epsilon=epsilon, low=0, high=1)
    lowest = min(DEFAULT_MIN_EPSILON, epsilon / 4) if min_epsilon is None else min_epsilon
    lowest = max(lowest, MIN_EPSILON)
    halves: list[float] = []
    whole = exact(epsilon)
    while (half := decimal_at_most(whole / 2 ** (len(halves) + 1))) >= lowest:
        halves.append(half)
    if not halves:
        rule = f"must be at most half of epsilon {epsilon:g}, or there are no groups to compare"
        raise InvalidParameter("min_epsilon", rule, f"{lowest:g}")
    places = np.linspace(0, len(halves) - 1, min(len(halves), MOST_DEPTHS)).round()
    return [halves[int(place)] for place in places]


def _shared_out(plan: Plan, weights: FloatArray) -> Plan:
    shares = weights / weights.sum()
    pairs = zip(dap_groups(plan.epsilon, plan.min_epsilon), shares.tolist(), strict=True)
    groups = [asdict(replace(group, share=share)) for group, share in pairs]
    return Plan.from_dict({**plan.to_dict(), "groups": groups})
