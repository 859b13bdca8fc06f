"""Intervals over all models that may be true, and the bias of a fit with noise in it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.stats import chi2, norm

from unpoison.filters.attacker_share import MOST_ATTACKERS
from unpoison.filters.em.steps import Smoothed
from unpoison.filters.joint.counts import JointCounts
from unpoison.filters.joint.model import EVEN, Poison
from unpoison.filters.joint.selection import Choice
from unpoison.filters.joint.solver import Fit, fit
from unpoison.types import FloatArray

Interval = tuple[float, float]
LEVEL = 0.05
REPLICATES = 20
HALVINGS = 7
SMOOTHINGS = 8
"""A spread of two buckets: enough to join the few values to which a likely histogram shrinks."""


@dataclass(frozen=True, eq=False)
class Intervals:
    """95 % intervals, from the lowest end of any model that may be true to the highest.

    >>> from unpoison import Plan, simulate
    >>> from unpoison.filters.joint import choose
    >>> plan, values = Plan.new(epsilon=0.5, low=0, high=1), np.full(50_000, 0.3)
    >>> run = simulate(plan, values, "point:C", 0.3, np.random.default_rng(1))
    >>> intervals = Intervals(choose(JointCounts.of(run.summary, range(4))))
    >>> low, high = intervals.share()
    >>> low < 0.3 < high < 0.31
    True
    """

    choice: Choice

    def mean(self, direction: FloatArray) -> Interval:
        """For the honest mean of some values."""
        return self._around(self._plausible, direction)

    def mean_with_noise(self, direction: FloatArray) -> Interval:
        """The same if some users, too few to be noticed, send noise over the whole domain."""
        return self._around(self._plausible + self._unnoticed, direction)

    def share(self) -> Interval:
        """For γ. If nobody seems to attack, it goes as far as noise that would not be noticed."""
        users = self.choice.counts.users
        weights = users / users.sum()
        found = [
            self._ends(
                float(weights @ each.shares),
                float(weights @ each.share_covariance @ weights),
                float(weights @ self._bias(each)[1]),
            )
            for each in self._plausible + self._unnoticed
        ]
        low, high = _hull(found)
        return max(low, 0.0), min(high, 1.0)

    def _around(self, models: list[Fit], direction: FloatArray) -> Interval:
        return _hull(
            self._ends(
                each.mean(direction),
                each.deviation(direction) ** 2,
                float(direction @ self._bias(each)[0]),
            )
            for each in models
        )

    @property
    def _plausible(self) -> list[Fit]:
        return [self.choice.best, *self.choice.others]

    @cached_property
    def _unnoticed(self) -> list[Fit]:
        """As much noise as the data cannot tell from none, if nobody seems to attack."""
        if self.choice.share > 0:
            return []
        return [most_noise(self.choice.counts, self.choice.nobody)]

    def _ends(self, middle: float, variance: float, bias: float) -> Interval:
        """Bias only widens: the answer is the most likely one, not one that was corrected."""
        out = float(norm.isf(LEVEL / 2)) * self.strain * math.sqrt(max(variance, 0.0))
        return middle - out - max(bias, 0.0), middle + out - min(bias, 0.0)

    @property
    def strain(self) -> float:
        """By how much errors are to be widened where no model fits: √(deviance/degrees)."""
        best = self.choice.best
        if self.choice.fits:
            return 1.0
        return math.sqrt(max(best.deviance / max(best.degrees, 1.0), 1.0))

    def _bias(self, found: Fit) -> tuple[FloatArray, FloatArray]:
        if found.model.kind == EVEN and found.share_covariance.any():
            return self._noise_bias
        return np.zeros_like(found.honest), np.zeros_like(found.shares)

    @cached_property
    def _noise_bias(self) -> tuple[FloatArray, FloatArray]:
        return bias(self.choice.counts, self.choice.even)


def most_noise(counts: JointCounts, nobody: Fit) -> Fit:
    """The largest share of noise that a test at 5 % does not tell from none, as a fit.

    Noise of a known share is nobody's attack on another mechanism: one that replaces as many
    reports by a draw from the whole domain. The share is found by halving.

    >>> from unpoison import Plan, simulate
    >>> from unpoison.filters.joint import Poison
    >>> plan, rng = Plan.new(epsilon=1.0, low=0, high=1), np.random.default_rng(1)
    >>> run = simulate(plan, rng.random(50_000), rng=rng)
    >>> counts = JointCounts.of(run.summary, range(5))
    >>> found = most_noise(counts, fit(counts, Poison.nobody(*counts.counts.shape)))
    >>> bool(0 < found.shares[0] < 0.5), found.model.kind
    (True, 'even')
    """
    low, high = 0.0, MOST_ATTACKERS
    found = nobody
    for _ in range(HALVINGS):
        share = (low + high) / 2
        noisy = fit(counts.with_noise(share), nobody.model)
        if noisy.deviance < nobody.deviance + chi2.isf(2 * LEVEL, 1):
            low, found = share, noisy
        else:
            high = share
    shares = np.full(len(counts.reports), low)
    return replace(found, model=Poison.even(*counts.counts.shape), shares=shares)


def bias(
    counts: JointCounts, found: Fit, replicates: int = REPLICATES, seed: int = 0
) -> tuple[FloatArray, FloatArray]:
    """By how much a fit's histogram and shares are off on average, if it is nearly true.

    A histogram cannot be negative, so that which is most likely shrinks to a few values, and takes
    some of the noise for users of its own. Collections are drawn from it with its values spread out
    again, and fitted.

    >>> from unpoison import Plan, simulate
    >>> from unpoison.filters.joint import Poison
    >>> plan, values = Plan.new(epsilon=0.5, low=0, high=1), np.full(50_000, 0.3)
    >>> run = simulate(plan, values, "noise", 0.3, np.random.default_rng(1))
    >>> counts = JointCounts.of(run.summary, range(4))
    >>> of_honest, of_shares = bias(counts, fit(counts, Poison.even(4, 64)))
    >>> of_honest.shape, of_shares.shape
    ((66,), (4,))
    """
    rng, honest = np.random.default_rng(seed), _spread_out(counts, found.honest)
    drawn = (counts.drawn(honest, rng, found.poison) for _ in range(replicates))
    again = [fit(each, found.model) for each in drawn]
    of_honest: FloatArray = np.mean([each.honest for each in again], axis=0) - honest
    of_shares: FloatArray = np.mean([each.shares for each in again], axis=0) - found.shares
    return of_honest, of_shares


def _spread_out(counts: JointCounts, honest: FloatArray) -> FloatArray:
    """A histogram without gaps; categories, and values that were added, stay as they are."""
    smooth, mechanism = honest.copy(), counts.buckets[0].mechanism
    inputs = 0 if mechanism.categorical else counts.buckets[0].inputs
    for _ in range(SMOOTHINGS if inputs else 0):
        Smoothed()(smooth[:inputs], np.empty(0))
    return smooth


def _hull(intervals: Iterable[Interval]) -> Interval:
    lows, highs = zip(*intervals, strict=True)
    return min(lows), max(highs)
