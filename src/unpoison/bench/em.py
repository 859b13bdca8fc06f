"""One EM iteration against a dense matrix, at the paper's sizes and beyond."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np

from unpoison.bench import plain_em
from unpoison.bench.beta_summaries import draw_beta_summary
from unpoison.bench.result import Result, benchmarks, faster, race
from unpoison.errors import ConvergenceWarning
from unpoison.filters.em import GroupCounts, Problem, Solution, maximise
from unpoison.plan import Plan

CASES = (
    # ε, reports, iterations, and the speed-up that is aimed at
    (2.0, 166_667, 400, 1.0),
    (0.0625, 5_333_333, 400, 1.0),
    (0.0625, 10**8, 100, 5.0),
    (2.0, 10**8, 20, 5.0),
)
"""The first and the last of six groups of 10^6 users, as in the paper; and groups of 10^8 reports,
whose dense matrix is large. These make fewer iterations, since the dense ones take long."""


@benchmarks.register("em")
def em() -> list[Result]:
    """Measure EMF's E- and M-step with the sparse operator, and with `M @ x`, `M.T @ w`."""
    return [result for case in CASES for result in _case(*case)]


def iterate(problem: Problem, iterations: int) -> Solution:
    """EM for exactly so many iterations: a threshold of 0 is never met."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return maximise([replace(problem, tolerance=0.0)], max_iterations=iterations)[0]


def _case(epsilon: float, reports: int, iterations: int, target: float) -> list[Result]:
    plan = Plan.new(epsilon=epsilon, min_epsilon=epsilon, low=0, high=1)
    counts = GroupCounts.of(draw_beta_summary(plan, reports, np.random.default_rng(1)), 0)
    support = counts.support("right", 0.0)
    matrix = np.ascontiguousarray(counts.buckets.transition.dense())
    problem = counts.emf(support)

    def ours() -> object:
        return iterate(problem, iterations)

    def theirs() -> object:
        start = (problem.honest, problem.poison, plain_em.free)
        return plain_em.expectation_maximisation(matrix, counts.counts, *start, 0.0, iterations)

    fast, dense = (seconds / iterations for seconds in race(ours, theirs, rounds=3))
    sizes = f"ε = {epsilon:g}, N_t = {reports:,} (d' = {matrix.shape[0]}, d = {matrix.shape[1]})"
    sparse = problem.transition.sparse
    # The matrix and its transpose.
    held = 2 * (sparse.data.nbytes + sparse.indices.nbytes + sparse.indptr.nbytes)
    memory = Result(
        f"EM iteration, {sizes}: memory of the operator",
        f"{held / 2**20:.2f} MiB",
        f"{matrix.nbytes / 2**20:.2f} MiB",
        held / matrix.nbytes,
        "O(d + d')",
        None,
    )
    return [faster(f"EM iteration, {sizes}: time", fast, dense, target), memory]
