"""Fits: the most likely honest histogram and poison under one model, with errors and p-value."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy

from unpoison.filters.joint import constants
from unpoison.filters.joint.counts import JointCounts
from unpoison.filters.joint.model import PoisonModel
from unpoison.filters.joint.point import Point
from unpoison.filters.joint.scoring import ScoringStep, degrees_of_freedom
from unpoison.filters.joint.solver import Maximum, maximise_likelihood
from unpoison.system.blas import single_threaded
from unpoison.types import FloatArray


@dataclass(frozen=True, eq=False)
class Fit:
    """The most likely histograms under one model of the poison.

    `honest` is x̂, `attacker_shares` the γ̂_t, `poison` the ŷ_t and `expected` the p_t, by group and
    bucket. `duality_gap` bounds by how much the log-likelihood could still rise. The covariances
    of x̂ and of the γ̂_t have all other unknowns free. `point` is where the solver ended.

    >>> from unpoison import Plan, simulate
    >>> plan = Plan.new(epsilon=0.5, min_epsilon=0.25, low=0, high=1)
    >>> run = simulate(plan, np.full(20_000, 0.3), rng=np.random.default_rng(1))
    >>> honest_fit = fit(JointCounts.of(run.summary, [0, 1]), PoisonModel.nobody(2, 64))
    >>> honest_fit.converged, honest_fit.duality_gap < 0.1, bool(honest_fit.p_value > 0.01)
    (True, True, True)
    """

    model: PoisonModel
    honest: FloatArray
    attacker_shares: FloatArray
    poison: FloatArray
    expected: FloatArray
    deviance: float
    degrees_of_freedom: float
    steps: int
    duality_gap: float
    converged: bool
    honest_covariance: FloatArray
    share_covariance: FloatArray
    point: Point

    @cached_property
    def p_value(self) -> float:
        """Chance of counts that fit as badly, if the model is true (χ²)."""
        return float(scipy.special.chdtrc(max(self.degrees_of_freedom, 1.0), self.deviance))

    def mean(self, values: FloatArray) -> float:
        """The honest mean of the given values of x."""
        return float(self.honest @ values)

    def standard_error(self, values: FloatArray) -> float:
        """The standard error of that mean."""
        variance = float(values @ self.honest_covariance @ values)
        return math.sqrt(max(variance, 0.0))

    @cached_property
    def free_step(self) -> ScoringStep:
        """The step to the estimate whose histogram may be negative, with its covariance.

        A histogram that cannot be negative is biased: towards the inside of the range if all users
        are at one end of it. Without that bound the mean is unbiased, with a known error.
        """
        return ScoringStep.at(self.point, free_histogram=True)

    def free_mean(self, values: FloatArray) -> tuple[float, float]:
        """The mean of given values if the histogram may be negative, and its standard error."""
        inputs = len(self.honest)
        variance = float(values @ self.free_step.covariance[:inputs, :inputs] @ values)
        mean = self.mean(values) + float(values @ self.free_step.honest)
        return mean, math.sqrt(max(variance, 0.0))

    def free_share(self, weights: FloatArray) -> tuple[float, float]:
        """Σ_t weight_t·γ_t if the histogram may be negative, and its standard error."""
        inputs, of_attacked = len(self.honest), weights[self.point.attacked]
        variance = float(of_attacked @ self.free_step.covariance[inputs:, inputs:] @ of_attacked)
        step = float(of_attacked @ self.free_step.honest_shares)
        return float(weights @ self.attacker_shares) - step, math.sqrt(max(variance, 0.0))


@single_threaded
def fit(
    counts: JointCounts,
    model: PoisonModel,
    most_steps: int | None = None,
    nobody: Fit | None = None,
) -> Fit:
    """Maximise the likelihood under a model.

    `nobody` is the fit of no poison to the same counts, where it is at hand: evenly spread poison
    is compared with it.

    >>> from unpoison import Plan, simulate
    >>> plan = Plan.new(epsilon=0.5, min_epsilon=0.25, low=0, high=1)
    >>> run = simulate(plan, np.full(50_000, 0.3), "point:C", 0.2, np.random.default_rng(1))
    >>> last = np.arange(64) == 63
    >>> point_fit = fit(JointCounts.of(run.summary, [0, 1]), PoisonModel.alike(last, 2))
    >>> bool(np.allclose(point_fit.attacker_shares, 0.2, atol=0.01))
    True
    """
    most_steps = constants.MOST_STEPS if most_steps is None else most_steps
    best = _fit_of(maximise_likelihood(counts, model, most_steps))
    if model.flat:
        # The likelihood may have a second peak, at nothing but noise: no noise may be better.
        nobody = nobody or fit(counts, PoisonModel.nobody(*counts.counts.shape), most_steps)
        if nobody.deviance < best.deviance:
            return replace(nobody, model=model)
    return best


def _fit_of(maximum: Maximum) -> Fit:
    """What the solver's last point says, with errors from its last scoring step."""
    point, step = maximum.point, maximum.next_step
    counts, inputs = point.counts, len(point.honest)
    expected = point.expected().reshape(counts.counts.shape)
    groups = len(counts.reports)
    share_covariance = np.zeros((groups, groups))
    share_covariance[np.ix_(point.attacked, point.attacked)] = step.covariance[inputs:, inputs:]
    return Fit(
        model=point.model,
        honest=point.honest,
        attacker_shares=1 - point.honest_shares,
        poison=point.poison(),
        expected=expected,
        deviance=point.deviance(),
        degrees_of_freedom=degrees_of_freedom(point, step),
        steps=maximum.steps,
        duality_gap=point.duality_gap,
        converged=maximum.converged,
        honest_covariance=step.covariance[:inputs, :inputs],
        share_covariance=share_covariance,
        point=point,
    )
