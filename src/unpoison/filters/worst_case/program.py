"""A quadratic program with a barrier, and how its solution answers to the counts.

    minimise  c·x + ρ/2·|x|² + μ    subject to  A x + μ ≥ v,  x ≥ 0,

solved on the central path at a fixed barrier ν, where its solution is a smooth function of c. The
multipliers b of the first bounds are the histogram of honest users to which the bound belongs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy

from unpoison.filters.step_to_bound import step_within_bounds
from unpoison.filters.worst_case import constants
from unpoison.system.blas import single_threaded
from unpoison.types import FloatArray


@dataclass(frozen=True, eq=False)
class Program:
    """The program's numbers. Without an `offset` there is no μ.

    >>> program = Program(np.array([1.0, 3.0]), np.eye(2), np.array([1.0, 1.0]), 1e-3, offset=False)
    >>> solve(program).weights.round(2).tolist()
    [1.0, 1.0]
    """

    cost: FloatArray
    matrix: FloatArray
    """A: a row for each value of a user."""
    targets: FloatArray
    """v: what the bound must reach at each value."""
    penalty: float
    """The weight ρ of |x|²."""
    offset: bool = True


@dataclass(frozen=True, eq=False)
class Solution:
    """x and μ, the slack of each bound, and the multipliers b and z of both kinds of bounds.

    >>> program = Program(np.array([1.0, 3.0]), np.eye(2), np.array([1.0, 1.0]), 1e-3)
    >>> solution = solve(program)
    >>> round(solution.offset, 2), round(float(solution.honest.sum()), 6)
    (1.0, 1.0)
    """

    program: Program
    weights: FloatArray
    offset: float
    slack: FloatArray
    honest: FloatArray
    multipliers: FloatArray

    @cached_property
    def inverse_curvature(self) -> FloatArray:
        """1/(ρ + z/x): the diagonal of the inverse Hessian, without the bounds on values."""
        inverse: FloatArray = 1 / (self.program.penalty + self.multipliers / self.weights)
        return inverse

    def solve_bounds(self, right: FloatArray, total: float = 0.0) -> tuple[FloatArray, FloatArray]:
        """db and dμ with (A H⁻¹ Aᵀ + s/b) db + dμ = right; with μ, db sums to `total`."""
        solved: FloatArray = scipy.linalg.cho_solve(self._factor, right)
        if not self.program.offset:
            return solved, np.zeros(())
        offset = (solved.sum(axis=0) - total) / self._solved_ones.sum()
        return solved - np.multiply.outer(self._solved_ones, offset), offset

    @cached_property
    def _factor(self) -> tuple[FloatArray, bool]:
        system = (self.program.matrix * self.inverse_curvature) @ self.program.matrix.T
        system[np.diag_indices_from(system)] += self.slack / self.honest
        factor: tuple[FloatArray, bool] = scipy.linalg.cho_factor(system)
        return factor

    @cached_property
    def _solved_ones(self) -> FloatArray:
        solved: FloatArray = scipy.linalg.cho_solve(self._factor, np.ones(len(self.slack)))
        return solved

    @cached_property
    def response(self) -> FloatArray:
        """−∂x/∂c: how the solution gives way where a cost rises. Symmetric, not negative."""
        scaled = self.program.matrix * self.inverse_curvature
        response: FloatArray = np.diag(self.inverse_curvature)
        response -= scaled.T @ self.solve_bounds(scaled)[0]
        return response


@single_threaded
def solve(program: Program) -> Solution:
    """Newton steps along the central path down to the last barrier.

    >>> cost, matrix, values = np.array([0.5, 0.7]), np.array([[1.0, 0.2], [0.2, 1.0]]), np.ones(2)
    >>> solution = solve(Program(cost, matrix, values, penalty=0.1))
    >>> bool((matrix @ solution.weights + solution.offset > 1 - 1e-6).all())
    True
    >>> float(solution.honest.sum().round(6))
    1.0
    """
    point, barrier = _start(program), constants.FIRST_BARRIER
    for _ in range(constants.MOST_STEPS):
        point, length = _move(point, barrier)
        if barrier <= constants.LAST_BARRIER:
            if _central(point, barrier):
                break
        elif length > constants.FULL_STEP:
            barrier = max(constants.BARRIER_FALL * barrier, constants.LAST_BARRIER)
        else:
            barrier = max(constants.CAREFUL_BARRIER_FALL * barrier, constants.LAST_BARRIER)
    return point


def _start(program: Program) -> Solution:
    """Weights that reach to about 1 at every value, and multipliers on the central path."""
    values, size = len(program.targets), len(program.cost)
    weight, barrier = 1 / program.matrix.sum(axis=1).mean(), constants.FIRST_BARRIER
    return Solution(
        program,
        weights=np.full(size, weight),
        offset=0.0,
        slack=np.full(values, values * barrier),
        honest=np.full(values, 1 / values),
        multipliers=np.full(size, barrier / weight),
    )


def _move(point: Solution, barrier: float) -> tuple[Solution, float]:
    """The point after a Newton step to the central path, and the fraction of it that was gone."""
    program = point.program
    stationarity = program.cost + program.penalty * point.weights - point.multipliers
    stationarity = stationarity - program.matrix.T @ point.honest
    shortfall = program.targets + point.slack - program.matrix @ point.weights - point.offset
    to_weights = barrier / point.weights - point.multipliers
    to_slack = barrier / point.honest - point.slack
    pull = point.inverse_curvature * (to_weights - stationarity)
    right = shortfall - program.matrix @ pull + to_slack
    honest_step, offset_step = point.solve_bounds(right, 1 - point.honest.sum())
    weight_step = pull + point.inverse_curvature * (program.matrix.T @ honest_step)
    slack_step = to_slack - point.slack / point.honest * honest_step
    multiplier_step = to_weights - point.multipliers / point.weights * weight_step
    primal_steps = [(point.slack, slack_step), (point.weights, weight_step)]
    dual_steps = [(point.honest, honest_step), (point.multipliers, multiplier_step)]
    primal, dual = (
        min(step_within_bounds(*step, constants.STEP_TO_BOUND) for step in steps)
        for steps in (primal_steps, dual_steps)
    )
    moved = replace(
        point,
        weights=point.weights + primal * weight_step,
        slack=point.slack + primal * slack_step,
        offset=point.offset + primal * float(offset_step),
        honest=point.honest + dual * honest_step,
        multipliers=point.multipliers + dual * multiplier_step,
    )
    return moved, min(primal, dual)


def _central(point: Solution, barrier: float) -> bool:
    """Whether the point lies on the central path at this barrier."""
    products = np.concatenate([point.slack * point.honest, point.weights * point.multipliers])
    return bool((np.abs(products - barrier) < constants.TOLERANCE * barrier).all())
