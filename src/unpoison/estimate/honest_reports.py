"""Statistics of reports taken as honest: all reports, or those that a filter has left."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unpoison.estimate.distribution import Distribution
from unpoison.filters.em import MAX_ITERATIONS, shared_histogram
from unpoison.plan import Plan
from unpoison.types import FloatArray, IntArray


def distribution_of(
    plan: Plan,
    groups: Sequence[int],
    cell_counts: FloatArray | IntArray,
    max_iterations: int = MAX_ITERATIONS,
) -> Distribution:
    """The distribution behind the counts of some groups, in natural units.

    >>> plan = Plan.new("square-wave", 2.0, min_epsilon=2.0, low=0, high=10)
    >>> counts = np.where(np.arange(plan.cells) < plan.cells // 2, 1.0, 0.1)
    >>> distribution_of(plan, [0], counts[None]).mean < 5
    True
    """
    mechanisms = [plan.group_mechanisms[group] for group in groups]
    edges, solution = shared_histogram(mechanisms, cell_counts, max_iterations)
    natural = np.array([plan.natural(float(edge)) for edge in edges])
    return Distribution.of(natural, solution.honest)


def mean_of(plan: Plan, groups: Sequence[int], cell_counts: FloatArray | IntArray) -> float:
    """The mean behind the counts of some groups, normalised: decoded, or by EMS if biased (SW).

    >>> plan = Plan.new("square-wave", 2.0, min_epsilon=2.0, low=0, high=10)
    >>> round(mean_of(plan, [0], np.ones((1, plan.cells))), 3)
    0.5
    """
    mechanisms = [plan.group_mechanisms[group] for group in groups]
    if mechanisms[0].unbiased:
        values = np.stack([mechanism.decoded_cells() for mechanism in mechanisms])
        return float((cell_counts * values).sum() / cell_counts.sum())
    edges, solution = shared_histogram(mechanisms, cell_counts)
    return solution.mean_of((edges[1:] + edges[:-1]) / 2)


def frequencies_of(plan: Plan, cell_counts: FloatArray | IntArray) -> FloatArray:
    """The frequencies of categories behind the counts of all groups, by EM.

    >>> plan = Plan.new("k-rr", 1.0, min_epsilon=1.0, categories=["tea", "coffee"])
    >>> frequencies_of(plan, np.array([[600.0, 400.0]])).round(2).tolist()
    [0.72, 0.28]
    """
    _, solution = shared_histogram(plan.group_mechanisms, cell_counts)
    frequencies: FloatArray = solution.honest / solution.honest.sum()
    return frequencies
