"""One step of Fisher scoring with logarithmic barriers (docs/method.md, The algorithm).

Newton's method on the log-likelihood, with the observed information replaced by the expected one,
Jᵀ diag(N/p) J. Each weight w enters one bucket of a group, so their part of that matrix is
diagonal, and they are eliminated (a Schur complement): the system that is left has an unknown for
each entry of x, each a_t, and each sum that is fixed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy

from unpoison.filters.joint.point import Point
from unpoison.types import FloatArray


@dataclass(frozen=True, eq=False)
class ScoringStep:
    """A direction for x, a and w, with the matrices from which errors and leverage are read.

    >>> from unpoison import Plan, simulate
    >>> from unpoison.filters.joint import JointCounts, PoisonModel
    >>> plan = Plan.new(epsilon=0.5, min_epsilon=0.25, low=0, high=1)
    >>> run = simulate(plan, np.full(20_000, 0.3), rng=np.random.default_rng(1))
    >>> counts = JointCounts.of(run.summary, [0, 1])
    >>> step = ScoringStep.at(Point(counts, PoisonModel.nobody(2, 64)))
    >>> bool(abs(step.honest.sum()) < 1e-9)
    True
    """

    honest: FloatArray
    honest_shares: FloatArray
    weights: FloatArray
    scaled_system: FloatArray
    """The matrix of the equations for x, a and the multipliers of fixed sums."""
    scale: FloatArray
    """The factors of its rows and columns."""
    weight_cross: FloatArray
    """The information's block of weights against x and a."""
    weight_variance: FloatArray
    """1 / the information's diagonal block of weights."""
    precision: FloatArray
    """N_t / p in rows."""
    derivatives: FloatArray
    """J: ∂p by x and a, in rows."""
    slope: FloatArray
    """∂(Σ N p − c ln p)/∂p in rows: what is minimised, without barriers."""
    weight_gradient: FloatArray
    """The gradient of what is minimised by the weights, with their barrier."""
    solution: FloatArray
    """The step of x and a, and the multipliers of the fixed sums."""

    @cached_property
    def inverse(self) -> FloatArray:
        """The inverse of the matrix of the equations for x, a and the multipliers."""
        inverse: FloatArray = np.linalg.inv(self.scaled_system) * self.scale[:, None] * self.scale
        return inverse

    @property
    def covariance(self) -> FloatArray:
        """Covariance of x and a, with the weights free."""
        size = self.derivatives.shape[1]
        covariance: FloatArray = self.inverse[:size, :size]
        return covariance

    @classmethod
    def at(cls, point: Point, *, free_histogram: bool = False) -> ScoringStep:
        """The step from a point; with `free_histogram` to where x may be negative, too.

        At a maximum, the latter leads to the estimate that linear regression would give.
        """
        honest_expected = point.honest_expected()
        expected = point.expected(honest_expected)
        precision = point.row_reports / expected
        # Minimised is Σ N p − c ln p: the first sum is constant, and keeps slopes near 0.
        slope = point.row_reports - point.counts.counts.ravel() / expected
        derivatives = point.derivatives(honest_expected)
        gradient = derivatives.T @ slope
        # A matrix times its own transpose: half the work of a product of two different ones.
        rooted = np.sqrt(precision)[:, None] * derivatives
        information = rooted.T @ rooted
        _add_barriers(point, gradient, information, free_histogram)
        inputs = len(point.honest)
        slope_of_shares, curvature_of_shares = scatter_of_shares(point)
        gradient[inputs:] += slope_of_shares
        information[inputs:, inputs:] += curvature_of_shares
        eliminated = _EliminatedWeights.at(point, precision, slope, derivatives)
        system, right = _equations(point, gradient, information, eliminated)
        # Scaling by x keeps the equations well conditioned where x is nearly 0.
        scale = np.ones(len(right))
        scale[:inputs] = 1 / np.sqrt(np.diag(system)[:inputs]) if free_histogram else point.honest
        scaled_system = system * scale[:, None] * scale
        solution = scale * np.linalg.solve(scaled_system, scale * right)
        size = derivatives.shape[1]
        direction, sum_multipliers = solution[:size], solution[size:]
        pull = point.fixed_sums[1].T @ sum_multipliers
        followed = eliminated.gradient + eliminated.cross @ direction + pull
        return cls(
            honest=direction[:inputs],
            honest_shares=direction[inputs:],
            weights=-followed * eliminated.variance,
            scaled_system=scaled_system,
            scale=scale,
            weight_cross=eliminated.cross,
            weight_variance=eliminated.variance,
            precision=precision,
            derivatives=derivatives,
            slope=slope,
            weight_gradient=eliminated.gradient,
            solution=solution,
        )


@dataclass(frozen=True, eq=False)
class _EliminatedWeights:
    """The weights' part of the equations: gradient, cross block and 1/diagonal block."""

    gradient: FloatArray
    cross: FloatArray
    variance: FloatArray

    @classmethod
    def at(
        cls, point: Point, precision: FloatArray, slope: FloatArray, derivatives: FloatArray
    ) -> _EliminatedWeights:
        if not point.model.weight_count:
            return cls(np.empty(0), np.empty((0, derivatives.shape[1])), np.empty(0))
        rows, slopes = point.weight_rows, point.weight_slopes()
        weighted = slopes * precision[rows]
        cross = np.einsum("wr,wrv->wv", weighted, derivatives[rows])
        gradient = (slopes * slope[rows]).sum(axis=1) - point.barrier / point.weights
        diagonal = (slopes * weighted).sum(axis=1) + point.weight_multipliers / point.weights
        return cls(gradient, cross, 1 / diagonal)


