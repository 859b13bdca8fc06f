"""Convex quadratic programs ½zᵀHz + gᵀz with z ≥ 0 and fixed sums, by an interior-point method."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy
from numpy.typing import NDArray

from unpoison.filters.shape import constants
from unpoison.filters.step_to_bound import step_within_bounds
from unpoison.types import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class QuadraticProgram:
    """Minimise ½zᵀHz + gᵀz over z ≥ 0 with `sums` · z = `totals`.

    >>> even = QuadraticProgram(np.eye(2), np.zeros(2), np.ones((1, 2)), np.ones(1))
    >>> even.minimum().round(3).tolist()
    [0.5, 0.5]
    >>> even.with_sum(np.array([0.0, 1.0]), 0.75).minimum().round(3).tolist()
    [0.25, 0.75]
    """

    matrix: FloatArray
    slope: FloatArray
    sums: FloatArray
    totals: FloatArray

    def value(self, point: FloatArray) -> float:
        """Twice what is minimised: a deviance, but for a constant."""
        return float(point @ self.matrix @ point + 2 * self.slope @ point)

    def with_sum(self, coefficients: FloatArray, total: float) -> QuadraticProgram:
        """This program with one more sum fixed."""
        sums = np.vstack([self.sums, coefficients])
        return replace(self, sums=sums, totals=np.append(self.totals, total))

    def with_penalty(self, penalty: FloatArray) -> QuadraticProgram:
        """This program with a further quadratic form ½zᵀPz."""
        return replace(self, matrix=self.matrix + penalty)

    def without(self, variables: IntArray) -> QuadraticProgram:
        """The program in all other variables, with these at their best and free to be negative.

        Every sum that these are a part of can then be met, and is no longer fixed.

        >>> three = QuadraticProgram(np.eye(3), np.zeros(3), np.ones((1, 3)), np.ones(1))
        >>> three.without(np.array([2])).minimum().round(3).tolist()
        [0.333, 0.333]
        """
        kept = np.setdiff1d(np.arange(len(self.slope)), variables)
        met = self.sums[:, variables].any(axis=1)
        sums, size = self.sums[met], len(variables)
        system = np.zeros((size + len(sums), size + len(sums)))
        system[:size, :size] = self.matrix[np.ix_(variables, variables)]
        system[:size, size:], system[size:, :size] = sums[:, variables].T, sums[:, variables]
        constant = np.append(-self.slope[variables], self.totals[met])
        following = np.concatenate([-self.matrix[np.ix_(variables, kept)], -sums[:, kept]])
        best = np.linalg.solve(system, np.column_stack([constant, following]))[:size]
        # All variables, as a constant and a linear function of those that are kept.
        offset, map_back = np.zeros(len(self.slope)), np.zeros((len(self.slope), len(kept)))
        map_back[kept, np.arange(len(kept))] = 1
        offset[variables], map_back[variables] = best[:, 0], best[:, 1:]
        return QuadraticProgram(
            map_back.T @ self.matrix @ map_back,
            map_back.T @ (self.slope + self.matrix @ offset),
            self.sums[np.ix_(~met, kept)],
            self.totals[~met],
        )

    def minimum(self) -> FloatArray:
        """The minimising z, by Mehrotra's predictor and corrector."""
        size = len(self.slope)
        point = np.full(size, 1 / size)
        slack = np.full(size, max(1.0, constants.FIRST_SLACK * float(np.abs(self.slope).max())))
        multipliers = np.zeros(len(self.totals))
        for _ in range(constants.MOST_PROGRAM_STEPS):
            residual = self.matrix @ point + self.slope - self.sums.T @ multipliers - slack
            excess = self.sums @ point - self.totals
            gap = float(point @ slack)
            if (
                max(gap, float(np.abs(residual) @ point), float(np.abs(excess).max(initial=0.0)))
                < constants.ACCURACY
            ):
                break
            step = _NewtonStep.at(self, point, slack, residual, excess)
            affine = step.towards(point * slack)
            reached = (point + step_within_bounds(point, affine[0]) * affine[0]) @ (
                slack + step_within_bounds(slack, affine[2]) * affine[2]
            )
            centring = (reached / gap) ** 3 * gap / size
            moves = step.towards(point * slack + affine[0] * affine[2] - centring)
            primal = step_within_bounds(point, moves[0], constants.STEP_TO_BOUND)
            dual = step_within_bounds(slack, moves[2], constants.STEP_TO_BOUND)
            point = point + primal * moves[0]
            multipliers = multipliers + dual * moves[1]
            slack = slack + dual * moves[2]
        return point


@dataclass(frozen=True, eq=False)
class _NewtonStep:
    """The equations of one step, factorised: predictor and corrector differ in the right side."""

    factors: tuple[FloatArray, NDArray[np.int32]]
    scale: FloatArray
    point: FloatArray
    slack: FloatArray
    residual: FloatArray
    excess: FloatArray

    @classmethod
    def at(
        cls,
        program: QuadraticProgram,
        point: FloatArray,
        slack: FloatArray,
        residual: FloatArray,
        excess: FloatArray,
    ) -> _NewtonStep:
        curvature = program.matrix + np.diag(slack / point)
        zeros = np.zeros((len(excess), len(excess)))
        system = np.block([[curvature, -program.sums.T], [-program.sums, zeros]])
        # Scaling keeps the equations well conditioned where variables are nearly 0.
        scale = np.ones(len(system))
        scale[: len(point)] = 1 / np.sqrt(np.diag(curvature))
        factors = scipy.linalg.lu_factor(system * scale[:, None] * scale)
        return cls(factors, scale, point, slack, residual, excess)

    def towards(self, products: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Moves of z, of the multipliers and of the slacks, if slack·z is to fall by `products`."""
        right = np.concatenate([-self.residual - products / self.point, self.excess])
        solution: FloatArray = self.scale * scipy.linalg.lu_solve(self.factors, self.scale * right)
        move = solution[: len(self.point)]
        slack_move = -(products + self.slack * move) / self.point
        return move, solution[len(self.point) :], slack_move
