"""A prediction about a plan: its largest error under attack, the worst case, what it detects."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from unpoison.planner.candidates import Candidate
from unpoison.planner.simulated import PredictedError, Situation


@dataclass(frozen=True)
class Prediction:
    """A prediction about a plan; errors are root mean squares, in natural units or of frequencies.

    `predicted` is the error in the `situation` where it is largest, and `interval_width` that of
    the 95 % interval there. `complete` says whether the plan was tried in every situation, or in
    those of one attack only. `quiet_error` is the error with nobody attacking, `price` the error
    over that of one group, all of ε and nobody attacking. `worst_case` is the range that is
    possible, from the truth on, with the share to withstand, whatever attackers send. `detectable`
    is the share of attackers that would be noticed (NaN if none would).

    >>> from unpoison import Plan
    >>> candidate = Candidate("equal users", Plan.new(epsilon=1.0, min_epsilon=0.5, low=0, high=1))
    >>> situation, predicted = Situation("poison", "uniform"), PredictedError(0.02, 0.001, 8)
    >>> ranges = {"worst_case": (-0.1, 0.15), "interval_width": 0.08}
    >>> line = Prediction(candidate, situation, predicted, True, 0.01, 2.0, 0.05, **ranges)
    >>> line.error, line.to_dict()["groups"][1]["reports"]
    (0.02, 2)
    """

    candidate: Candidate
    situation: Situation
    predicted: PredictedError
    complete: bool
    quiet_error: float
    price: float
    detectable: float
    interval_width: float
    worst_case: tuple[float, float]

    @property
    def error(self) -> float:
        """The error that a target is compared with: under the worst attack, or with nobody."""
        return max(self.predicted.error, self.quiet_error)

    @property
    def standard_error(self) -> float:
        """The standard error of the predicted error."""
        return self.predicted.standard_error

    @property
    def worst_case_width(self) -> float:
        """The width of the worst case."""
        return self.worst_case[1] - self.worst_case[0]

    def to_dict(self) -> dict[str, Any]:
        """The fields for JSON; `detectable` is null where no share would be detected."""
        return {
            "design": self.candidate.design,
            "min_epsilon": self.candidate.plan.min_epsilon,
            "groups": self.candidate.plan.to_dict()["groups"],
            "reports_a_user": self.candidate.reports_a_user,
            "error": self.error,
            "standard_error": self.standard_error,
            "attack": self.situation.attack,
            "shape": self.situation.shape,
            "trials": self.predicted.trials,
            "complete": self.complete,
            "quiet_error": self.quiet_error,
            "interval_width": self.interval_width,
            "worst_case": list(self.worst_case),
            "detectable": None if math.isnan(self.detectable) else self.detectable,
            "price": self.price,
        }
