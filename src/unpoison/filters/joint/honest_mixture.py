"""The most likely honest histogram over any values, however many, while the poison is given.

With many values the interior-point method is slow. For x alone a step of Fisher scoring is a
problem of non-negative least squares, whose solution has few values.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy

from unpoison.filters.joint import constants
from unpoison.filters.joint.counts import JointCounts
from unpoison.filters.joint.fitting import Fit
from unpoison.types import FloatArray


@dataclass(frozen=True, eq=False)
class Mixture:
    """A histogram over given values, what it expects with given poison, and its deviance.

    >>> Mixture(np.array([0.5, 0.5]), np.array([[0.25, 0.75]]), 1.5).deviance
    1.5
    """

    honest: FloatArray
    expected: FloatArray
    deviance: float


class MixtureStep:
    """A step of scoring from a fit's expectation, for x over the values of the given transitions.

    What it prepares depends on the expectation alone, so that many collections of as many reports
    can be solved with it.

    >>> from unpoison import Plan, simulate
    >>> from unpoison.filters.joint import PoisonModel, fit
    >>> run = simulate(Plan.new(low=0, high=1), np.full(20_000, 0.3), rng=np.random.default_rng(1))
    >>> counts = JointCounts.of(run.summary, range(4))
    >>> nobody = fit(counts, PoisonModel.nobody(*counts.counts.shape))
    >>> step = MixtureStep(counts, nobody, nobody.expected, counts.transitions)
    >>> bool(abs(step.solve(counts).deviance - nobody.deviance) < 1)
    True
    """

    def __init__(
        self, counts: JointCounts, best: Fit, expected: FloatArray, transitions: FloatArray
    ) -> None:
        self.poison = best.poison
        by_group = (1 - best.attacker_shares)[:, None, None] * transitions
        self.transitions = by_group.reshape(-1, transitions.shape[2])
        self.weights = np.sqrt(counts.precision(expected)).ravel()
        self.basis, self.triangle = np.linalg.qr(self.weights[:, None] * self.transitions)

    def solve(self, counts: JointCounts) -> Mixture:
        """The solution for a collection's counts."""
        target = self.weights * (counts.observed - self.poison).ravel()
        solution = scipy.optimize.nnls(self.triangle, self.basis.T @ target)[0]
        return self._mixture(counts, solution)

    def thinned(self, counts: JointCounts, mixture: Mixture) -> Mixture:
        """Without values that a test at 5 % would not miss, the least of them first.

        The most likely histogram has some values that are there by chance. Collections drawn from
        it would be fitted with as many again, and fit better than those of real users.
        """
        right = self.basis.T @ (self.weights * (counts.observed - self.poison).ravel())
        held, missed = (
            np.flatnonzero(mixture.honest),
            scipy.special.chdtri(1, constants.SIGNIFICANCE),
        )
        while True:
            shares, variances = _least_squares(self.triangle[:, held], right)
            # Those below 0 come first: the others do without them.
            losses = np.sign(shares) * shares**2 / variances
            if len(held) == 1 or losses.min() >= missed:
                break
            held = np.delete(held, losses.argmin())
        solution = np.zeros(len(mixture.honest))
        solution[held] = np.maximum(shares, 0.0)
        return self._mixture(counts, solution)

    def _mixture(self, counts: JointCounts, solution: FloatArray) -> Mixture:
        if not solution.any():
            # The poison is more than was observed almost everywhere: no honest users explain it.
            return Mixture(solution, self.poison, math.inf)
        # Fractions of reports sum to 1 in each group, and so x nearly does by itself.
        honest: FloatArray = solution / solution.sum()
        expected = (self.transitions @ honest).reshape(self.poison.shape) + self.poison
        return Mixture(honest, expected, counts.deviance(expected))


def _least_squares(matrix: FloatArray, right: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The solution without bounds, and the variance of each of its numbers."""
    lengths = np.sqrt((matrix**2).sum(axis=0))
    scaled = matrix / lengths
    # Neighbouring values are nearly alike, and the ridge keeps their matrix from being singular.
    ridge = constants.MIXTURE_RIDGE * np.eye(len(lengths))
    inverse = np.linalg.inv(scaled.T @ scaled + ridge)
    return inverse @ (scaled.T @ right) / lengths, np.diag(inverse) / lengths**2


def most_likely_mixture(counts: JointCounts, best: Fit, transitions: FloatArray) -> Mixture | None:
    """The most likely x over the values of the transitions; None if it is no better than the fit's.

    >>> from unpoison import Plan, simulate
    >>> from unpoison.filters.joint import PoisonModel, fit
    >>> plan, values = Plan.new(epsilon=4.0, low=0, high=1), np.full(200_000, 0.37)
    >>> run = simulate(plan, values, rng=np.random.default_rng(1))
    >>> counts = JointCounts.of(run.summary, range(4))
    >>> nobody = fit(counts, PoisonModel.nobody(*counts.counts.shape))
    >>> values = counts.extreme_values()
    >>> mixture = most_likely_mixture(counts, nobody, counts.transitions_from(values))
    >>> mixture.deviance < nobody.deviance, bool(abs(mixture.honest @ values - -0.26) < 0.01)
    (True, True)
    """
    mixture, expected, deviance = None, best.expected, best.deviance
    for _ in range(constants.MOST_MIXTURE_STEPS):
        proposed = MixtureStep(counts, best, expected, transitions).solve(counts)
        gain = deviance - proposed.deviance
        if gain > 0:
            mixture, expected, deviance = proposed, proposed.expected, proposed.deviance
        if gain < constants.MIXTURE_GAIN:
            break
    return mixture
