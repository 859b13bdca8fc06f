"""The mean and 95 % intervals over all models that may be true (docs/method.md, Intervals)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy

from unpoison.filters.joint import constants
from unpoison.filters.joint.faint_mixture import FaintMixture
from unpoison.filters.joint.fitting import Fit
from unpoison.filters.joint.noise import most_unnoticed_noise
from unpoison.filters.joint.selection import ModelChoice
from unpoison.types import FloatArray

Interval = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Intervals:
    """95 % intervals, from the lowest end of any model that may be true to the highest.

    >>> from unpoison import Plan, simulate
    >>> from unpoison.filters.joint import JointCounts, choose_model
    >>> plan, values = Plan.new(epsilon=0.5, low=0, high=1), np.full(50_000, 0.3)
    >>> run = simulate(plan, values, "point:C", 0.3, np.random.default_rng(1))
    >>> intervals = Intervals(choose_model(JointCounts.of(run.summary, range(4))))
    >>> low, high = intervals.attacker_share()
    >>> low < 0.3 < high < 0.31
    True
    """

    choice: ModelChoice

    def mean(self, values: FloatArray) -> Interval:
        """For the honest mean of the given values of x."""
        return _hull([self._of_mean(self._plausible, values), self._with_faint_poison(values)])

    def expected_mean(self, values: FloatArray) -> float:
        """The chosen model's mean, moved as poison too faint to be found would on average.

        The model that is chosen is either too simple for faint poison or not; the average over both
        has the smaller squared error, the more so the less the counts tell which is true.
        """
        moved = self.choice.best.mean(values) + self._faint.expected_shift(values)
        low, high = self.mean(values)
        return min(max(moved, low), high)

    def mean_with_noise(self, values: FloatArray) -> Interval:
        """The same if some users, too few to be noticed, send noise over the whole domain."""
        return _hull([self.mean(values), self._of_mean(self._unnoticed_noise, values)])

    def attacker_share(self) -> Interval:
        """For γ. If nobody seems to attack, it goes as far as noise that would not be noticed."""
        candidates = self._plausible + self._unnoticed_noise
        low, high = _hull(self._of_share(candidate) for candidate in candidates)
        return max(low, 0.0), min(high, 1.0)

    def _with_faint_poison(self, values: FloatArray) -> Interval:
        """For the chosen model, with poison besides its own that is too faint to be found."""
        best = self.choice.best
        error = self.error_factor * best.free_mean(values)[1]
        return self._faint.interval(best, values, error)

    @cached_property
    def _faint(self) -> FaintMixture:
        return FaintMixture.besides(self.choice.best)

    def _of_share(self, candidate: Fit) -> Interval:
        weights = self.choice.counts.user_weights(candidate.model.attacked)
        share = float(weights @ candidate.attacker_shares)
        # Noise of a share that was assumed, not fitted, has that share.
        if not candidate.share_covariance.any():
            return share, share
        middle, error = candidate.free_share(weights)
        return _around(share, middle, self.error_factor * error, (0.0, 1.0))

    def _of_mean(self, candidates: list[Fit], values: FloatArray) -> Interval:
        limits = float(values.min()), float(values.max())
        intervals = []
        for candidate in candidates:
            middle, error = candidate.free_mean(values)
            error *= self.error_factor
            intervals.append(_around(candidate.mean(values), middle, error, limits))
        return _hull(intervals) if intervals else (math.inf, -math.inf)

    @property
    def _plausible(self) -> list[Fit]:
        return [self.choice.best, *self.choice.others]

    @cached_property
    def _unnoticed_noise(self) -> list[Fit]:
        """As much noise as the data cannot tell from none, if nobody seems to attack."""
        if self.choice.attacker_share > 0:
            return []
        return [most_unnoticed_noise(self.choice.counts, self.choice.nobody)]

    @property
    def error_factor(self) -> float:
        """Factor on standard errors where no model fits: √(deviance/degrees of freedom)."""
        best = self.choice.best
        if self.choice.fits:
            return self.choice.error_factor
        return math.sqrt(max(best.deviance / max(best.degrees_of_freedom, 1.0), 1.0))


def _around(answer: float, middle: float, error: float, limits: Interval) -> Interval:
    """The quantiles of a normal distribution that is cut off at two limits; the answer is inside.

    The answer is the most likely value, which limits and a histogram that cannot be negative have
    moved away from the middle. If that is beyond a limit, there is still a distance to it.
    """
    error, tail = max(error, float(np.finfo(float).tiny)), constants.INTERVAL_LEVEL / 2
    farthest = constants.FARTHEST_MIDDLE * error
    middle = min(max(middle, limits[0] - farthest), limits[1] + farthest)
    above_lowest = scipy.special.ndtr((middle - limits[0]) / error)
    below_highest = scipy.special.ndtr((limits[1] - middle) / error)
    high = middle - error * float(scipy.special.ndtri(tail * above_lowest))
    low = middle + error * float(scipy.special.ndtri(tail * below_highest))
    return min(low, answer), max(high, answer)


def _hull(intervals: Iterable[Interval]) -> Interval:
    lows, highs = zip(*intervals, strict=True)
    return min(lows), max(highs)
