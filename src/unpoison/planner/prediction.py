"""Predictions about a plan: error under attack, detectable share, and worst case."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from unpoison.errors import InvalidParameter
from unpoison.filters.attacker_share import MOST_ATTACKERS
from unpoison.plan import Plan
from unpoison.planner.candidates import Candidate
from unpoison.planner.detection import detectable_share
from unpoison.planner.reference import SHAPES, Reference, attacks_on
from unpoison.protocols.joint_analysis import JointAnalysis
from unpoison.simulation import Simulation, simulate

Advance = Callable[[int], None]
FEWEST_USERS, MOST_USERS = 1000, 10**9 - 1
"""NumPy draws without replacement, which sharing out users takes, from fewer than 10^9."""
TOO_LARGE, TOO_SMALL = 2.0, 1 / 3
"""Observed errors beyond these multiples of the expected one are no luck, and count instead."""


@dataclass(frozen=True)
class Setting:
    """The number of users, the share of attackers to withstand, and the effort of a prediction.

    >>> from unpoison import Plan
    >>> Setting(users=10_000, tolerate=0.25).collections(Plan.new(epsilon=1.0, low=0, high=1))
    12
    """

    users: int
    tolerate: float
    trials: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        if not FEWEST_USERS <= self.users <= MOST_USERS:
            rule = f"must be a whole number from {FEWEST_USERS} to {MOST_USERS}"
            raise InvalidParameter("users", rule, self.users)
        if not 0 < self.tolerate < MOST_ATTACKERS:
            rule = "must be above 0 and below 1/2: more attackers than that outvote honest users"
            raise InvalidParameter("tolerate", rule, self.tolerate)
        if self.trials < 1:
            raise InvalidParameter("trials", "must be at least 1", self.trials)

    def collections(self, plan: Plan) -> int:
        """How many collections a plan is tried on."""
        return len(SHAPES) * (1 + len(attacks_on(plan))) * self.trials


@dataclass(frozen=True)
class Prediction:
    """A prediction about a plan; errors are root mean squares, in natural units or of frequencies.

    `error` is the expected one under attack, and `quiet_error` with nobody attacking; `seen_error`
    is what the few simulated attacks happened to give (of categories, the same). `price` is the
    error over that of one group, all of ε and nobody attacking. `detectable` is the share of
    attackers that would be noticed (NaN if none would), and `worst_case` the largest distance to
    the truth that is possible with the share to withstand, whatever attackers send.

    >>> from unpoison import Plan
    >>> plan = Plan.new(epsilon=1.0, min_epsilon=0.5, low=0, high=1)
    >>> line = Prediction(Candidate("equal users", plan), 0.02, 0.018, 0.01, 2.0, 0.05, 0.25)
    >>> line.worst, line.to_dict()["groups"][1]["reports"]
    (0.02, 2)
    """

    candidate: Candidate
    error: float
    seen_error: float
    quiet_error: float
    price: float
    detectable: float
    worst_case: float

    @property
    def worst(self) -> float:
        """The larger of the two errors: what a target is compared with."""
        return max(self.error, self.quiet_error)

    def to_dict(self) -> dict[str, Any]:
        """The fields for JSON; `detectable` is null where no share would be detected."""
        return {
            "design": self.candidate.design,
            "min_epsilon": self.candidate.plan.min_epsilon,
            "groups": self.candidate.plan.to_dict()["groups"],
            "reports_a_user": self.candidate.reports_a_user,
            "error": self.error,
            "seen_error": self.seen_error,
            "quiet_error": self.quiet_error,
            "price": self.price,
            "detectable": None if math.isnan(self.detectable) else self.detectable,
            "worst_case": self.worst_case,
        }


def predict(candidate: Candidate, setting: Setting, advance: Advance | None = None) -> Prediction:
    """Try a plan on reference users, with each of the attacks and with none, by the joint filter.

    Counts are drawn directly, so the time does not grow with the number of users. The squared error
    of a mean in a few collections is mostly luck; so for each attack the fit's own standard error
    counts instead, unless more than twice of that was seen (a wrong model, say), or less than a
    third. Errors of frequencies are averages over categories, and count as they are. `advance` is
    told of every collection.

    >>> from unpoison import Plan
    >>> plan = Plan.new("k-rr", epsilon=1.0, min_epsilon=0.5, categories=["tea", "milk", "water"])
    >>> prediction = predict(Candidate("equal users", plan), Setting(10_000, tolerate=0.1))
    >>> bool(0 < prediction.error < prediction.worst_case < 0.5)
    True
    """
    plan, advance = candidate.plan, advance or (lambda done: None)
    rng = np.random.default_rng(setting.seed)
    references = [Reference(shape, setting.users) for shape in SHAPES]
    populations = [reference.population(plan) for reference in references] * setting.trials
    worst_cases: list[float] = []

    def squared_errors(attack: str) -> tuple[float, float]:
        errors = []
        for population in populations:
            run = simulate(plan, population, attack, setting.tolerate, rng)
            analysis = JointAnalysis(run.summary, range(len(plan.groups)))
            errors.append((_observed_error(analysis, run), _expected_error(analysis)))
            if attack == "none":
                worst_cases.append(_worst_distance(analysis, run, setting.tolerate))
            advance(1)
        return _choose_error(*np.mean(errors, axis=0).tolist())

    quiet, _ = squared_errors("none")
    attacked = [squared_errors(attack) for attack in attacks_on(plan).values()]
    error, seen = np.mean(attacked, axis=0)
    floor = np.mean([reference.unprotected_error(plan) for reference in references])
    return Prediction(
        candidate=candidate,
        error=math.sqrt(error),
        seen_error=math.sqrt(seen),
        quiet_error=math.sqrt(quiet),
        price=math.sqrt(error / floor),
        detectable=max(detectable_share(plan, reference) for reference in references),
        worst_case=max(worst_cases),
    )


def _choose_error(seen: float, expected: float) -> tuple[float, float]:
    """The squared error that counts, and the one that was observed."""
    agree = TOO_SMALL**2 * expected <= seen <= TOO_LARGE**2 * expected
    return (expected if agree else seen), seen


def _observed_error(analysis: JointAnalysis, run: Simulation) -> float:
    """The squared error in one collection, in natural units²."""
    answer = analysis.answer()
    if run.frequencies is None:
        return float((answer["mean"] - run.truth) ** 2)
    errors = [answer["frequencies"][name] - truth for name, truth in run.frequencies.items()]
    return float(np.mean(np.square(errors)))


def _worst_distance(analysis: JointAnalysis, run: Simulation, attackers: float) -> float:
    """How far the truth is from the farther end of what is possible, in natural units."""
    plan = analysis.summary.plan
    ends = [possible.ends for possible in analysis.possible(attackers)]
    truths = [run.truth] if run.frequencies is None else list(run.frequencies.values())
    if not plan.categorical:
        ends = [(plan.natural(low), plan.natural(high)) for low, high in ends]
    pairs = zip(ends, truths, strict=True)
    return max(max(truth - low, high - truth) for (low, high), truth in pairs)


def _expected_error(analysis: JointAnalysis) -> float:
    """The squared standard error of the mean, by the fit; NaN for frequencies."""
    plan = analysis.summary.plan
    if plan.categorical:
        return math.nan
    standard_error = analysis.fit.standard_error(analysis.counts.values)
    widened_error = standard_error * analysis.intervals.error_factor
    return (plan.unit * widened_error) ** 2
