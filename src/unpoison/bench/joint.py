"""The joint filter: a whole estimate with its interval, and its solver against plain EM."""

from __future__ import annotations

import numpy as np

from unpoison.bench.result import Result, benchmarks, duration, faster, same, seconds
from unpoison.filters.joint import JointCounts, PoisonModel, fit
from unpoison.plan import Plan
from unpoison.protocols import estimate_joint
from unpoison.simulation import simulate
from unpoison.simulation.population import Population
from unpoison.summary import Summary
from unpoison.types import FloatArray

USERS = 10**6
"""As many as the paper's synthetic datasets have."""
ATTACKS = {
    "none": "nobody attacks",
    "evasion:0.3": "poison alike in all groups",
    "opposite": "poison of each group's own",
}
MOST_SECONDS = 2.0
"""Seconds that one estimate may take: a person waits for it."""
SHORTFALL = 0.1
"""Log-likelihood by which plain EM may fall short of ours when it is stopped: a fifth of what a
standard error is worth."""
MOST_ITERATIONS = 20_000
"""Iterations at which plain EM is stopped in any case: a third of a second."""


@benchmarks.register("joint")
def joint() -> list[Result]:
    """Measure estimates at ε = 2 and ε0 = 1/16, which makes six groups, and the solver alone."""
    return [*(_estimate(attack) for attack in ATTACKS), *_solver()]


def _collection(attack: str) -> Summary:
    plan = Plan.new(epsilon=2.0, min_epsilon=0.0625, low=0, high=1)
    rng = np.random.default_rng(1)
    return simulate(plan, Population.of(rng.beta(2, 5, USERS)), attack, 0.25, rng).summary


def _estimate(attack: str) -> Result:
    summary = _collection(attack)
    fastest = min(seconds(lambda: estimate_joint(summary)) for _ in range(3))
    name = f"joint, 10^6 users, 6 groups, {ATTACKS[attack]}: one estimate with its interval"
    limit = f"≤ {MOST_SECONDS:g} s"
    return Result(name, duration(fastest), "–", None, limit, fastest <= MOST_SECONDS)


def _solver() -> list[Result]:
    """Ours and plain EM, which stops once its log-likelihood is within 0.1 of ours."""
    counts = JointCounts.of(_collection("none"), range(6))
    model = PoisonModel.nobody(*counts.counts.shape)
    best = fit(counts, model)
    ours = min(seconds(lambda: fit(counts, model)) for _ in range(5))
    histogram, iterations = plain_em(counts, best.deviance + 2 * SHORTFALL)
    theirs = seconds(lambda: plain_em(counts, best.deviance + 2 * SHORTFALL))
    size = f"joint, 6 groups, nobody: {best.steps} steps against {iterations:,} iterations of EM"
    gap = abs(float((histogram - best.honest) @ counts.values))
    return [
        faster(f"{size}, time", ours, theirs, 5),
        same("joint, 6 groups, nobody: difference of the means", gap, 1e-3),
    ]


def plain_em(counts: JointCounts, deviance: float) -> tuple[FloatArray, int]:
    """The honest histogram by EM, until the deviance is as small; and the iterations it took."""
    honest = np.full(counts.inputs, 1 / counts.inputs)
    total = counts.reports.sum()
    for iteration in range(1, MOST_ITERATIONS + 1):
        expected = counts.transitions @ honest
        # The deviance costs as much as an iteration, so it is not looked at in each.
        if iteration % 50 == 0 and counts.deviance(expected) <= deviance:
            break
        ratio = counts.counts / expected
        honest = honest * np.einsum("ti,tik->k", ratio, counts.transitions) / total
    return honest, iteration
