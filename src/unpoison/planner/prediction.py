"""What a plan promises: its error under attack, what it notices, and what it cannot see."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from unpoison.errors import InvalidParameter
from unpoison.planner.candidates import Candidate
from unpoison.planner.detection import detectable_share
from unpoison.planner.reference import NUMBER_ATTACKS, SHAPES, Reference, attacks_on
from unpoison.protocols.joint_analysis import JointAnalysis
from unpoison.simulation import Simulation, simulate

Advance = Callable[[int], None]
FEWEST_USERS, MOST_USERS = 1000, 10**9 - 1
MOST_ATTACKERS = 0.5


@dataclass(frozen=True)
class Setting:
    """How many users there will be, what share of attackers to withstand, and how much to try.

    >>> Setting(users=10_000, tolerate=0.25).work
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

    @property
    def work(self) -> int:
        """How many collections a plan is tried on."""
        return len(SHAPES) * (1 + len(NUMBER_ATTACKS)) * self.trials


@dataclass(frozen=True)
class Prediction:
    """One plan. Errors are root mean squares in natural units; of categories, of a frequency.

    `error` is under attack, with its own standard error beside it; `quiet_error` is with nobody
    attacking. `price` is the error over that of one group, all of ε and nobody attacking.
    `detectable` is the share of attackers that would be noticed (NaN if none would), and
    `blind_spot` the largest shift that the share to withstand could hide.

    >>> from unpoison import Plan
    >>> plan = Plan.new(epsilon=1.0, min_epsilon=0.5, low=0, high=1)
    >>> line = Prediction(Candidate("equal users", plan), 0.02, 0.003, 0.01, 2.0, 0.05, 0.25)
    >>> line.worst, line.to_dict()["groups"][1]["reports"]
    (0.02, 2)
    """

    candidate: Candidate
    error: float
    error_deviation: float
    quiet_error: float
    price: float
    detectable: float
    blind_spot: float

    @property
    def worst(self) -> float:
        """The larger of the two errors: what a target is compared with."""
        return max(self.error, self.quiet_error)

    def to_dict(self) -> dict[str, Any]:
        """For JSON; `detectable` is null where nothing would be noticed."""
        return {
            "design": self.candidate.design,
            "min_epsilon": self.candidate.plan.min_epsilon,
            "groups": self.candidate.plan.to_dict()["groups"],
            "reports_a_user": self.candidate.reports_a_user,
            "error": self.error,
            "error_deviation": self.error_deviation,
            "quiet_error": self.quiet_error,
            "price": self.price,
            "detectable": None if math.isnan(self.detectable) else self.detectable,
            "blind_spot": self.blind_spot,
        }


def predict(candidate: Candidate, setting: Setting, advance: Advance | None = None) -> Prediction:
    """Try a plan on reference users, with each of the attacks and with none, by the joint filter.

    Counts are drawn directly, so the time does not grow with the number of users. `advance` is told
    of every collection.

    >>> from unpoison import Plan
    >>> plan = Plan.new("k-rr", epsilon=1.0, min_epsilon=0.5, categories=["tea", "milk", "water"])
    >>> found = predict(Candidate("equal users", plan), Setting(10_000, tolerate=0.1))
    >>> bool(0 < found.error < found.blind_spot < 0.5)
    True
    """
    plan, told = candidate.plan, advance or (lambda done: None)
    rng = np.random.default_rng(setting.seed)
    attacked: list[float] = []
    quiet: list[float] = []
    blind: list[float] = []
    references = [Reference(shape, setting.users) for shape in SHAPES]
    for reference in references * setting.trials:
        for attack in ("none", *attacks_on(plan).values()):
            run = simulate(plan, reference.population(plan), attack, setting.tolerate, rng)
            analysis = JointAnalysis(run.summary, range(len(plan.groups)))
            (quiet if attack == "none" else attacked).append(_squared_error(analysis, run))
            if attack == "none":
                blind.append(analysis.blind(setting.tolerate))
            told(1)
    floor = np.mean([each.unprotected_error(plan) for each in references])
    error, deviation = _root_mean(attacked)
    return Prediction(
        candidate=candidate,
        error=error,
        error_deviation=deviation,
        quiet_error=_root_mean(quiet)[0],
        price=error / math.sqrt(floor),
        detectable=max(detectable_share(plan, each) for each in references),
        blind_spot=max(blind) * (1.0 if plan.categorical else plan.unit),
    )


def _squared_error(analysis: JointAnalysis, run: Simulation) -> float:
    answer = analysis.answer()
    if run.frequencies is None:
        return float((answer["mean"] - run.truth) ** 2)
    errors = [answer["frequencies"][name] - truth for name, truth in run.frequencies.items()]
    return float(np.mean(np.square(errors)))


def _root_mean(squares: list[float]) -> tuple[float, float]:
    """The root of the mean, and its standard error."""
    mean = float(np.mean(squares))
    if mean == 0 or len(squares) < 2:
        return math.sqrt(mean), 0.0
    of_mean = float(np.std(squares, ddof=1)) / math.sqrt(len(squares))
    return math.sqrt(mean), of_mean / (2 * math.sqrt(mean))