def _add_barriers(
    point: Point, gradient: FloatArray, information: FloatArray, free_histogram: bool
) -> None:
    """The barriers of x, of a, and of 1 − a, added in place."""
    inputs = len(point.honest)
    # A view: what is added to it is added to the matrix.
    diagonal = np.einsum("ii->i", information)
    if free_histogram:
        # A share of users is known to 1 beforehand: directions of which counts say nothing.
        diagonal[:inputs] += 1
    else:
        gradient[:inputs] -= point.barrier / point.honest
        diagonal[:inputs] += point.honest_multipliers / point.honest
    shares = point.honest_shares[point.attacked]
    # a > 0 has a primal barrier alone, since no a ends there. Without it, a step that a = 0 cuts
    # short would cut all further ones, too.
    gradient[inputs:] -= point.barrier / shares
    diagonal[inputs:] += point.barrier / shares**2
    if len(point.bounded):
        attackers = 1 - point.honest_shares[point.bounded]
        gradient[inputs:] += point.barrier / attackers
        diagonal[inputs:] += point.share_multipliers / attackers


def scatter_of_shares(point: Point) -> tuple[FloatArray, FloatArray]:
    """Slope and curvature by the a_t of what the γ_t lose by their scatter (`Point.share_scatter`).

    >>> from unpoison import Plan, simulate
    >>> from unpoison.filters.joint import JointCounts, PoisonModel
    >>> plan = Plan.new(epsilon=0.5, min_epsilon=0.25, low=0, high=1)
    >>> run = simulate(plan, np.full(20_000, 0.3), rng=np.random.default_rng(1))
    >>> point = Point(JointCounts.of(run.summary, [0, 1]), PoisonModel.even(2, 64))
    >>> slope, curvature = scatter_of_shares(point)
    >>> bool(np.allclose(slope, 0)), bool(np.allclose(curvature.sum(axis=1), 0))
    (True, True)
    """
    groups = len(point.attacked)
    if not point.model.tied_shares:
        return np.zeros(groups), np.zeros((groups, groups))
    users, shares = point.counts.users[point.attacked], point.attacker_shares
    average = users @ shares / users.sum()
    slope = -users * (scipy.special.logit(shares) - scipy.special.logit(average))
    curvature = np.diag(users / (shares * (1 - shares)))
    curvature -= np.outer(users, users) / (users.sum() * average * (1 - average))
    return slope, curvature


def _equations(
    point: Point, gradient: FloatArray, information: FloatArray, weights: _EliminatedWeights
) -> tuple[FloatArray, FloatArray]:
    """Matrix and right side for x, a and the multipliers of the fixed sums, without w."""
    of_x_and_a, of_w = point.fixed_sums
    x_and_a = np.concatenate([point.honest, point.honest_shares[point.attacked]])
    excess = of_x_and_a @ x_and_a + of_w @ point.weights - 1
    scaled_cross = weights.variance[:, None] * weights.cross
    scaled_sums = of_w * weights.variance
    coupling = of_x_and_a - scaled_sums @ weights.cross
    schur = information - weights.cross.T @ scaled_cross
    size = len(schur)
    system = np.empty((size + len(coupling), size + len(coupling)))
    system[:size, :size], system[:size, size:] = schur, coupling.T
    system[size:, :size], system[size:, size:] = coupling, -(scaled_sums @ of_w.T)
    right = [scaled_cross.T @ weights.gradient - gradient, scaled_sums @ weights.gradient - excess]
    return system, np.concatenate(right)


def degrees_of_freedom(point: Point, step: ScoringStep) -> float:
    """Free buckets, less the leverage of the counts on what is expected of them.

    The leverage is the trace of the hat matrix, with the weights put back. Where the γ_t of
    attacked groups scatter about one γ, their distances from it are as many observations, with a
    leverage of their own.

    >>> from unpoison import Plan, simulate
    >>> from unpoison.filters.joint import JointCounts, PoisonModel
    >>> plan = Plan.new(epsilon=0.5, min_epsilon=0.25, low=0, high=1)
    >>> run = simulate(plan, np.full(20_000, 0.3), rng=np.random.default_rng(1))
    >>> point = Point(JointCounts.of(run.summary, [0, 1]), PoisonModel.nobody(2, 64))
    >>> bool(60 < degrees_of_freedom(point, ScoringStep.at(point)) < 2 * 63)
    True
    """
    responses, from_weights = step.derivatives.copy(), np.zeros(len(point.row_reports))
    if point.model.weight_count:
        slopes = point.weight_slopes()
        follow = (
            slopes[:, :, None] * (step.weight_variance[:, None] * step.weight_cross)[:, None, :]
        )
        np.subtract.at(responses, point.weight_rows, follow)
        np.add.at(from_weights, point.weight_rows, slopes**2 * step.weight_variance[:, None])
    from_others = np.sum((responses @ step.covariance) * responses, axis=1)
    leverage = step.precision * (from_weights + from_others)
    groups, outputs = point.counts.counts.shape
    inputs = len(point.honest)
    of_scatter = np.sum(scatter_of_shares(point)[1] * step.covariance[inputs:, inputs:])
    distances = len(point.attacked) - 1 if point.model.tied_shares else 0
    return float(groups * (outputs - 1) + distances - leverage.sum() - of_scatter)
