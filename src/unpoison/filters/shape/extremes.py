"""The largest value of a linear function over all points of nearly least deviance.

The points of deviance at most d above the least are a convex set. Its extreme point in direction h
minimises ½·deviance − λ·hᵀz for some λ > 0. As λ grows from 0, that minimum moves along straight
lines, which change where a variable reaches 0 or leaves it. The path is followed from one such
place to the next until the deviance is d above the least (parametric active-set method). Few
variables are above 0 at a time, so a step costs little.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from unpoison.filters.shape import constants
from unpoison.filters.shape.program import QuadraticProgram
from unpoison.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class _Line:
    """z(λ) = start + λ·direction for the positive variables; slopes of the others likewise."""

    positive: IntArray
    matrix: FloatArray
    """The program's matrix, of the positive variables alone."""
    start: FloatArray
    direction: FloatArray
    slope_start: FloatArray
    slope_direction: FloatArray


class Extremes:
    """Linear functions of z over all z whose deviance is near the least.

    >>> program = QuadraticProgram(np.eye(2), np.zeros(2), np.ones((1, 2)), np.ones(1))
    >>> round(Extremes(program).largest(np.array([1.0, 0.0]), slack=0.02), 3)
    0.6
    """

    def __init__(self, program: QuadraticProgram) -> None:
        self.program = program
        self._steepest = max(float(np.abs(program.slope).max()), np.finfo(float).tiny)
        self._positive = self._pivot(program.minimum() > constants.FIRST_POSITIVE)

    def least(self) -> FloatArray:
        """z of the least deviance."""
        point = np.zeros(len(self.program.slope))
        line = self._line(self._positive, np.zeros(len(point)))
        point[line.positive] = line.start
        return point

    def largest(self, function: FloatArray, slack: float) -> float:
        """The largest hᵀz with a deviance at most `slack` above the least.

        Infinity where rounding errors broke the path: then nothing is known.
        """
        positive, penalty, last = self._positive.copy(), 0.0, -1
        most, target = float(function.max()), math.nan
        for _ in range(constants.MOST_PATH_STEPS):
            line = self._line(positive, function)
            if self._broken(line, penalty, positive):
                return math.inf
            of_line = function[line.positive]
            value = float(of_line @ (line.start + penalty * line.direction))
            # A total fixes hᵀz ≤ max h where h is an indicator of shares.
            if value >= most - constants.ROUNDING:
                return most
            quadratic = self._deviance(line)
            target = quadratic[2] + slack if math.isnan(target) else target
            reached = _larger_root(quadratic, target)
            following, change = self._next_change(line, positive, penalty, last)
            if reached <= following:
                return min(most, float(of_line @ (line.start + reached * line.direction)))
            if not math.isfinite(following):
                return math.inf
            penalty, last = following, change
            positive[change] = not positive[change]
        return math.inf

    def _line(self, positive: BoolArray, function: FloatArray) -> _Line:
        """The minimum as a linear function of λ, valid while the same variables are positive."""
        program, index = self.program, np.flatnonzero(positive)
        size, fixed = len(index), len(program.totals)
        sums, matrix = program.sums[:, index], program.matrix[index[:, None], index]
        system = np.zeros((size + fixed, size + fixed))
        system[:size, :size] = matrix
        system[:size, size:], system[size:, :size] = sums.T, sums
        scale = np.ones(size + fixed)
        scale[:size] = 1 / np.sqrt(np.diag(system)[:size])
        right = np.zeros((size + fixed, 2))
        right[:size, 0], right[size:, 0] = -program.slope[index], program.totals
        right[:size, 1] = function[index]
        scaled = np.linalg.solve(system * scale[:, None] * scale, right * scale[:, None])
        solution = scaled * scale[:, None]
        slopes = program.matrix[:, index] @ solution[:size] + program.sums.T @ solution[size:]
        return _Line(
            positive=index,
            matrix=matrix,
            start=solution[:size, 0],
            direction=solution[:size, 1],
            slope_start=slopes[:, 0] + program.slope,
            slope_direction=slopes[:, 1] - function,
        )

    def _deviance(self, line: _Line) -> tuple[float, float, float]:
        """Coefficients of λ², λ and 1 of the deviance along a line."""
        curved = line.matrix @ np.stack([line.start, line.direction], axis=1)
        slope = self.program.slope[line.positive]
        return (
            float(line.direction @ curved[:, 1]),
            float(2 * (line.start @ curved[:, 1] + slope @ line.direction)),
            float(line.start @ curved[:, 0] + 2 * slope @ line.start),
        )

    def _next_change(
        self, line: _Line, positive: BoolArray, penalty: float, last: int
    ) -> tuple[float, int]:
        """The next λ at which a variable reaches 0 or leaves it, and which one."""
        times = np.full(len(positive), math.inf)
        shrinking = line.direction < 0
        ends = -line.start[shrinking] / line.direction[shrinking]
        times[line.positive[shrinking]] = np.maximum(ends, penalty)
        entering = (line.slope_direction < 0) & ~positive
        ends = -line.slope_start[entering] / line.slope_direction[entering]
        times[entering] = np.maximum(ends, penalty)
        # The variable that changed last is at its bound now, within rounding.
        if last >= 0 and times[last] <= penalty:
            times[last] = math.inf
        change = int(np.argmin(times))
        return float(times[change]), change

    def _broken(self, line: _Line, penalty: float, positive: BoolArray) -> bool:
        """Whether the line is clearly no minimum at this λ, because of rounding errors."""
        lowest = float((line.start + penalty * line.direction).min(initial=0.0))
        slopes = (line.slope_start + penalty * line.slope_direction)[~positive]
        return (
            lowest < -constants.BROKEN
            or float(slopes.min(initial=0.0)) < -constants.BROKEN * self._steepest
        )

    def _pivot(self, positive: BoolArray) -> BoolArray:
        """The positive variables of the minimum, from a good guess (block principal pivoting)."""
        fewest, patience, nothing = len(positive) + 1, constants.PATIENCE, np.zeros(len(positive))
        for _ in range(constants.MOST_PIVOTS):
            line = self._line(positive, nothing)
            wrong = ~positive & (line.slope_start < -constants.ROUNDING * self._steepest)
            wrong[line.positive[line.start < -constants.ROUNDING]] = True
            number = int(wrong.sum())
            if not number:
                break
            patience = constants.PATIENCE if number < fewest else patience - 1
            fewest = min(fewest, number)
            changed = wrong if patience > 0 else np.arange(len(wrong)) == np.flatnonzero(wrong)[-1]
            positive = positive ^ changed
        return positive


def _larger_root(quadratic: tuple[float, float, float], target: float) -> float:
    """The point at which a rising parabola reaches a target; infinity where it does not rise."""
    curvature, slope, start = quadratic
    discriminant = slope**2 - 4 * curvature * (start - target)
    if curvature <= 0 or discriminant < 0:
        return math.inf
    return (-slope + math.sqrt(discriminant)) / (2 * curvature)
