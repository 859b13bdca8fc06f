"""The recommended plan: the cheapest that meets a target, or that is as good as the best."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from unpoison.errors import InvalidParameter
from unpoison.planner.candidates import Candidate
from unpoison.planner.prediction import MOST_USERS, Advance, Prediction, Setting, predict
from unpoison.planner.utility import Utilities, utilities

MOST_ROUNDS = 4
"""How many numbers of users are tried before giving up."""
LEAST_GROWTH = 1.1
"""The factor by which each try has at least more users, so that the search moves on."""
AS_GOOD = 1.1
"""Errors within a tenth of the least are as good: predictions are not more exact."""


@dataclass(frozen=True)
class Comparison:
    """Predictions of several plans, and the recommended one.

    >>> from unpoison.planner.candidates import candidates
    >>> few, many = candidates(1.0, 0.25, low=0, high=1)[:4:3]
    >>> lines = [
    ...     Prediction(few, 0.02, 0.018, 0.01, 2.0, 0.05, 0.3),
    ...     Prediction(many, 0.01, 0.012, 0.01, 1.0, 0.04, 0.3),
    ... ]
    >>> setting = Setting(10_000, tolerate=0.25)
    >>> Comparison(tuple(lines), setting).recommended.candidate is many
    True
    >>> Comparison(tuple(lines), setting, target_error=0.03).recommended.candidate is few
    True
    """

    lines: tuple[Prediction, ...]
    setting: Setting
    target_error: float | None = None
    needed_users: int | None = None
    """How many users would be enough, where no plan meets the target and a number was found."""

    def __post_init__(self) -> None:
        target = self.target_error
        if target is not None and not 0 < target < math.inf:
            raise InvalidParameter("target_error", "must be a positive number", target)

    @property
    def best(self) -> Prediction:
        """The plan with the least error."""
        return min(self.lines, key=lambda line: line.worst)

    @property
    def met(self) -> bool:
        """Whether a plan meets the target; True if there is no target."""
        return self.target_error is None or self.best.worst <= self.target_error

    @property
    def limit(self) -> float:
        """The largest error that is good enough: the target, or a little above the least error."""
        if self.target_error is not None and self.met:
            return self.target_error
        return AS_GOOD * self.best.worst

    @property
    def recommended(self) -> Prediction:
        """The plan with the fewest reports a user among those that are good enough."""
        good_enough = [line for line in self.lines if line.worst <= self.limit]
        return min(good_enough, key=lambda line: (line.candidate.reports_a_user, line.worst))

    @property
    def utilities(self) -> Utilities | None:
        """U_max and U_eva of the recommended plan; None for categories."""
        plan = self.recommended.candidate.plan
        return None if plan.categorical else utilities(plan, self.setting.tolerate)

    def to_dict(self) -> dict[str, Any]:
        """The fields for JSON, with the recommended plan in full."""
        utilities, recommended = self.utilities, self.recommended
        return {
            "users": self.setting.users,
            "tolerate": self.setting.tolerate,
            "trials": self.setting.trials,
            "target_error": self.target_error,
            "target_met": self.met if self.target_error is not None else None,
            "needed_users": self.needed_users,
            "candidates": [line.to_dict() for line in self.lines],
            "recommended": self.lines.index(recommended),
            "utility_max": None if utilities is None else utilities.most,
            "utility_evasive": None if utilities is None else utilities.evasive,
            "plan": recommended.candidate.plan.to_dict(),
        }


def compare(
    plans: Sequence[Candidate],
    setting: Setting,
    target_error: float | None = None,
    advance: Advance | None = None,
) -> Comparison:
    """Predict all plans; where none meets the target, also find how many users would be enough.

    >>> from unpoison.planner.candidates import candidates
    >>> plans = candidates(1.0, 0.5, mechanism="k-rr", categories=["tea", "milk", "water"])
    >>> len(compare(plans, Setting(2000, tolerate=0.25)).lines)
    2
    """
    Comparison((), setting, target_error)  # Refuses a bad target before the long work.
    lines = tuple(predict(plan, setting, advance) for plan in plans)
    comparison = Comparison(lines, setting, target_error)
    if target_error is None or comparison.met:
        return comparison
    needed = users_for(comparison.recommended, setting, target_error, advance)
    return replace(comparison, needed_users=needed)


def users_for(
    line: Prediction, setting: Setting, target_error: float, advance: Advance | None = None
) -> int | None:
    """How many users a plan needs to meet a target; None if a thousand million are not enough.

    Errors fall with the root of the number of users at best; so that many are tried first.

    >>> from unpoison.planner.candidates import candidates
    >>> plans = candidates(1.0, 0.5, mechanism="k-rr", categories=["tea", "milk", "water"])
    >>> setting = Setting(2000, tolerate=0.1)
    >>> line = predict(plans[0], setting)
    >>> users_for(line, setting, line.worst / 2) >= 8000
    True
    """
    error, users = line.worst, setting.users
    for _ in range(MOST_ROUNDS):
        users = _rounded(users * max((error / target_error) ** 2, LEAST_GROWTH))
        if users > MOST_USERS:
            return None
        error = predict(line.candidate, replace(setting, users=users), advance).worst
        if error <= target_error:
            return users
    return None


def _rounded(users: float) -> int:
    """Rounded up to two digits: predictions are not more exact."""
    step = int(10 ** max(math.floor(math.log10(users)) - 1, 0))
    return math.ceil(users / step) * step
