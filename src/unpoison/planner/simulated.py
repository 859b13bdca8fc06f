"""Simulated collections of a plan under attack, and the error that several of them show."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from zlib import crc32

import numpy as np
import scipy

from unpoison.filters.joint import Intervals, JointCounts, choose_model
from unpoison.filters.joint.selection import ModelChoice
from unpoison.plan import Plan
from unpoison.planner.reference import SHAPES, Reference, attacks_on
from unpoison.planner.setting import Setting
from unpoison.simulation import Simulation, simulate
from unpoison.system.blas import single_threaded

DISAGREEMENT = 0.02
"""The level of the test, with two sides, by which observed errors are not the attainable ones."""
TRIALS_WORTH = 8
"""Trials that the attainable error is worth: real errors are within about a quarter of it where the
filter finds the poison, and so are those of 8 trials within a quarter of their expectation."""
FEW_TRIALS = 3
"""Trials below which their own scatter says nothing."""


@dataclass(frozen=True)
class Situation:
    """A simulated situation: the attack, and the shape of users' values; both by name.

    >>> plan = Plan.new(epsilon=1.0, min_epsilon=0.25, low=0, high=1)
    >>> len(Situation.all_on(plan)), Situation.all_on(plan)[0].shape
    (9, 'Beta(2,5)')
    """

    attack: str
    shape: str

    @classmethod
    def all_on(cls, plan: Plan) -> list[Situation]:
        """Every attack that a plan is to withstand, on every shape."""
        return [cls(attack, shape) for attack in attacks_on(plan) for shape in SHAPES]


@dataclass(frozen=True)
class Outcome:
    """The joint filter's error in one collection, in natural units or of frequencies.

    >>> Outcome(squared_error=0.01, interval_width=0.4).squared_error
    0.01
    """

    squared_error: float
    interval_width: float
    """Width of the 95 % interval; the widest of all categories."""


@dataclass(frozen=True)
class Draw:
    """One simulated collection, with all that it depends on.

    Collections of other plans with the same number have the same random numbers.

    >>> plan = Plan.new("k-rr", epsilon=1.0, min_epsilon=0.5, categories=["tea", "milk", "water"])
    >>> draw = Draw(plan, Situation.all_on(plan)[0], Setting(10_000, tolerate=0.1), number=0)
    >>> 0 < draw.run().squared_error < 0.01
    True
    """

    plan: Plan
    situation: Situation
    setting: Setting
    number: int

    @single_threaded
    def run(self) -> Outcome:
        """Simulate the collection, and estimate it by the joint filter."""
        reference = Reference(self.situation.shape, self.setting.users)
        names = (self.situation.attack, self.situation.shape)
        seeds = [crc32(name.encode()) for name in names]
        rng = np.random.default_rng([self.setting.seed, *seeds, self.number])
        attack, share = attacks_on(self.plan)[self.situation.attack], self.setting.tolerate
        run = simulate(self.plan, reference.population(self.plan), attack, share, rng)
        # The model alone: an estimate's distribution, p-values and worst case take longer.
        counts = JointCounts.of(run.summary, range(len(self.plan.groups)))
        return _outcome(self.plan, choose_model(counts), run)


def _outcome(plan: Plan, choice: ModelChoice, run: Simulation) -> Outcome:
    intervals = Intervals(choice)
    if run.frequencies is not None:
        errors = choice.best.honest - np.array(list(run.frequencies.values()))
        ranges = [intervals.mean(row) for row in np.eye(len(errors))]
        widest = max(high - low for low, high in ranges)
        return Outcome(float(np.mean(np.square(errors))), widest)
    values = choice.counts.values
    error = plan.natural(intervals.expected_mean(values)) - run.truth
    low, high = intervals.mean(values)
    return Outcome(float(error**2), plan.natural_scale * (high - low))


@dataclass(frozen=True)
class PredictedError:
    """A root mean squared error, the standard error of that figure, and how many trials it is from.

    >>> PredictedError(0.2, 0.01, 8).error
    0.2
    """

    error: float
    standard_error: float
    trials: int

    @classmethod
    def of(cls, squared_errors: Sequence[float], attainable: float) -> PredictedError:
        """Predict from the squared errors of some collections, and from the attainable error.

        Squared errors of few collections are mostly luck. So where they do not contradict the
        attainable error, by a χ² test, that counts as some trials more. Where they do, the filter
        does not find the poison, and what was observed counts alone.

        >>> PredictedError.of([0.01, 0.01, 0.01, 0.01], attainable=0.1).error
        0.1
        >>> PredictedError.of([1.0, 1.0, 1.0, 1.0], attainable=0.1).error
        1.0
        """
        trials, observed = len(squared_errors), float(np.mean(squared_errors))
        if _agree(trials, observed, attainable):
            together = trials + TRIALS_WORTH
            squared = (trials * observed + TRIALS_WORTH * attainable**2) / together
            scatter = math.sqrt(2 / together) * squared
        else:
            squared, scatter = observed, _scatter(squared_errors, attainable)
        error = math.sqrt(squared)
        return cls(error, scatter / (2 * error) if error else 0.0, trials)

    @property
    def relative(self) -> float:
        """The standard error as a part of the figure."""
        return self.standard_error / self.error if self.error else 0.0


def _scatter(squared_errors: Sequence[float], attainable: float) -> float:
    """The standard error of an average of squared errors."""
    trials, observed = len(squared_errors), float(np.mean(squared_errors))
    if trials < FEW_TRIALS:
        return math.sqrt(2 / trials) * observed
    # Not less than if only the attainable error scattered, about a bias that is always the same:
    # three numbers may happen to be much alike.
    least = 2 * math.sqrt(observed) * attainable
    return max(float(np.std(squared_errors, ddof=1)), least) / math.sqrt(trials)


def _agree(trials: int, observed: float, attainable: float) -> bool:
    if not attainable:
        return False
    chance = float(scipy.special.chdtr(trials, trials * observed / attainable**2))
    return DISAGREEMENT / 2 < chance < 1 - DISAGREEMENT / 2
