"""Repeated simulated collections, each estimated by several methods, as tidy rows."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from unpoison.attacks import Attack
from unpoison.defences import defences
from unpoison.estimate import Estimate
from unpoison.estimate.distribution import wasserstein
from unpoison.estimate.methods import Method, estimates_together, find_method
from unpoison.estimate.statistic import Statistic
from unpoison.filters.sides import SIDES
from unpoison.plan import Plan
from unpoison.protocols import FilterOptions
from unpoison.protocols.unfiltered import unfiltered_answer
from unpoison.simulation import Simulation, simulate

GROUPED, UNGROUPED = "grouped", "ungrouped"
ORACLE = "oracle"
"""A method of simulations only: it knows who attacks, and trusts the others."""
Timed = list[tuple[Estimate, float]]
Chosen = Method | str
"""A method, or the name of the oracle."""
AT_ONCE = 10
"""How many trials share their work: enough to gain, few enough to hold in memory."""


@dataclass(frozen=True)
class Trial:
    """One method on one collection. `floor` is the grouped plan's, for every row.

    `squared_error` is that of the mean; for categories that of a frequency, averaged over them.
    `side` is the one that attackers seem to be on, or names their categories. `wasserstein` is the
    distance of the distribution from the truth, where that was asked for. `located` is 1 if exactly
    the categories that attackers send were found, else 0. `variance_left` and `variance_right` are
    those of x̂ with poison on that side, by which Alg. 3 chooses. `covered` is 1 if the interval has
    the truth in it, else 0; `p_value` is that of "nobody attacks"; `doubt` is 1 if the method says
    that the data cannot tell, else 0.

    >>> found = {"byzantine_fraction": 0.25, "side": "right", "seconds": 0.1}
    >>> bounds = {"floor": 0.0625, "cramer_rao": 0.03}
    >>> trial = Trial(0, "emf", GROUPED, 0.75, 0.5, squared_error=0.0625, **bounds, **found)
    >>> trial.squared_error / trial.floor
    1.0
    """

    trial: int
    method: str
    collection: str
    mean: float
    truth: float
    squared_error: float
    floor: float
    cramer_rao: float
    byzantine_fraction: float
    side: str
    seconds: float
    wasserstein: float = math.nan
    located: float = math.nan
    variance_left: float = math.nan
    variance_right: float = math.nan
    covered: float = math.nan
    p_value: float = math.nan
    doubt: float = math.nan
    frequencies: dict[str, float] | None = None


@dataclass(frozen=True)
class Score:
    """A method over all trials: mean squared error over the mean floor (NaN where that is 0).

    `located` is the share of trials in which the poisoned categories were found exactly, and
    `frequencies` are those of the last trial.

    >>> line = Score("emf", GROUPED, 10, 0.5, 0.0, 0.125, 1.25, 0.25, side="right", seconds=0.1)
    >>> line.to_dict()["mse_over_floor"]
    1.25
    """

    method: str
    collection: str
    trials: int
    mean: float
    bias: float
    mse: float
    mse_over_floor: float
    byzantine_fraction: float
    side: str
    seconds: float
    wasserstein: float = math.nan
    located: float = math.nan
    frequencies: dict[str, float] | None = None

    @property
    def label(self) -> str:
        """The method, and whether it had a collection of its own."""
        return self.method if self.collection == GROUPED else f"{self.method} (ungrouped)"

    def to_dict(self) -> dict[str, Any]:
        """For JSON: what there is not (the mean of categories, say) is left out.

        Of categories `side` is called `poisoned`.
        """
        facts = {key: value for key, value in asdict(self).items() if _present(value)}
        if self.frequencies is not None:
            facts["poisoned"] = facts.pop("side")
        return facts


def _present(value: object) -> bool:
    return value is not None and not (isinstance(value, float) and math.isnan(value))


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
    asked: Statistic | None = None,
    shared: bool = False,
    advance: Callable[[int], None] | None = None,
) -> tuple[list[Trial], Simulation]:
    """All methods on `trials` collections; rivals also on ungrouped ones (their best case).

    Also returns the last grouped collection. Methods are timed one by one, unless their work is to
    be `shared`. `advance` is told of users as they are simulated.

    >>> plan, values = Plan.new(epsilon=0.5, min_epsilon=0.25, low=0, high=1), np.full(2000, 0.25)
    >>> methods, rng = ["emf*", "ostrich"], np.random.default_rng(1)
    >>> rows, last = run_trials(plan, values, "uniform:3C/4,C", 0.25, methods, rng=rng)
    >>> [(row.method, row.collection) for row in rows]
    [('emf-star', 'grouped'), ('ostrich', 'grouped'), ('ostrich', 'ungrouped')]
    """

    def collect(of: Plan, stream: np.random.Generator) -> Simulation:
        return simulate(of, values, attack, byzantine_fraction, stream, advance=advance)

    def answers(runs: list[Simulation], of: Sequence[Chosen]) -> list[Timed]:
        return (_together if shared else _one_by_one)(runs, of, options, asked)

    chosen = [ORACLE if method == ORACLE else find_method(method) for method in methods]
    rivals = [method for method in chosen if isinstance(method, Method) and method.is_defence]
    rows: list[Trial] = []
    streams = [each.spawn(2) for each in (rng or np.random.default_rng()).spawn(trials)]
    both = bool(rivals) and len(plan.all_groups) > 1
    at_once = AT_ONCE if shared else 1
    for first in range(0, trials, at_once):
        lot = streams[first : first + at_once]
        runs = [collect(plan, stream) for stream, _ in lot]
        alone = [collect(ungrouped(plan), stream) for _, stream in lot] if both else []
        found = answers(runs, chosen)
        found_alone = answers(alone, rivals) if both else [[] for _ in lot]
        for place, run in enumerate(runs):
            rows += [_row(first + place, GROUPED, run, run, *each) for each in found[place]]
            rows += [
                _row(first + place, UNGROUPED, alone[place], run, *each)
                for each in found_alone[place]
            ]
    return rows, run


def _one_by_one(
    runs: list[Simulation],
    chosen: Sequence[Chosen],
    options: FilterOptions | None,
    asked: Statistic | None,
) -> list[Timed]:
    """Each method by itself, with its time."""

    def timed(run: Simulation, method: Chosen) -> tuple[Estimate, float]:
        started = time.perf_counter()
        ((answer,),) = _estimates([run], [method], options, asked)
        return answer, time.perf_counter() - started

    return [[timed(run, method) for method in chosen] for run in runs]


def _together(
    runs: list[Simulation],
    chosen: Sequence[Chosen],
    options: FilterOptions | None,
    asked: Statistic | None,
) -> list[Timed]:
    """All methods on all collections at once, sharing their work; without times."""
    found = _estimates(runs, chosen, options, asked)
    return [[(answer, math.nan) for answer in answers] for answers in found]


def _estimates(
    runs: list[Simulation],
    chosen: Sequence[Chosen],
    options: FilterOptions | None,
    asked: Statistic | None,
) -> list[list[Estimate]]:
    """Those of the methods on all reports, that of the oracle on the honest ones."""
    methods = [method for method in chosen if isinstance(method, Method)]
    found = estimates_together([run.summary for run in runs], methods, options, asked)
    if ORACLE in chosen:
        for run, answers in zip(runs, found, strict=True):
            answers[ORACLE] = oracle_estimate(run, asked)
    return [
        [answers[ORACLE if isinstance(item, str) else item.name] for item in chosen]
        for answers in found
    ]


def oracle_estimate(run: Simulation, asked: Statistic | None = None) -> Estimate:
    """What the honest reports alone say, all groups with their best weights.

    >>> plan, values = Plan.new(epsilon=0.5, low=0, high=1), np.full(5000, 0.25)
    >>> run = simulate(plan, values, "point:C", 0.3, np.random.default_rng(1))
    >>> bool(abs(oracle_estimate(run).mean - 0.25) < 0.5)
    True
    """
    summary = run.honest_summary or run.summary
    asked = asked or Statistic.of(summary.plan)
    answer = defences["ostrich"]().estimate(summary, ORACLE, asked)
    unfiltered = unfiltered_answer(summary, summary.tiers_with_reports).post_processed(asked)
    if unfiltered.frequencies is None:
        return replace(answer, mean=unfiltered.mean)
    return replace(answer, frequencies=unfiltered.frequencies)


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
        squared_error=squared_error(answer, run),
        floor=grouped.floor,
        cramer_rao=grouped.cramer_rao,
        byzantine_fraction=answer.byzantine.fraction,
        side=answer.byzantine.where,
        seconds=seconds,
        wasserstein=_distance(answer, run),
        located=_located(answer, run),
        **_variances(answer),
        **_certainty(answer, run),
        frequencies=answer.frequencies,
    )


def squared_error(answer: Estimate, run: Simulation) -> float:
    """Of the mean; of frequencies the average over categories.

    >>> plan, values = Plan.new(epsilon=0.5, low=0, high=1), np.full(2000, 0.25)
    >>> run = simulate(plan, values, "none", 0, np.random.default_rng(1))
    >>> answer = oracle_estimate(run)
    >>> squared_error(answer, run) == (answer.mean - 0.25) ** 2
    True
    """
    if answer.frequencies is None or run.frequencies is None:
        return (answer.mean - run.truth) ** 2
    errors = [answer.frequencies[name] - truth for name, truth in run.frequencies.items()]
    return float(np.mean(np.square(errors)))


def _distance(answer: Estimate, run: Simulation) -> float:
    if answer.distribution is None or run.honest is None:
        return math.nan
    return wasserstein(answer.distribution, run.honest)


def _variances(answer: Estimate) -> dict[str, float]:
    found = answer.fit.get("honest_variance", {})
    return {f"variance_{side}": float(found.get(side, math.nan)) for side in SIDES}


def _certainty(answer: Estimate, run: Simulation) -> dict[str, float]:
    """Of methods that say how sure they are."""
    if answer.interval is None:
        return {}
    low, high = answer.interval
    return {
        "covered": float(low <= run.truth <= high),
        "p_value": float(answer.fit.get("nobody_attacks_p_value", math.nan)),
        "doubt": float(any(answer.fit.get(each, False) for each in ("doubt", "noise_could_hide"))),
    }


def _located(answer: Estimate, run: Simulation) -> float:
    """Whether a method that looks for poisoned categories found them; others have no groups."""
    if run.poisoned is None or not answer.groups:
        return math.nan
    return float(answer.byzantine.categories == run.poisoned)


def score(rows: Sequence[Trial]) -> list[Score]:
    """One line a method and collection, in the order in which they first appear.

    >>> rest = (0.5, 0.0625, 0.0625, 0.03, 0.25, "right", 0.1)
    >>> low, high = (Trial(0, "emf", GROUPED, mean, *rest) for mean in (0.25, 0.75))
    >>> [(line.trials, line.bias, line.mse_over_floor) for line in score([low, high])]
    [(2, 0.0, 1.0)]
    """
    kinds = dict.fromkeys((row.method, row.collection) for row in rows)
    return [_score([row for row in rows if (row.method, row.collection) == kind]) for kind in kinds]


def _score(rows: list[Trial]) -> Score:
    def average(name: str) -> float:
        return float(np.mean([getattr(row, name) for row in rows]))

    places, floor = [row.side for row in rows], average("floor")
    return Score(
        method=rows[0].method,
        collection=rows[0].collection,
        trials=len(rows),
        mean=average("mean"),
        bias=average("mean") - average("truth"),
        mse=average("squared_error"),
        mse_over_floor=average("squared_error") / floor if floor > 0 else math.nan,
        byzantine_fraction=average("byzantine_fraction"),
        side=max(dict.fromkeys(places), key=places.count),
        seconds=average("seconds"),
        wasserstein=average("wasserstein"),
        located=average("located"),
        frequencies=rows[-1].frequencies,
    )
