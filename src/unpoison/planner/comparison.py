"""Predictions of several plans side by side, and which of them is recommended."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from unpoison.errors import InvalidParameter
from unpoison.planner.prediction import Prediction
from unpoison.planner.setting import Setting
from unpoison.planner.utility import Utilities, utilities

AS_GOOD = 1.1
"""Errors within a tenth of the least are as good: fewer reports are worth more."""


@dataclass(frozen=True)
class Comparison:
    """Predictions of several plans, and the recommended one.

    >>> from unpoison.planner.candidates import candidates
    >>> from unpoison.planner.simulated import PredictedError, Situation
    >>> few, many = candidates(1.0, 0.25, low=0, high=1)[:4:3]
    >>> def line(candidate, error):
    ...     figures = (Situation("poison", "uniform"), PredictedError(error, 0.001, 8), True)
    ...     return Prediction(candidate, *figures, 0.01, 2.0, 0.05, 0.1, (-0.3, 0.3))
    >>> lines, setting = (line(few, 0.02), line(many, 0.01)), Setting(10_000, tolerate=0.25)
    >>> Comparison(lines, setting).recommended.candidate is many
    True
    >>> Comparison(lines, setting, target_error=0.03).recommended.candidate is few
    True
    """

    lines: tuple[Prediction, ...]
    setting: Setting
    target_error: float | None = None
    needed_users: int | None = None
    """The users that would be enough, where no plan meets the target and a number was found."""
    considered: int = 0
    """The number of plans that were compared by expected counts, before trials."""

    def __post_init__(self) -> None:
        target = self.target_error
        if target is not None and not 0 < target < math.inf:
            raise InvalidParameter("target_error", "must be a positive number", target)

    @property
    def finalists(self) -> list[Prediction]:
        """The plans that were tried in every situation: one of these is recommended."""
        return [line for line in self.lines if line.complete]

    @property
    def best(self) -> Prediction:
        """The finalist with the least error."""
        return min(self.finalists, key=lambda line: line.error)

    @property
    def met(self) -> bool:
        """Whether a finalist meets the target; True if there is no target."""
        return self.target_error is None or self.best.error <= self.target_error

    def is_good_enough(self, line: Prediction) -> bool:
        """Whether a plan meets the target; or else is as good as the best, as far as is known."""
        if self.target_error is not None and self.met:
            return line.error <= self.target_error
        noise = math.hypot(line.standard_error, self.best.standard_error)
        return line.error <= max(AS_GOOD * self.best.error, self.best.error + noise)

    @property
    def recommended(self) -> Prediction:
        """The finalist with the fewest reports a user among those that are good enough."""
        good_enough = [line for line in self.finalists if self.is_good_enough(line)]
        return min(good_enough, key=lambda line: (line.candidate.reports_a_user, line.error))

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
            "considered": self.considered,
            "candidates": [line.to_dict() for line in self.lines],
            "recommended": self.lines.index(recommended),
            "utility_max": None if utilities is None else utilities.most,
            "utility_evasive": None if utilities is None else utilities.evasive,
            "plan": recommended.candidate.plan.to_dict(),
        }
