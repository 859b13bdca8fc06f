"""The onset of an attack: since when the share of attackers has been larger.

The share before and after each moment is compared, and the moment at which they differ most is the
onset, if chance does not explain it (a likelihood-ratio test for one step, with known errors).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy

from unpoison.types import FloatArray, IntArray

Numbers = Sequence[float] | FloatArray
LEVEL = 0.05
"""Quiet series in which an onset is seen, at most: as many as for the 95 % intervals."""
INTERVAL_ERRORS = 2 * 1.959963984540054
"""Standard errors from one end of a 95 % interval of a normal distribution to the other."""
LEAST_SHARE = 0.1
"""Share of all users that must be on either side of an onset in cumulative estimates. Closer to an
end, the difference of two estimates of nearly the same reports would be magnified."""
MODEL_ERROR = 0.5
"""Standard errors by which an estimate may move without new reports, because another model of the
attack fits a little better."""


def standard_error(interval: tuple[float, float]) -> float:
    """The standard error that a 95 % interval has.

    >>> round(standard_error((0.0, 0.0392)), 4)
    0.01
    """
    return (interval[1] - interval[0]) / INTERVAL_ERRORS


def step_up(shares: Numbers, errors: Numbers) -> int | None:
    """The first of the independent estimates after a step up; None if chance explains them.

    >>> step_up([0.01, 0.0, 0.02, 0.21, 0.2, 0.19], [0.02] * 6)
    3
    >>> step_up([0.01, 0.0, 0.02, 0.03, 0.0, 0.01], [0.02] * 6)
    """
    values, variances = np.array(shares), _positive(np.array(errors)) ** 2
    if len(values) < 2:
        return None
    weights = np.cumsum(1 / variances)
    sums = np.cumsum(values / variances)
    before, after = weights[:-1], weights[-1] - weights[:-1]
    differences = (sums[-1] - sums[:-1]) / after - sums[:-1] / before
    scores = differences / np.sqrt(1 / before + 1 / after)
    return _most_significant(scores, np.arange(1, len(values)))


def cumulative_step_up(users: Numbers, shares: Numbers, errors: Numbers) -> int | None:
    """The same for estimates of all reports so far, each of which holds the ones before.

    >>> users = [1000, 2000, 3000, 4000, 5000, 6000]
    >>> cumulative_step_up(users, [0.0, 0.0, 0.0, 0.05, 0.08, 0.1], [0.01] * 6)
    3
    """
    counts, values = np.array(users, dtype=np.float64), np.array(shares)
    if len(values) < 2:
        return None
    # Errors fall with the root of the number of users: the variance that one of them would have.
    variance = float(np.median(counts * _positive(np.array(errors)) ** 2))
    total = counts[-1]
    balanced = np.minimum(counts[:-1], total - counts[:-1]) >= LEAST_SHARE * total
    candidates = np.flatnonzero(balanced)
    if not len(candidates):
        return None
    differences = values[-1] - values[candidates]
    variances = variance * (1 / counts[candidates] - (1 - MODEL_ERROR**2) / total)
    return _most_significant(differences / np.sqrt(variances), candidates + 1)


def _positive(errors: FloatArray) -> FloatArray:
    """Errors without zeros, which intervals of no width have: the smallest other, or 1."""
    known = errors[errors > 0]
    return np.where(errors > 0, errors, known.min() if len(known) else 1.0)


def _most_significant(scores: FloatArray, indices: IntArray) -> int | None:
    """The index with the largest score, if that is not chance (Bonferroni over all of them)."""
    best = int(np.argmax(scores))
    p_value = len(scores) * float(scipy.special.ndtr(-scores[best]))
    return int(indices[best]) if p_value < LEVEL else None
