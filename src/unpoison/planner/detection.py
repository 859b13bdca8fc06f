"""How few attackers would be noticed: from expected counts, without drawing any."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy.optimize import brentq
from scipy.stats import chi2, ncx2

from unpoison.attacks import parse_attack
from unpoison.filters.joint import Fit, JointCounts, PoisonModel, fit
from unpoison.plan import Plan
from unpoison.planner.reference import Reference, attacks_on
from unpoison.simulation import simulate
from unpoison.simulation.ground_truth import GroundTruth
from unpoison.types import FloatArray

LEVEL = 0.05
POWER = 0.9
FEWEST, MOST = 1e-4, 0.5
STEPS = 8
POISON_DRAWS = 2**20


def detectable_share(plan: Plan, reference: Reference) -> float:
    """The smallest γ that is noticed in 9 of 10 collections; NaN if not even half of users are.

    Attackers send the plainest poison of `attacks_on`. "Nobody attacks" is rejected at 5 %. The
    deviance of its fit is χ², and attackers make that non-central: by the deviance which the
    expected counts themselves have. The share at which that is enough is found by bisection.

    >>> plan = Plan.new(epsilon=1.0, min_epsilon=0.25, low=0, high=1)
    >>> few, many = (detectable_share(plan, Reference("uniform", n)) for n in (10**4, 10**6))
    >>> bool(0 < many < few / 3)
    True
    """
    truth = reference.truth(plan)
    empty = simulate(plan, reference.population(plan), "none", 0.0, np.random.default_rng(0))
    counts = JointCounts.of(empty.summary, range(len(plan.groups)))
    held = truth.inputs.histogram(_edges(plan, counts))
    honest = counts.transitions[:, :, : len(held)] @ held
    poison = _poison(plan, truth, counts)

    def nobody(share: float) -> Fit:
        shares = (1 - share) * honest + share * poison
        expected = replace(counts, counts=counts.reports[:, None] * shares)
        return fit(expected, PoisonModel.nobody(*shares.shape))

    quiet = nobody(0.0)
    needed = _noticed(max(quiet.degrees_of_freedom, 1.0)) + quiet.deviance
    return _smallest(lambda share: nobody(share).deviance >= needed)


def _edges(plan: Plan, counts: JointCounts) -> FloatArray:
    """Those of the input buckets."""
    if plan.categorical:
        return np.arange(plan.cells + 1.0) - 0.5
    return counts.buckets[0].input_edges


def _poison(plan: Plan, truth: GroundTruth, counts: JointCounts) -> FloatArray:
    """Where attackers' reports fall, in each group."""
    attack = parse_attack(next(iter(attacks_on(plan).values())))
    rows = []
    for buckets, group in zip(counts.buckets, counts.groups, strict=True):
        drawn = attack.poison_counts(truth.target(group), POISON_DRAWS, np.random.default_rng(0))
        rows.append(buckets.count(drawn) / POISON_DRAWS)
    return np.stack(rows)


def _noticed(degrees: float) -> float:
    """The non-centrality with which a test of χ² rejects in 9 of 10 collections."""
    limit = chi2.isf(LEVEL, degrees)
    return float(brentq(lambda more: ncx2.sf(limit, degrees, more) - POWER, 1e-6, 100 * limit))


def _smallest(noticed: Callable[[float], bool]) -> float:
    """Bisection on the logarithm of the share."""
    if not noticed(MOST):
        return math.nan
    low, high = FEWEST, MOST
    for _ in range(STEPS):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if noticed(middle) else (middle, high)
    return high
