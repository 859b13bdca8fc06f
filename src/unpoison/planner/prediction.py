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
EXPLAINED = 3.0


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

    `error` is the expected one under attack, and `quiet_error` with nobody attacking; `seen_error`
    is what the few simulated attacks happened to give. `price` is the error over that of one group,
    all of ε and nobody attacking.
    `detectable` is the share of attackers that would be noticed (NaN if none would), and
    `blind_spot` the largest shift that the share to withstand could hide.

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
            "seen_error": self.seen_error,
            "quiet_error": self.quiet_error,
            "price": self.price,
            "detectable": None if math.isnan(self.detectable) else self.detectable,
            "blind_spot": self.blind_spot,
        }


def predict(candidate: Candidate, setting: Setting, advance: Advance | None = None) -> Prediction:
    """Try a plan on reference users, with each of the attacks and with none, by the joint filter.

    Counts are drawn directly, so the time does not grow with the number of users. The squared error
    of a few collections is mostly luck. So an error that the fit's own standard error explains
    counts as that says, and only one beyond three standard errors (a wrong model, say) as it is.
    `advance` is told of every collection.

    >>> from unpoison import Plan
    >>> plan = Plan.new("k-rr", epsilon=1.0, min_epsilon=0.5, categories=["tea", "milk", "water"])
    >>> found = predict(Candidate("equal users", plan), Setting(10_000, tolerate=0.1))
    >>> bool(0 < found.error < found.blind_spot < 0.5)
    True
    """
    plan, told = candidate.plan, advance or (lambda done: None)
    rng = np.random.default_rng(setting.seed)
    attacked: list[tuple[float, float]] = []
    quiet: list[tuple[float, float]] = []
    blind: list[float] = []
    references = [Reference(shape, setting.users) for shape in SHAPES]
    for reference in references * setting.trials:
        for attack in ("none", *attacks_on(plan).values()):
            run = simulate(plan, reference.population(plan), attack, setting.tolerate, rng)
            analysis = JointAnalysis(run.summary, range(len(plan.groups)))
            (quiet if attack == "none" else attacked).append(_squared_errors(analysis, run))
            if attack == "none":
                blind.append(analysis.blind(setting.tolerate))
            told(1)
    floor = np.mean([each.unprotected_error(plan) for each in references])
    error, seen = np.sqrt(np.mean(attacked, axis=0)).tolist()
    return Prediction(
        candidate=candidate,
        error=error,
        seen_error=seen,
        quiet_error=float(np.sqrt(np.mean(quiet, axis=0))[0]),
        price=error / math.sqrt(floor),
        detectable=max(detectable_share(plan, each) for each in references),
        blind_spot=max(blind) * (1.0 if plan.categorical else plan.unit),
    )


def _squared_errors(analysis: JointAnalysis, run: Simulation) -> tuple[float, float]:
    """The expected and the actual squared error of one collection, in natural units²."""
    seen, expected = _seen(analysis, run), _expected(analysis)
    return (expected if seen <= EXPLAINED**2 * expected else seen), seen


def _seen(analysis: JointAnalysis, run: Simulation) -> float:
    answer = analysis.answer()
    if run.frequencies is None:
        return float((answer["mean"] - run.truth) ** 2)
    errors = [answer["frequencies"][name] - truth for name, truth in run.frequencies.items()]
    return float(np.mean(np.square(errors)))


def _expected(analysis: JointAnalysis) -> float:
    plan = analysis.summary.plan
    if plan.categorical:
        variance = float(np.mean(np.diag(analysis.fit.honest_covariance)))
    else:
        variance = (plan.unit * analysis.fit.deviation(analysis.counts.values)) ** 2
    return variance * analysis.strain**2
