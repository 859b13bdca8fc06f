"""95 % intervals over all models that may be true (docs/method.md, Intervals)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.stats import norm

from unpoison.filters.joint import constants
from unpoison.filters.joint.fitting import Fit
from unpoison.filters.joint.model import EVEN
from unpoison.filters.joint.noise import fit_bias, most_unnoticed_noise
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
        return self._of_mean(self._plausible, values)

    def mean_with_noise(self, values: FloatArray) -> Interval:
        """The same if some users, too few to be noticed, send noise over the whole domain."""
        return self._of_mean(self._plausible + self._unnoticed_noise, values)

    def attacker_share(self) -> Interval:
        """For γ. If nobody seems to attack, it goes as far as noise that would not be noticed."""
        candidates = self._plausible + self._unnoticed_noise
        low, high = _hull(self._of_share(candidate) for candidate in candidates)
        return max(low, 0.0), min(high, 1.0)

    def _of_share(self, candidate: Fit) -> Interval:
        weights = self.choice.counts.user_weights(candidate.model.attacked)
        return self._around(
            float(weights @ candidate.attacker_shares),
            float(weights @ candidate.share_covariance @ weights),
            float(weights @ self._bias(candidate)[1]),
        )

    def _of_mean(self, candidates: list[Fit], values: FloatArray) -> Interval:
        return _hull(
            self._around(
                candidate.mean(values),
                candidate.standard_error(values) ** 2,
                float(values @ self._bias(candidate)[0]),
            )
            for candidate in candidates
        )

    @property
    def _plausible(self) -> list[Fit]:
        return [self.choice.best, *self.choice.others]

    @cached_property
    def _unnoticed_noise(self) -> list[Fit]:
        """As much noise as the data cannot tell from none, if nobody seems to attack."""
        if self.choice.attacker_share > 0:
            return []
        return [most_unnoticed_noise(self.choice.counts, self.choice.nobody)]

    def _around(self, middle: float, variance: float, bias: float) -> Interval:
        """Bias only widens: the answer is the most likely one, not one that was corrected."""
        quantile = float(norm.isf(constants.INTERVAL_LEVEL / 2))
        half_width = quantile * self.error_factor * math.sqrt(max(variance, 0.0))
        return middle - half_width - max(bias, 0.0), middle + half_width - min(bias, 0.0)

    @property
    def error_factor(self) -> float:
        """Factor on standard errors where no model fits: √(deviance/degrees of freedom)."""
        best = self.choice.best
        if self.choice.fits:
            return 1.0
        return math.sqrt(max(best.deviance / max(best.degrees_of_freedom, 1.0), 1.0))

    def _bias(self, candidate: Fit) -> tuple[FloatArray, FloatArray]:
        """Of x̂ and of the γ̂_t. Noise that was not fitted, but assumed, has no covariance."""
        if candidate.model.kind == EVEN and candidate.share_covariance.any():
            return self._noise_bias
        return np.zeros_like(candidate.honest), np.zeros_like(candidate.attacker_shares)

    @cached_property
    def _noise_bias(self) -> tuple[FloatArray, FloatArray]:
        return fit_bias(self.choice.counts, self.choice.even)


def _hull(intervals: Iterable[Interval]) -> Interval:
    lows, highs = zip(*intervals, strict=True)
    return min(lows), max(highs)
