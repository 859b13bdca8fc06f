"""How rarely honest users push a category as far: bounds that hold for rare categories too."""

from __future__ import annotations

import numpy as np
import scipy

from unpoison.filters.categories.constants import CLOSELY, DOUBLINGS, EXPONENT_HALVINGS
from unpoison.filters.categories.lines import Lines, variances
from unpoison.filters.categories.support import SupportCounts
from unpoison.types import BoolArray, FloatArray


def log_tails(
    supports: SupportCounts, lines: Lines, attacked: BoolArray, offset: FloatArray | float = 0.0
) -> FloatArray:
    """An upper bound on the log probability that honest users lift a category as high.

    In the attacked groups, above its line; `lines` are those without poison, and `offset` is what
    each group's lift has besides them. The bound is Chernoff's for counts that are Poisson
    variables. The normal distribution would be far too sure of rare categories: of 30,000 that
    expect one report each, some always have six.

    >>> one, groups = np.ones(2), np.array([True, False])
    >>> supports = SupportCounts(
    ...     np.array([[6.0], [1.0]]), 1e4 * one, 1e-4 * one, 1e-3 * one, one, 0 * one, 1e4 * one)
    >>> lines = Lines(np.zeros(1), np.zeros(1), one[:1], one[:1])
    >>> log_tails(supports, lines, groups).round(1).tolist()
    [-4.9]
    """
    signal, pushed = supports.signal[:, None], (supports.pushed * attacked)[:, None]
    spread = variances(supports, lines.honest)
    slope = (signal * pushed / spread).sum(axis=0) / (signal**2 / spread).sum(axis=0)
    # Poison lifts the attacked groups above what the best line without it can follow.
    coefficients = (pushed - slope * signal) / spread
    deviation = np.sqrt((coefficients**2 * spread).sum(axis=0))
    above = (coefficients * supports.lift_above(offset)).sum(axis=0)
    tails: FloatArray = scipy.special.log_ndtr(-above / deviation)
    close = np.flatnonzero(above > CLOSELY * deviation)
    if len(close):
        scale = deviation[close]
        share = supports.baseline[:, None] + signal * np.clip(lines.honest[close], 0.0, 1.0)
        expected = share * supports.reports[:, None]
        weights = coefficients[:, close] / supports.reports[:, None] / scale
        bound = _chernoff(expected, weights, above[close] / scale)
        tails[close] = np.maximum(tails[close], bound)
    return tails


def log_tails_of_all_users(supports: SupportCounts) -> FloatArray:
    """A bound on the log probability of as many reports if all users had the category.

    Poison that weakens from group to group as the signal does lies on a line, but its frequency
    may be above 1. The smallest over the groups, for as many tests as there are groups.

    >>> one = np.ones(1)
    >>> counts = np.array([[50.0, 90.0]])
    >>> supports = SupportCounts(counts, 1e3 * one, 0.01 * one, 0.04 * one, one, 0 * one, 1e3 * one)
    >>> log_tails_of_all_users(supports).round(1).tolist()
    [0.0, -12.9]
    """
    most = (supports.reports * (supports.baseline + supports.signal))[:, None]
    counts = np.maximum(supports.counts, most)
    tails = counts - most + counts * np.log(most / counts)
    return np.asarray(np.minimum(tails.min(axis=0) + np.log(len(supports.reports)), 0.0))


def _chernoff(expected: FloatArray, weights: FloatArray, above: FloatArray) -> FloatArray:
    """log inf over s ≥ 0 of E exp(s·(W − E W − above)), W a weighted sum of Poisson variables."""

    def slope_at(exponent: FloatArray) -> FloatArray:
        growth = np.expm1(np.minimum(exponent * weights, np.log(np.finfo(float).max) / 2))
        return np.asarray((expected * weights * growth).sum(axis=0) - above)

    low, high = np.zeros(len(above)), np.ones(len(above))
    for _ in range(DOUBLINGS):
        short = slope_at(high) < 0
        if not short.any():
            break
        high = np.where(short, 2 * high, high)
    for _ in range(EXPONENT_HALVINGS):
        middle = (low + high) / 2
        below = slope_at(middle) < 0
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    grown = np.expm1(low * weights) - low * weights
    return np.asarray((expected * grown).sum(axis=0) - low * above)
