"""The honest users' distribution by the joint filter, in natural units, with intervals."""

from __future__ import annotations

import numpy as np

from unpoison.estimate.distribution import Distribution, mixture
from unpoison.filters.joint import ModelChoice
from unpoison.filters.shape import SmoothHistogram, cdf_band, smooth_histogram, widest_of_each_kind
from unpoison.plan import Plan
from unpoison.types import FloatArray


def joint_distribution(
    plan: Plan, choice: ModelChoice, mean: float | None = None, error_factor: float = 1.0
) -> Distribution:
    """The smooth histogram of the chosen model, with a band over all that may be true.

    Its mean is the given one, or the model's own. Intervals are as much wider as standard errors
    are by `error_factor`.

    >>> from unpoison import simulate
    >>> from unpoison.filters.joint import JointCounts, choose_model
    >>> plan, values = Plan.new(epsilon=1.0, low=0, high=10), np.full(20_000, 3.0)
    >>> run = simulate(plan, values, rng=np.random.default_rng(1))
    >>> distribution = joint_distribution(plan, choose_model(JointCounts.of(run.summary, range(4))))
    >>> low, high = distribution.quantile_interval(0.5)
    >>> low < 3 < high
    True
    """
    smooth = smooth_histogram(choice.counts, choice.best, mean)
    models = widest_of_each_kind([choice.best, *choice.others])
    low, high = cdf_band(choice.counts, models, error_factor)
    ends = _natural(plan, smooth.edges)
    distribution = _with_atoms(plan, smooth)
    at = distribution.edges
    return distribution.with_band(np.interp(at, ends, low), np.interp(at, ends, high))


def unknown_distribution(plan: Plan, choice: ModelChoice) -> Distribution:
    """The same where attackers are the majority: any distribution may be the honest users'.

    >>> from unpoison import simulate
    >>> from unpoison.filters.joint import JointCounts, choose_model
    >>> plan = Plan.new(epsilon=1.0, low=0, high=10)
    >>> run = simulate(plan, np.full(2000, 3.0), rng=np.random.default_rng(1))
    >>> choice = choose_model(JointCounts.of(run.summary, range(4)))
    >>> unknown_distribution(plan, choice).quantile_interval(0.5)
    (0.0, 10.0)
    """
    distribution = _with_atoms(plan, smooth_histogram(choice.counts, choice.best))
    size = len(distribution.edges)
    return distribution.with_band(np.zeros(size), np.ones(size))


def _natural(plan: Plan, edges: FloatArray) -> FloatArray:
    return np.array([plan.natural(float(edge)) for edge in edges])


def _with_atoms(plan: Plan, smooth: SmoothHistogram) -> Distribution:
    """The buckets, and a narrow bucket for every single value that users share."""
    parts = [(smooth.edges, smooth.fractions)]
    for edges, share in zip(smooth.atom_edges, smooth.atom_fractions, strict=True):
        parts.append((edges, np.array([share])))
    held = [(edges, shares) for edges, shares in parts if shares.sum() > 0]
    return mixture(
        [Distribution.of(_natural(plan, edges), shares) for edges, shares in held],
        [float(shares.sum()) for _, shares in held],
    )
