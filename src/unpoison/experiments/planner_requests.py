"""Requests to the planner, drawn at random, and how what it predicts compares with measurement.

What is drawn depends on SEED and on the number of a request alone, so that the requests are fixed
before anybody has seen one.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from unpoison.experiments.cell import Cell
from unpoison.planner import Comparison, Draw, Prediction, Setting, Situation, candidates, compare
from unpoison.planner.reference import hardest_attack
from unpoison.protocols.joint import JOINT
from unpoison.simulation.trial import GROUPED

SEED = 20_160
"""Any number; it was fixed before a request was looked at."""
BUDGETS, USERS, SHARES = (0.25, 8.0), (1e4, 1e6), (0.02, 0.3)
"""The ranges of ε, users and attackers that requests are drawn from: those that the planner is
for."""
QUICK_USERS = (1e3, 2e3)
"""Few users, of whom estimates take the least time."""
FRESH_SEED = 1_000_003
"""The first seed of measurements: their collections are none of the planner's own."""
SECOND_SEED = 1
"""The planner's seed when it is asked again."""
FIRST_LOOK, HARD_LOOK = 2, 8
"""Trials in every situation, and under the attack that is hardest to find, from which those are
chosen that are measured: failures in one of ten collections must not be missed."""
MEASURED = 2
"""Situations that are measured, beside that which the planner names: the largest error may be in
another."""


@dataclass(frozen=True)
class PlannerRequest(Cell):
    """One request: the planner's advice, and the error of the plan that it recommends.

    The error is measured with `trials` collections in each of up to three situations: those that
    had the largest errors in a first look, and the one that the planner names. The largest counts.

    >>> request = drawn_requests(1, quick=True)[0]
    >>> request.users < 2001, 0.02 <= request.gamma <= 0.3
    (True, True)
    """

    asked_again: bool = False

    def run(self) -> list[dict[str, Any]]:
        """One row: what was predicted, and what was measured."""
        started = time.process_time()
        advice = self._advice(0)
        seconds = time.process_time() - started
        recommended = advice.recommended
        measured, situation = self._measured(recommended)
        again = self._advice(SECOND_SEED).recommended if self.asked_again else recommended
        row = {
            **self._columns(),
            "method": JOINT,
            "collection": GROUPED,
            "plan": recommended.candidate.label,
            "predicted": recommended.error,
            "standard_error": recommended.standard_error,
            "named": f"{recommended.situation.attack}, {recommended.situation.shape}",
            "measured": measured,
            "worst": f"{situation.attack}, {situation.shape}",
            "prediction_ratio": recommended.error / measured,
            "seconds": seconds,
            "other_plan": float(again.candidate != recommended.candidate),
            "floor": (recommended.predicted.error / recommended.price) ** 2,
            "byzantine_fraction": self.gamma,
            "side": "right",
        }
        return [row]

    def _advice(self, seed: int) -> Comparison:
        plans = candidates(self.epsilon, low=-1, high=1)
        return compare(plans, Setting(self.users, self.gamma, seed=seed))

    def _measured(self, recommended: Prediction) -> tuple[float, Situation]:
        """The largest error in fresh collections, and where it is."""
        plan = recommended.candidate.plan
        hardest = hardest_attack(plan)
        looks = {
            situation: HARD_LOOK if situation.attack == hardest else FIRST_LOOK
            for situation in Situation.all_on(plan)
        }
        errors = {
            situation: self._error(recommended, situation, 0, looks[situation])
            for situation in looks
        }
        largest = sorted(errors, key=lambda situation: -errors[situation])[:MEASURED]
        measured = {
            situation: self._error(
                recommended, situation, looks[situation], looks[situation] + self.trials
            )
            for situation in {*largest, recommended.situation}
        }
        worst = max(measured, key=lambda situation: measured[situation])
        return measured[worst], worst

    def _error(self, recommended: Prediction, situation: Situation, first: int, last: int) -> float:
        """The root mean squared error of the collections of these numbers."""
        setting = Setting(self.users, self.gamma, seed=FRESH_SEED)
        draws = [
            Draw(recommended.candidate.plan, situation, setting, n) for n in range(first, last)
        ]
        return float(np.sqrt(np.mean([draw.run().squared_error for draw in draws])))


def drawn_requests(count: int, quick: bool) -> list[PlannerRequest]:
    """The first requests; a third of them is asked again with another seed.

    >>> few, more = (drawn_requests(count, quick=False) for count in (2, 3))
    >>> few == more[:2]
    True
    """
    return [_drawn_request(number, quick) for number in range(count)]


def _drawn_request(number: int, quick: bool) -> PlannerRequest:
    # Quick runs have requests of their own: looking at them says nothing about the others.
    rng = np.random.default_rng([SEED, number, int(quick)])
    return PlannerRequest(
        # Every cell has a dataset and an attack; the planner takes all shapes and attacks it knows.
        dataset="beta-2-5",
        attack="uniform:O,R",
        mechanism="piecewise",
        methods=(JOINT,),
        epsilon=round(_logarithmic(rng, *BUDGETS), 2),
        users=round(_logarithmic(rng, *(QUICK_USERS if quick else USERS))),
        gamma=round(_logarithmic(rng, *SHARES), 3),
        trials=2 if quick else 24,
        asked_again=number % 3 == 0,
        fast=True,
    )


def _logarithmic(rng: np.random.Generator, low: float, high: float) -> float:
    """A number that is as likely in any two ranges of the same ratio."""
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))
