"""Repeated simulated collections, each estimated by several methods, as tidy rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from unpoison.attacks import Attack
from unpoison.defences import defences
from unpoison.estimate import Estimate
from unpoison.methods import canonical, estimates
from unpoison.plan import Plan
from unpoison.protocols import FilterOptions
from unpoison.simulation import Simulation, simulate

GROUPED, UNGROUPED = "grouped", "ungrouped"


@dataclass(frozen=True)
class Trial:
    """One method on one collection. `floor` is the grouped plan's, for every row.

    >>> found = {"byzantine_fraction": 0.25, "side": "right", "seconds": 0.1}
    >>> bounds = {"floor": 0.0625, "cramer_rao": 0.03}
    >>> trial = Trial(0, "emf", GROUPED, mean=0.75, truth=0.5, **bounds, **found)
    >>> (trial.mean - trial.truth) ** 2 / trial.floor
    1.0
    """

    trial: int
    method: str
    collection: str
    mean: float
    truth: float
    floor: float
    cramer_rao: float
    byzantine_fraction: float
    side: str
    seconds: float


@dataclass(frozen=True)
class Score:
    """A method over all trials: mean squared error over the mean floor.

    >>> line = Score("emf", GROUPED, 10, 0.5, 0.0, 1.25, 0.25, side="right", seconds=0.1)
    >>> line.to_dict()["mse_over_floor"]
    1.25
    """

    method: str
    collection: str
    trials: int
    mean: float
    bias: float
    mse_over_floor: float
    byzantine_fraction: float
    side: str
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def ungrouped(plan: Plan) -> Plan:
    """The same collection without groups: everybody reports once, with all of ε.

    >>> plan = Plan.new(epsilon=1.0, min_epsilon=0.25, low=0, high=1)
    >>> [(group.epsilon, group.reports) for group in ungrouped(plan).groups]
    [(1.0, 1)]
    """
    keys = {key: value for key, value in plan.to_dict().items() if key not in ("groups", "tiers")}
    return Plan.from_dict({**keys, "protocol": "dap", "min_epsilon": plan.epsilon})


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
    advance: Callable[[int], None] | None = None,
) -> tuple[list[Trial], Simulation]:
    """All methods on `trials` collections; rivals also on ungrouped ones (their best case).

    Also returns the last grouped collection. `advance` is told of users as they are simulated.

    >>> plan, values = Plan.new(epsilon=0.5, min_epsilon=0.25, low=0, high=1), np.full(2000, 0.25)
    >>> methods, rng = ["emf*", "ostrich"], np.random.default_rng(1)
    >>> rows, last = run_trials(plan, values, "uniform:3C/4,C", 0.25, methods, rng=rng)
    >>> [(row.method, row.collection) for row in rows]
    [('emf-star', 'grouped'), ('ostrich', 'grouped'), ('ostrich', 'ungrouped')]
    """
    names = [canonical(method) for method in methods]
    rivals = [name for name in names if name in defences]
    rows: list[Trial] = []
    for trial, stream in enumerate((rng or np.random.default_rng()).spawn(trials)):
        first, second = stream.spawn(2)
        run = simulate(plan, values, attack, byzantine_fraction, first, advance=advance)
        rows += _rows(trial, GROUPED, run, run, names, options)
        if rivals and len(plan.all_groups) > 1:
            alone = simulate(
                ungrouped(plan), values, attack, byzantine_fraction, second, advance=advance
            )
            rows += _rows(trial, UNGROUPED, alone, run, rivals, options)
    return rows, run


def _rows(
    trial: int,
    collection: str,
    run: Simulation,
    grouped: Simulation,
    names: list[str],
    options: FilterOptions | None,
) -> list[Trial]:
    rows = []
    for name in names:
        started = time.perf_counter()
        answer = estimates(run.summary, [name], options)[name]
        seconds = time.perf_counter() - started
        rows.append(_row(trial, collection, run, grouped, answer, seconds))
    return rows


def _row(
    trial: int,
    collection: str,
    run: Simulation,
    grouped: Simulation,
    answer: Estimate,
    seconds: float,
) -> Trial:
    return Trial(
        trial=trial,
        method=answer.method,
        collection=collection,
        mean=answer.mean,
        truth=run.truth,
        floor=grouped.floor,
        cramer_rao=grouped.cramer_rao,
        byzantine_fraction=answer.byzantine.fraction,
        side=answer.byzantine.side,
        seconds=seconds,
    )


def score(rows: Sequence[Trial]) -> list[Score]:
    """One line a method and collection, in the order in which they first appear.

    >>> rest = (0.5, 0.0625, 0.03, 0.25, "right", 0.1)
    >>> low, high = (Trial(0, "emf", GROUPED, mean, *rest) for mean in (0.25, 0.75))
    >>> [(line.trials, line.bias, line.mse_over_floor) for line in score([low, high])]
    [(2, 0.0, 1.0)]
    """
    kinds = dict.fromkeys((row.method, row.collection) for row in rows)
    return [_score([row for row in rows if (row.method, row.collection) == kind]) for kind in kinds]


def _score(rows: list[Trial]) -> Score:
    errors = np.array([row.mean - row.truth for row in rows])
    floors = np.array([row.floor for row in rows])
    sides = [row.side for row in rows]
    return Score(
        method=rows[0].method,
        collection=rows[0].collection,
        trials=len(rows),
        mean=float(np.mean([row.mean for row in rows])),
        bias=float(errors.mean()),
        mse_over_floor=float((errors**2).mean() / floors.mean()),
        byzantine_fraction=float(np.mean([row.byzantine_fraction for row in rows])),
        side=max(dict.fromkeys(sides), key=sides.count),
        seconds=float(np.mean([row.seconds for row in rows])),
    )
