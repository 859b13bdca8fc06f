"""One row of a comparison: a method on a simulated collection, beside the truth."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from unpoison.estimate import Estimate
from unpoison.estimate.distribution import wasserstein
from unpoison.filters.sides import SIDES
from unpoison.protocols.worst_case import theoretical_limit
from unpoison.simulation.ground_truth import Simulation

GROUPED, UNGROUPED = "grouped", "ungrouped"
"""The two kinds of collections: the plan's own, and one without groups, the best case of rivals."""
DOUBTS = ("doubt", "noise_could_hide")
"""Evidence of a fit by which a method says that the data cannot tell."""


@dataclass(frozen=True)
class Trial:
    """One method on one collection. `floor` is that of the grouped plan, for every row.

    `squared_error` is that of the mean; for categories that of a frequency, averaged over them.
    `side` is the one that attackers seem to be on, or names their categories. `wasserstein` is the
    distance of the distribution from the truth, where that was requested. `located` is 1 if exactly
    the categories that attackers send were found, else 0. `variance_left` and `variance_right` are
    those of x̂ with poison on that side, by which Alg. 3 chooses. `covered` is 1 if the interval has
    the truth in it, else 0, and `outside` how far the truth is from it, in half widths of the
    interval; `p_value` is that of "nobody attacks"; `doubt` is 1 if the method says that the data
    cannot tell, else 0. `worst_case_holds` is 1 if the worst case has the truth in it, else 0;
    `worst_case_over_limit` is its width over that of what no method could exclude.

    >>> attackers = {"byzantine_fraction": 0.25, "side": "right", "seconds": 0.1}
    >>> bounds = {"floor": 0.0625, "cramer_rao": 0.03}
    >>> trial = Trial(0, "emf", GROUPED, 0.75, 0.5, squared_error=0.0625, **bounds, **attackers)
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
    outside: float = math.nan
    p_value: float = math.nan
    doubt: float = math.nan
    worst_case_holds: float = math.nan
    worst_case_over_limit: float = math.nan
    frequencies: dict[str, float] | None = None


def compare_with_truth(
    trial: int,
    collection: str,
    run: Simulation,
    grouped: Simulation,
    answer: Estimate,
    seconds: float,
) -> Trial:
    """The row of an Estimate of `run`; the floor is that of the `grouped` collection.

    >>> from unpoison import Plan, estimate, simulate
    >>> plan = Plan.new(epsilon=0.5, low=0, high=1)
    >>> run = simulate(plan, np.full(2000, 0.25), "none", 0, np.random.default_rng(1))
    >>> row = compare_with_truth(0, GROUPED, run, run, estimate(run.summary), seconds=0.1)
    >>> row.method, row.truth
    ('joint', 0.25)
    """
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
        worst_case_holds=_worst_case_holds(answer, run),
        worst_case_over_limit=_worst_case_over_limit(answer, run),
        frequencies=answer.frequencies,
    )


def squared_error(answer: Estimate, run: Simulation) -> float:
    """The squared error of the mean; of frequencies, averaged over categories.

    >>> from unpoison import Plan, estimate, simulate
    >>> plan = Plan.new(epsilon=0.5, low=0, high=1)
    >>> run = simulate(plan, np.full(2000, 0.25), "none", 0, np.random.default_rng(1))
    >>> answer = estimate(run.summary)
    >>> squared_error(answer, run) == (answer.mean - 0.25) ** 2
    True
    """
    if answer.frequencies is None or run.frequencies is None:
        return (answer.mean - run.truth) ** 2
    errors = [answer.frequencies[name] - truth for name, truth in run.frequencies.items()]
    return float(np.mean(np.square(errors)))


def _distance(answer: Estimate, run: Simulation) -> float:
    """The Wasserstein distance of the distribution from the truth; NaN if there is none."""
    if answer.distribution is None or run.honest is None:
        return math.nan
    return wasserstein(answer.distribution, run.honest)


def _variances(answer: Estimate) -> dict[str, float]:
    """The variances of x̂ with poison on either side; NaN of methods that do not probe sides."""
    variances = answer.fit.get("honest_variance", {})
    return {f"variance_{side}": float(variances.get(side, math.nan)) for side in SIDES}


def _certainty(answer: Estimate, run: Simulation) -> dict[str, float]:
    """Coverage, p-value and doubt, of methods that give an interval."""
    if answer.interval is None:
        return {}
    low, high = answer.interval
    distance = max(low - run.truth, run.truth - high, 0.0)
    return {
        "covered": float(low <= run.truth <= high),
        "outside": distance and float(np.divide(2 * distance, high - low)),
        "p_value": float(answer.fit.get("nobody_attacks_p_value", math.nan)),
        "doubt": float(any(answer.fit.get(key, False) for key in DOUBTS)),
    }


def _worst_case_holds(answer: Estimate, run: Simulation) -> float:
    """1 if the worst case has the true mean in it, else 0; NaN of methods without a worst case.

    It has not where more attackers are needed than were assumed.
    """
    if answer.worst_case is None or math.isnan(run.truth):
        return math.nan
    if answer.worst_case.mean_range is None:
        return 0.0
    low, high = answer.worst_case.mean_range
    return float(low <= run.truth <= high)


def _worst_case_over_limit(answer: Estimate, run: Simulation) -> float:
    """The width of the worst case over the limit; NaN where either is missing, or there is none."""
    if answer.worst_case is None or answer.worst_case.mean_range is None:
        return math.nan
    share = answer.worst_case.attackers_at_most
    limits = theoretical_limit(run.summary.plan, answer.mean, share)
    widths = np.diff([answer.worst_case.mean_range, limits]).ravel()
    return float(widths[0] / widths[1]) if widths[1] > 0 else math.nan


def _located(answer: Estimate, run: Simulation) -> float:
    """1 if exactly the poisoned categories were found, else 0; NaN of methods that do not look."""
    # Only methods that filter group by group look for poisoned categories.
    if run.poisoned is None or not answer.groups:
        return math.nan
    return float(answer.byzantine.categories == run.poisoned)
