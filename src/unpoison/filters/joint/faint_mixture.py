"""Means and intervals that allow for poison too faint to be found (docs/method.md, Faint poison).

A fit says what is certain enough to be told. Attackers besides those that it has found may move the
mean by more than its standard error before any test notices them. So the mean and its interval are
those of a mixture: there is no more poison, or there is some, in any range of buckets and any set
of groups, each weighed by how well it explains the counts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy

from unpoison.filters.attacker_share import MOST_ATTACKERS
from unpoison.filters.joint import constants
from unpoison.filters.joint.faint_poison import FaintPoison
from unpoison.filters.joint.fitting import Fit
from unpoison.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class FaintMixture:
    """Further poison that may be there, one part a place and share, with its probability.

    >>> from unpoison import Plan, simulate
    >>> from unpoison.filters.joint import JointCounts, PoisonModel, fit
    >>> plan = Plan.new(epsilon=0.5, low=0, high=1)
    >>> run = simulate(plan, np.full(50_000, 0.3), rng=np.random.default_rng(3))
    >>> counts = JointCounts.of(run.summary, range(4))
    >>> nobody = fit(counts, PoisonModel.nobody(4, 64))
    >>> mixture = FaintMixture.besides(nobody)
    >>> float(mixture.probabilities.sum().round(6))
    1.0
    >>> middle, error = nobody.free_mean(counts.values)
    >>> low, high = mixture.interval(nobody, counts.values, error)
    >>> 1 < (high - low) / (2 * 1.96 * error) < 2
    True
    >>> abs(mixture.expected_shift(counts.values)) < error / 5
    True
    """

    honest_slopes: FloatArray
    """∂x/∂δ, one line a place."""
    places: IntArray
    """The place of each part; the first part has none."""
    shares: FloatArray
    """δ of each part: 0 for the first, which has no further poison."""
    probabilities: FloatArray

    @classmethod
    def besides(cls, fit: Fit) -> FaintMixture:
        """The probabilities of further poison besides that of a fit, given the counts."""
        faint = FaintPoison.besides(fit)
        shares = np.geomspace(constants.LEAST_FAINT_SHARE, MOST_ATTACKERS, constants.FAINT_SHARES)
        deviations = shares / faint.errors[:, :, None]
        gained = deviations * faint.deviations[:, :, None] - deviations**2 / 2
        prior = constants.FAINT_PRIOR * _place_probabilities(faint) / len(shares)
        # The most that any part gains is taken off, so that no exponential overflows.
        most = max(float(gained.max()), 0.0)
        parts = (prior[:, :, None] * np.exp(gained - most)).ravel()
        none = (1 - constants.FAINT_PRIOR) * np.exp(-most)
        probabilities = np.append(none, parts) / (none + parts.sum())
        held = probabilities > constants.NEGLIGIBLE_PROBABILITY
        places = np.append(0, np.repeat(np.arange(faint.shares.size), len(shares)))
        all_shares = np.append(0.0, np.tile(shares, faint.shares.size))
        return cls(
            honest_slopes=faint.honest_slopes.reshape(faint.shares.size, -1),
            places=places[held],
            shares=all_shares[held],
            probabilities=probabilities[held] / probabilities[held].sum(),
        )

    def expected_shift(self, values: FloatArray) -> float:
        """How far further poison moves the honest mean of given values, on average of all parts."""
        return float(
            (self.honest_slopes @ values)[self.places] @ (self.shares * self.probabilities)
        )

    def interval(self, fit: Fit, values: FloatArray, error: float) -> tuple[float, float]:
        """The 95 % interval of the mean of given values, each part normal with that error.

        The distribution is cut off at the smallest and the largest value.
        """
        shifts = (self.honest_slopes @ values)[self.places] * self.shares
        middles, weights = _binned(fit.free_mean(values)[0] + shifts, self.probabilities)
        error, tail = max(error, float(np.finfo(float).tiny)), constants.INTERVAL_LEVEL / 2
        lowest, highest = float(values.min()), float(values.max())
        farthest = constants.FARTHEST_MIDDLE * error
        middles = middles.clip(lowest - farthest, highest + farthest)
        # Twice as far out, no part of the mixture has any weight left.
        ends = float(middles.min()) - 2 * farthest, float(middles.max()) + 2 * farthest

        def below(mean: float) -> float:
            return float(weights @ scipy.special.ndtr((mean - middles) / error))

        def above(mean: float) -> float:
            return float(weights @ scipy.special.ndtr((middles - mean) / error))

        # Either tail by its own function: 1 − above would lose a tail that is nearly 0 or 1.
        low_tail, high_tail = tail * below(highest), tail * above(lowest)
        low = scipy.optimize.brentq(lambda mean: below(mean) - low_tail, *ends)
        high = scipy.optimize.brentq(lambda mean: above(mean) - high_tail, *ends)
        return float(low), float(high)


def _place_probabilities(faint: FaintPoison) -> FloatArray:
    """Beforehand, by set and range: one half for all groups, one half for ranges at an end.

    Attackers who act alike everywhere are the plain case, and poison moves the mean most at an end.
    Within each kind every place is as likely as another.
    """
    at_an_end = np.array([chosen.at_an_end for chosen in faint.ranges])
    places = len(faint.shapes)
    ranges = _halves(at_an_end) if len(at_an_end) else np.full(places, 1 / places)
    known = np.isfinite(faint.errors)
    probabilities = np.where(
        known, np.outer(_halves(np.asarray(faint.sets.all(axis=1))), ranges), 0.0
    )
    total = float(probabilities.sum())
    return probabilities / total if total > 0 else probabilities


def _halves(chosen: BoolArray) -> FloatArray:
    """One half for the chosen ones together, one half for the others, if there are both."""
    weights = np.where(chosen, 1 / max(int(chosen.sum()), 1), 1 / max(int((~chosen).sum()), 1))
    halves: FloatArray = weights / weights.sum()
    return halves


def _binned(middles: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The same mixture with neighbouring parts put together, so that it has at most 500."""
    order = np.argsort(middles)
    parts = np.array_split(order, min(len(order), constants.MIXTURE_PARTS))
    totals = np.array([weights[part].sum() for part in parts])
    centres = np.array([weights[part] @ middles[part] for part in parts]) / totals
    return centres, totals
