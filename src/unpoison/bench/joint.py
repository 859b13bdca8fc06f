"""The joint filter: a whole estimate with its interval, and its solver against plain EM."""

from __future__ import annotations

import numpy as np

from unpoison.bench.result import Result, benchmarks, duration, faster, same, seconds
from unpoison.filters.joint import JointCounts, Poison, fit
from unpoison.plan import Plan
from unpoison.protocols import estimate_joint
from unpoison.simulation import simulate
from unpoison.simulation.population import Population
from unpoison.summary import Summary
from unpoison.types import FloatArray

USERS = 10**6
ATTACKS = {
    "none": "nobody attacks",
    "evasion:0.3": "poison alike in all groups",
    "opposite": "poison of each group's own",
}
AT_MOST = 2.0
SHORT = 0.1
MOST_ITERATIONS = 20_000


@benchmarks.register("joint")
def joint() -> list[Result]:
    """At ε = 2 and ε0 = 1/16: six groups."""
    return [*(_estimate(attack) for attack in ATTACKS), *_solver()]


def _collection(attack: str) -> Summary:
    plan = Plan.new(epsilon=2.0, min_epsilon=0.0625, low=0, high=1)
    rng = np.random.default_rng(1)
    return simulate(plan, Population.of(rng.beta(2, 5, USERS)), attack, 0.25, rng).summary


def _estimate(attack: str) -> Result:
    summary = _collection(attack)
    taken = min(seconds(lambda: estimate_joint(summary)) for _ in range(3))
    name = f"joint, 10^6 users, 6 groups, {ATTACKS[attack]}: one estimate with its interval"
    limit = f"≤ {AT_MOST:g} s"
    return Result(name, duration(taken), "–", None, limit, taken <= AT_MOST)


def _solver() -> list[Result]:
    """Both until the log-likelihood is within 0.1 of the best."""
    counts = JointCounts.of(_collection("none"), range(6))
    model = Poison.nobody(*counts.counts.shape)
    found = fit(counts, model)
    ours = min(seconds(lambda: fit(counts, model)) for _ in range(5))
    histogram, iterations = plain_em(counts, found.deviance + 2 * SHORT)
    theirs = seconds(lambda: plain_em(counts, found.deviance + 2 * SHORT))
    size = f"joint, 6 groups, nobody: {found.steps} steps against {iterations:,} iterations of EM"
    gap = abs(float((histogram - found.honest) @ counts.values))
    return [
        faster(f"{size}, time", ours, theirs, 5),
        same("joint, 6 groups, nobody: difference of the means", gap, 1e-3),
    ]


def plain_em(counts: JointCounts, deviance: float) -> tuple[FloatArray, int]:
    """The honest histogram by EM, until the deviance is as small; and how long that took."""
    honest = np.full(counts.inputs, 1 / counts.inputs)
    total = counts.reports.sum()
    for iteration in range(1, MOST_ITERATIONS + 1):
        expected = counts.transitions @ honest
        if iteration % 50 == 0 and counts.deviance(expected) <= deviance:
            break
        ratio = counts.counts / expected
        honest = honest * np.einsum("ti,tik->k", ratio, counts.transitions) / total
    return honest, iteration
