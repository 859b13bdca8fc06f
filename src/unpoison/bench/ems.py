"""EMS on SW reports in many buckets, against a dense matrix taken row by row."""

from __future__ import annotations

import numpy as np

from unpoison.bench import plain_em
from unpoison.bench.em import iterate
from unpoison.bench.result import Result, benchmarks, faster, race, same
from unpoison.filters.buckets import Buckets
from unpoison.filters.em import GroupCounts
from unpoison.mechanisms import make

EPSILON = 1.0
"""The middle one of the paper's budgets."""
REPORTS = 10**6
"""As many as the paper's synthetic datasets have users."""
BUCKETS = 1024
"""About √N of them, by the paper's rule."""
ITERATIONS = 100
"""Iterations of either side: the ratio of their times does not depend on the number."""
AT_LEAST = 10
"""The speed-up over a loop over buckets that is aimed at."""
SAME = 1e-9
"""The largest difference that rounding may make."""


@benchmarks.register("ems")
def ems() -> list[Result]:
    """Measure EMS with as many input as output buckets; both sides make equally many iterations."""
    return compare(BUCKETS, ITERATIONS)


def compare(buckets: int, iterations: int) -> list[Result]:
    """Compare time and answers of both implementations, from Beta(2,5) inputs."""
    group = _group(buckets)
    problem = group.ems()
    matrix = np.ascontiguousarray(group.buckets.transition.dense())

    def theirs() -> object:
        return plain_em.ems_by_rows(matrix, group.counts, iterations)

    fast, dense = race(lambda: iterate(problem, iterations), theirs, rounds=3)
    expected = plain_em.ems_by_rows(matrix, group.counts, iterations)
    gap = float(np.abs(iterate(problem, iterations).honest - expected).max())
    size = f"EMS, SW, ε = {EPSILON:g}, {buckets} buckets, {iterations} iterations"
    return [
        faster(f"{size}: time against a loop over the buckets", fast, dense, AT_LEAST),
        same(f"{size}: largest difference of a frequency", gap, SAME),
    ]


def _group(buckets: int) -> GroupCounts:
    rng = np.random.default_rng(1)
    layout = Buckets(make("square-wave", EPSILON), buckets, buckets)
    reports = layout.mechanism.perturb(rng.beta(2, 5, REPORTS), rng)
    counts, _ = np.histogram(reports, layout.output_edges)
    return GroupCounts(layout, counts.astype(np.float64))
