"""The blind spot: shifts that attackers could hide (docs/method.md, What is identified)."""

from __future__ import annotations

import math
from typing import cast

import numpy as np
from scipy.optimize import linprog
from scipy.stats import chi2

from unpoison.filters.joint import constants
from unpoison.filters.joint.counts import JointCounts
from unpoison.filters.joint.fitting import Fit
from unpoison.mechanisms import CategoricalMechanism
from unpoison.types import FloatArray


def hidden_mean_range(
    counts: JointCounts, best: Fit, share: float, values: FloatArray
) -> tuple[float, float]:
    """Range of honest means that attackers of a given share could hide behind a fit's honest part.

    Honest users with the histogram a/(1 − γ), and poison y ≥ 0 of a total γ, look exactly as the
    fit expects if M_t a + y_t = M_t x̂ in all groups: any a with M_t a ≤ M_t x̂ will do. Noise hides
    a little more: the excess is such that a test at 5 % notices it in half of the collections. The
    least and the largest mean are found by linear programs.

    >>> from unpoison import Plan, simulate
    >>> from unpoison.filters.joint import PoisonModel, fit
    >>> plan, rng = Plan.new(epsilon=0.5, low=0, high=1), np.random.default_rng(1)
    >>> run = simulate(plan, np.full(50_000, 0.5), rng=rng)
    >>> counts = JointCounts.of(run.summary, range(4))
    >>> nobody = fit(counts, PoisonModel.nobody(4, 64))
    >>> low, high = hidden_mean_range(counts, nobody, 0.1, counts.values)
    >>> low < -0.1 < 0.1 < high
    True
    """
    expected = counts.transitions @ best.honest
    limits = (expected + _unnoticed_excess(counts, expected)).ravel()
    all_ones = np.ones((1, counts.inputs))

    def largest_mean(of_values: FloatArray) -> float:
        solution = linprog(
            -of_values, counts.stacked_transitions, limits, all_ones, [1 - share], method="highs"
        )
        return math.nan if solution.x is None else float(of_values @ solution.x) / (1 - share)

    return -largest_mean(-values), largest_mean(values)


def hidden_frequency_shift(counts: JointCounts, best: Fit, share: float) -> float:
    """The largest shift of any frequency that attackers of a given share could hide.

    With k-RR, M_t a ≤ M_t x̂ bounds each a_k by itself: by x̂_k + γ·other_t/(kept_t − other_t), and a
    little more for noise. The least of these bounds, over the groups, holds.

    >>> from unpoison import Plan, simulate
    >>> from unpoison.filters.joint import PoisonModel, fit
    >>> plan, rng = Plan.new("k-rr", 1.0, categories=["a", "b"]), np.random.default_rng(1)
    >>> run = simulate(plan, np.tile(["a", "b"], 10_000), rng=rng)
    >>> counts = JointCounts.of(run.summary, range(5))
    >>> nobody = fit(counts, PoisonModel.nobody(5, 2))
    >>> few, many = (hidden_frequency_shift(counts, nobody, share) for share in (0.1, 0.2))
    >>> 0.05 < few < many
    True
    """
    mechanisms = [cast(CategoricalMechanism, buckets.mechanism) for buckets in counts.buckets]
    other = np.array([mechanism.other for mechanism in mechanisms])[:, None]
    difference = np.array([mechanism.kept for mechanism in mechanisms])[:, None] - other
    excess = _unnoticed_excess(counts, counts.transitions @ best.honest)
    slack = ((share * other + excess) / difference).min(axis=0)
    most = np.minimum(best.honest + slack, 1 - share)
    # The least of one category is what is left when all others are as large as they can be.
    least = np.maximum(1 - share - (most.sum() - most), 0.0)
    return float(np.abs(np.stack([most, least]) / (1 - share) - best.honest).max())


def _unnoticed_excess(counts: JointCounts, expected: FloatArray) -> FloatArray:
    """κσ_t: the excess of each bucket that a test would notice in half of the collections.

    An excess of κ standard deviations in all buckets adds κ² for each to the mean of χ², which then
    lies at the test's threshold.
    """
    degrees = counts.counts.size - len(counts.reports)
    above_mean = chi2.isf(constants.BLIND_SPOT_LEVEL, degrees) - degrees
    kappa = math.sqrt(above_mean / counts.counts.size)
    excess: FloatArray = kappa * np.sqrt(expected / counts.reports[:, None])
    return excess
