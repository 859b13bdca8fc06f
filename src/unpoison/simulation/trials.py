"""Repeated simulated collections, each estimated by several methods, as tidy rows."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from unpoison.attacks import Attack
from unpoison.estimate import Estimate
from unpoison.estimate.methods import Method, estimates_together, find_method
from unpoison.estimate.options import FilterOptions
from unpoison.estimate.statistic import Statistic
from unpoison.plan import Plan
from unpoison.plan.budgets import DAP
from unpoison.simulation.faults import Fault
from unpoison.simulation.ground_truth import Simulation
from unpoison.simulation.oracle import ORACLE, oracle_estimate
from unpoison.simulation.simulate import DEFAULT_FAULTY_FRACTION, simulate
from unpoison.simulation.trial import GROUPED, UNGROUPED, Trial, compare_with_truth

TimedEstimates = list[tuple[Estimate, float]]
"""Estimates of one collection, each with the seconds it took."""
MethodOrOracle = Method | str
"""A method, or the name of the oracle, which is no method."""
TRIALS_AT_ONCE = 10
"""Trials that share their work: enough to gain, few enough to hold in memory."""


def ungrouped(plan: Plan) -> Plan:
    """The plan of the same collection without groups: everybody reports once, with all of ε.

    >>> plan = Plan.new(epsilon=1.0, min_epsilon=0.25, low=0, high=1)
    >>> [(group.epsilon, group.reports) for group in ungrouped(plan).groups]
    [(1.0, 1)]
    """
    keys = {key: value for key, value in plan.to_dict().items() if key not in ("groups", "tiers")}
    return Plan.from_dict({**keys, "protocol": DAP, "min_epsilon": plan.epsilon})


def rivals_of(plan: Plan, methods: Sequence[str]) -> list[Method]:
    """The methods that get an ungrouped collection too: defences, where the plan has groups.

    >>> plan = Plan.new(epsilon=0.5, min_epsilon=0.25, low=0, high=1)
    >>> [method.name for method in rivals_of(plan, ["joint", "oracle", "ostrich"])]
    ['ostrich']
    """
    if len(plan.all_groups) == 1:
        return []
    resolved = [find_method(name) for name in methods if name != ORACLE]
    return [method for method in resolved if method.is_defence]


def run_trials(
    plan: Plan,
    values: Any,
    attack: str | Attack,
    byzantine_fraction: float,
    methods: Sequence[str],
    *,
    trials: int = 1,
    rng: np.random.Generator | None = None,
    options: FilterOptions | None = None,
    statistic: Statistic | None = None,
    shared: bool = False,
    fault: str | Fault | None = None,
    faulty_fraction: float = DEFAULT_FAULTY_FRACTION,
    advance: Callable[[int], None] | None = None,
) -> tuple[list[Trial], Simulation]:
    """Run all methods on `trials` collections; rivals also on ungrouped ones (their best case).

    Also returns the last grouped collection. Methods are timed one by one, unless their work is to
    be `shared`. A `fault` is one that the clients of a share of the honest users have. `advance` is
    told of users as they are simulated.

    >>> plan, values = Plan.new(epsilon=0.5, min_epsilon=0.25, low=0, high=1), np.full(2000, 0.25)
    >>> methods, rng = ["emf*", "ostrich"], np.random.default_rng(1)
    >>> rows, last = run_trials(plan, values, "uniform:3C/4,C", 0.25, methods, rng=rng)
    >>> [(row.method, row.collection) for row in rows]
    [('emf-star', 'grouped'), ('ostrich', 'grouped'), ('ostrich', 'ungrouped')]
    """

    def collect(plan: Plan, stream: np.random.Generator) -> Simulation:
        return simulate(
            plan,
            values,
            attack,
            byzantine_fraction,
            stream,
            fault=fault,
            faulty_fraction=faulty_fraction,
            advance=advance,
        )

    oracle_and_methods = [ORACLE if name == ORACLE else find_method(name) for name in methods]
    rivals = rivals_of(plan, methods)
    estimator = _Estimator(options, statistic, shared)
    # Every trial has a stream for each of its two collections, whatever methods there are.
    streams = [stream.spawn(2) for stream in (rng or np.random.default_rng()).spawn(trials)]
    batch_size = TRIALS_AT_ONCE if shared else 1
    rows: list[Trial] = []
    for first in range(0, trials, batch_size):
        batch = streams[first : first + batch_size]
        grouped_runs = [collect(plan, stream) for stream, _ in batch]
        answers = estimator.estimates(grouped_runs, oracle_and_methods)
        ungrouped_runs = [collect(ungrouped(plan), stream) for _, stream in batch] if rivals else []
        rival_answers = estimator.estimates(ungrouped_runs, rivals)
        for index, run in enumerate(grouped_runs):
            trial = first + index
            rows += [compare_with_truth(trial, GROUPED, run, run, *pair) for pair in answers[index]]
            if rivals:
                alone = ungrouped_runs[index]
                rows += [
                    compare_with_truth(trial, UNGROUPED, alone, run, *pair)
                    for pair in rival_answers[index]
                ]
    return rows, run


@dataclass(frozen=True)
class _Estimator:
    """Runs methods on collections: together, to share work, or one by one, to time them."""

    options: FilterOptions | None
    statistic: Statistic | None
    shared: bool

    def estimates(
        self, runs: list[Simulation], methods: Sequence[MethodOrOracle]
    ) -> list[TimedEstimates]:
        """Estimate each collection by all methods, with the seconds of each (NaN if shared)."""
        if self.shared:
            together = self._untimed(runs, methods)
            return [[(answer, math.nan) for answer in answers] for answers in together]
        return [[self._timed(run, method) for method in methods] for run in runs]

    def _timed(self, run: Simulation, method: MethodOrOracle) -> tuple[Estimate, float]:
        started = time.perf_counter()
        ((answer,),) = self._untimed([run], [method])
        return answer, time.perf_counter() - started

    def _untimed(
        self, runs: list[Simulation], methods: Sequence[MethodOrOracle]
    ) -> list[list[Estimate]]:
        """Estimates of the methods from all reports, that of the oracle from the honest ones."""
        summaries = [run.summary for run in runs]
        known = [method for method in methods if isinstance(method, Method)]
        by_name = estimates_together(summaries, known, self.options, self.statistic)
        if ORACLE in methods:
            for run, answers in zip(runs, by_name, strict=True):
                answers[ORACLE] = oracle_estimate(run, self.statistic)
        names = [method.name if isinstance(method, Method) else ORACLE for method in methods]
        return [[answers[name] for name in names] for answers in by_name]
