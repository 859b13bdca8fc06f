"""Simulated collections on which constants of the joint filter are measured, and the outcomes."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np

from unpoison.estimate import Estimate
from unpoison.estimate.significance import NOBODY_ATTACKS_LEVEL
from unpoison.filters.joint import constants
from unpoison.plan import Plan
from unpoison.protocols import estimate_joint
from unpoison.simulation import Simulation, simulate
from unpoison.simulation.population import Population
from unpoison.simulation.trial import squared_error

USERS = 10**5
"""Few enough for noise to matter. Counts are drawn directly, so time does not depend on it."""
ATTACKER_SHARE = 0.2
"""Between the two shares of `reproduce joint`, 0.1 and 0.3."""
GROUPS = 3
"""Budgets of a plan: ε, ε/2 and ε/4. Time grows with their number; one alone identifies nothing."""
SMALL, LARGE = 1.0, 4.0
"""The largest ε of a plan: with the one, noise is wider than the range of values; with the other it
is narrow enough to show where they are."""
ATTACKS = {
    SMALL: (
        "none",
        "none",
        "uniform:3C/4,C",
        "uniform:O,C",
        "evasion:0.3",
        "adaptive",
        "noise",
    ),
    LARGE: ("none", "none", "uniform:3C/4,C", "point:C", "opposite", "noise"),
}
"""Attacks by ε, with one collection each: every kind of model is the right one somewhere."""
SHARED_VALUE = 0.37
"""The value of all users in one collection: the middle of no input bucket."""
CATEGORY_SHARES = {"a": 0.4, "b": 0.3, "c": 0.16, "d": 0.1, "e": 0.04}
"""From a category of many users to a rare one, ten to one."""


@dataclass(frozen=True, eq=False)
class Measured:
    """One collection of the grid, its estimate, and the constants that the estimate depends on.

    `seconds` is processor time, which other programs on the machine do not lengthen.
    """

    run: Simulation
    estimate: Estimate
    seconds: float
    constants_read: frozenset[str]

    @classmethod
    def of(cls, run: Simulation) -> Measured:
        """Estimate with the constants as they are now."""
        started = time.process_time()
        with recorded_reads() as names:
            estimate = estimate_joint(run.summary)
        return cls(run, estimate, time.process_time() - started, frozenset(names))

    @property
    def error(self) -> float:
        """Squared error over the floor."""
        return squared_error(self.estimate, self.run) / self.run.floor


@dataclass(frozen=True)
class Outcome:
    """Errors, intervals and times on the whole grid, with one setting of the filter's constants."""

    median_error: float
    worst_error: float
    covered: float
    width: float
    false_alarms: float
    doubts: float
    seconds: float

    @classmethod
    def of(cls, measured: Sequence[Measured]) -> Outcome:
        """Medians, extremes and shares over the collections."""
        estimates = [case.estimate for case in measured]
        errors = [case.error for case in measured]
        intervals = [
            (*case.estimate.interval, case.run.truth)
            for case in measured
            if case.estimate.interval is not None
        ]
        honest = [case.estimate for case in measured if case.run.byzantine_fraction == 0]
        alarms = [
            estimate.fit["nobody_attacks_p_value"] < NOBODY_ATTACKS_LEVEL for estimate in honest
        ]
        return cls(
            median_error=float(np.median(errors)),
            worst_error=max(errors),
            covered=float(np.mean([low <= truth <= high for low, high, truth in intervals])),
            width=float(np.median([high - low for low, high, _ in intervals])),
            false_alarms=float(np.mean(alarms)),
            doubts=float(np.mean([estimate.fit["doubt"] for estimate in estimates])),
            seconds=float(np.median([case.seconds for case in measured])),
        )


@contextmanager
def recorded_reads() -> Iterator[set[str]]:
    """Record the names that are read from the module of constants inside a `with` statement."""
    names: set[str] = set()

    class RecordingModule(ModuleType):
        def __getattribute__(self, name: str) -> object:
            names.add(name)
            return super().__getattribute__(name)

    constants.__class__ = RecordingModule
    try:
        yield names
    finally:
        constants.__class__ = ModuleType


@cache
def grid() -> list[Simulation]:
    """The collections: the same for every setting, so that differences are the constants' own."""
    users = Population.of(np.random.default_rng(1).beta(2, 5, USERS))
    same_value = Population.of(np.full(USERS, SHARED_VALUE))
    kinds = np.array(list(CATEGORY_SHARES))
    held = np.round(USERS * np.array([*CATEGORY_SHARES.values()])).astype(np.int64)
    runs = []
    for epsilon, attacks in ATTACKS.items():
        plan = _plan(epsilon, low=0, high=1)
        runs += [_collection(plan, users, attack, seed) for seed, attack in enumerate(attacks)]
    # 64 buckets are too coarse for one shared value at a large ε; k-RR has few buckets at any.
    runs.append(_collection(_plan(LARGE, low=0, high=1), same_value, "none", 0))
    categories = _plan(SMALL, mechanism="k-rr", categories=list(CATEGORY_SHARES))
    runs.append(_collection(categories, Population(kinds, held), "none", 0))
    return runs


def _plan(epsilon: float, **domain: Any) -> Plan:
    return Plan.new(epsilon=epsilon, min_epsilon=epsilon / 2 ** (GROUPS - 1), **domain)


def _collection(plan: Plan, users: Population, attack: str, seed: int) -> Simulation:
    return simulate(plan, users, attack, ATTACKER_SHARE, np.random.default_rng(seed))
