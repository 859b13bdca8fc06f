"""How far honest users and poison on given categories are from explaining counts (k-RR).

Exact: the likelihood is concave in the honest share, and for each share it has a closed form.
"""

from __future__ import annotations

import numpy as np
import scipy

from unpoison.mechanisms import CategoricalMechanism
from unpoison.types import BoolArray, FloatArray

SHARE_PRECISION = 1e-12
"""Precision to which the best honest share is sought; also what counts as an honest share of 1."""
WORST_EXPECTED_COUNT = 1.25
"""The expected count with the largest `unit_deviance`, which is taken for all below."""
LARGE_EXPECTED_COUNT = 1000.0
"""Expected count from which on `unit_deviance` is 1 + 1/(6e) closely enough to spare a long sum."""


def support_deviance(
    mechanism: CategoricalMechanism, counts: FloatArray, support: BoolArray
) -> float:
    """2(l_all − l): the deviance of the best model with honest users and poison on `support`.

    l_all is the log-likelihood of the counts' own frequencies.

    With S the honest share, a report is category i with probability m_i ≥ other·S, and those
    outside the support have at most S(other·(k − r) + kept − other) together. For a given S the
    likelihood is greatest where the counts are followed down to that floor (by water-filling), and
    it is concave in S.

    >>> from unpoison.mechanisms import RandomizedResponse
    >>> rr, counts = RandomizedResponse(epsilon=0.5, cells=3), np.array([100.0, 100.0, 400.0])
    >>> nowhere, last = np.zeros(3, dtype=bool), np.array([False, False, True])
    >>> support_deviance(rr, counts, nowhere) > 40, support_deviance(rr, counts, last)
    (True, 0.0)
    """
    mixture = _Mixture(mechanism, counts / counts.sum(), support)
    return max(2 * float(counts.sum()) * mixture.least_loss(), 0.0)


def unit_deviance(expected: float) -> float:
    """Average deviance of one category by noise alone: 1 where it has many reports.

    It is the mean of 2(c ln(c/e) − c + e) over Poisson counts c around e. With few reports (under
    ten or so) it is larger, up to 1.16 at e = 1.25, which is taken for all below: an upper bound.

    >>> [round(unit_deviance(expected), 3) for expected in (0.1, 3, 30, 3000)]
    [1.16, 1.095, 1.006, 1.0]
    """
    expected = max(expected, WORST_EXPECTED_COUNT)
    if expected > LARGE_EXPECTED_COUNT:
        return 1 + 1 / (6 * expected)
    # Counts beyond have no weight: 2e + 100 is 20 standard deviations √e above e, or more.
    counts = np.arange(int(2 * expected) + 100)
    probabilities = np.exp(
        scipy.special.xlogy(counts, expected) - expected - scipy.special.gammaln(counts + 1)
    )
    return float(
        probabilities @ (2 * (scipy.special.xlogy(counts, counts / expected) - counts + expected))
    )


class _Mixture:
    """Honest users and poison on a support, as a mixture with honest share S."""

    def __init__(
        self, mechanism: CategoricalMechanism, shares: FloatArray, support: BoolArray
    ) -> None:
        self.shares, self.support = shares, support
        self.other = mechanism.other
        outside = int((~support).sum())
        # All honest users in categories outside the support, per unit of S.
        self.most_outside = mechanism.other * outside + mechanism.kept - mechanism.other

    def least_loss(self) -> float:
        """l_all − l per report, at the best S: 0 where some S allows the counts' own frequencies.

        That needs S ≤ `highest`, for no count to be under the floor, and S ≥ `lowest`, for those
        outside not to be too many. Where the two contradict each other, the best S lies between.
        """
        lowest = float(self.shares[~self.support].sum()) / self.most_outside
        highest = float(self.shares.min()) / self.other
        if not self.support.any() or lowest > 1 - SHARE_PRECISION <= highest:
            return self.loss(1.0)
        if lowest <= min(highest, 1.0):
            return 0.0
        bounds = (min(highest, 1.0), min(lowest, 1.0))
        best = scipy.optimize.minimize_scalar(
            self.loss, bounds=bounds, method="bounded", options={"xatol": SHARE_PRECISION}
        )
        # The search only comes near its ends, and the best S may be 1.
        return min(float(best.fun), self.loss(bounds[1]))

    def loss(self, honest: float) -> float:
        """l_all − l per report, for one honest share S."""
        floor, most = self.other * honest, self.most_outside * honest
        fitted = water_filled(self.shares, 1.0, floor)
        outside = ~self.support
        if self.support.any() and fitted[outside].sum() > most:
            fitted[outside] = water_filled(self.shares[outside], most, floor)
            fitted[self.support] = water_filled(self.shares[self.support], 1 - most, floor)
        seen = self.shares > 0
        return float(self.shares[seen] @ np.log(self.shares[seen] / fitted[seen]))


def water_filled(shares: FloatArray, total: float, floor: float) -> FloatArray:
    """The m with that total, none under the floor, that maximises Σ shares·ln m.

    Those above the floor are in proportion to their shares.

    >>> water_filled(np.array([0.5, 0.375, 0.125]), total=1.0, floor=0.3).round(3).tolist()
    [0.4, 0.3, 0.3]
    """
    rising = np.sort(shares)
    at_the_floor = np.arange(len(shares))
    shares_above = np.cumsum(rising[::-1])[::-1]
    total_above = total - at_the_floor * floor
    # With the k smallest at the floor, the next is above it if its proportional part is.
    above = rising * total_above >= floor * shares_above
    first = int(above.argmax()) if above.any() else len(shares) - 1
    if shares_above[first] <= 0:
        return np.full(len(shares), total / len(shares))
    return np.asarray(np.maximum(shares * (total_above[first] / shares_above[first]), floor))
