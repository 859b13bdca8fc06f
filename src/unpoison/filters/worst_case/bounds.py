"""Upper bounds on a mean of honest users that hold whatever attackers send.

Let p_t be the distribution of group t's reports, and at most Γ of its users attackers. If numbers
λ ≥ 0 and μ satisfy  v ≤ μ + Σ_ti λ_ti M_ti(v)  for every value v that a user may have, then the
honest mean is at most  μ + λ·p/(1 − Γ):  attackers can only add to reports, and λ is not negative.
Any such λ bounds the mean, and the best is that of a linear program's dual. Its bound is linear in
p, so it has a standard error. λ follows the noise of the counts from which it is found; by how much
is known (Stein's identity), because the program's solution is a smooth function of the counts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy

from unpoison.filters.worst_case import constants
from unpoison.filters.worst_case.cells import ReportCells
from unpoison.filters.worst_case.program import Program, Solution, solve
from unpoison.types import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Bound:
    """An upper bound with its standard error.

    >>> round(Bound(0.5, 0.01).with_noise(level=0.025), 4)
    0.5196
    """

    middle: float
    """The bound without room for noise, and without the bias that comes of choosing λ."""
    standard_error: float

    def with_noise(self, level: float) -> float:
        """The bound that is too low at most that often."""
        return self.middle - float(scipy.special.ndtri(level)) * self.standard_error


def upper_bound(cells: ReportCells, attackers: float) -> Bound:
    """A bound on the honest mean of the cells' values, with at most that share of attackers.

    >>> from unpoison import Plan, simulate
    >>> from unpoison.filters.joint import JointCounts
    >>> plan, rng = Plan.new(epsilon=1.0, low=-1, high=1), np.random.default_rng(1)
    >>> run = simulate(plan, np.full(50_000, 0.5), rng=rng)
    >>> cells = ReportCells.of_numbers(JointCounts.of(run.summary, range(4)))
    >>> few, many = (upper_bound(cells, share).with_noise(0.025) for share in (0.05, 0.3))
    >>> 0.5 < few < many
    True
    """
    scale, values = _Scale.of(cells, attackers), _first_values(len(cells.values))
    solution, values = _solve(scale, values, constants.PENALTY / scale.standard_error)
    return _bound(cells, scale, solution, values, attackers)


def most_honest(cells: ReportCells) -> Bound:
    """An upper bound on the share of honest users: what they send is nowhere above the reports.

    >>> from unpoison import Plan, simulate
    >>> from unpoison.filters.joint import JointCounts
    >>> plan, rng = Plan.new(epsilon=1.0, low=-1, high=1), np.random.default_rng(1)
    >>> run = simulate(plan, np.full(50_000, 0.5), "point:C", 0.2, rng)
    >>> cells = ReportCells.of_numbers(JointCounts.of(run.summary, range(4)))
    >>> 0.8 < most_honest(cells).with_noise(0.05) < 0.9
    True
    """
    return upper_bound(cells.about(np.ones(len(cells.values))), attackers=0.0)


def _bound(
    cells: ReportCells, scale: _Scale, solution: Solution, values: IntArray, attackers: float
) -> Bound:
    """The bound of one solution, without the bias that comes of choosing it by the counts."""
    covariance = scale.covariance(cells, solution, values, attackers)
    chosen_by_noise = covariance @ solution.response
    variance = solution.weights @ covariance @ solution.weights
    # The correction's own variance is added, as in Stein's estimate of a risk.
    variance += float((chosen_by_noise * chosen_by_noise.T).sum())
    in_sample = float(scale.cost @ solution.weights) + scale.raised(solution)
    middle = in_sample + float(np.trace(chosen_by_noise))
    return Bound(scale.centre + scale.half_range * middle, scale.half_range * math.sqrt(variance))


def _first_values(number: int) -> IntArray:
    """The values from which a program starts: some of all, evenly spread, with both ends."""
    size = min(constants.PROGRAM_VALUES + 2, number)
    return np.linspace(0, number - 1, size).astype(np.int64)


def _solve(scale: _Scale, values: IntArray, penalty: float) -> tuple[Solution, IntArray]:
    """A program's solution, and its values with those added at which the bound fell short most."""
    solution = solve(scale.program(values, penalty))
    for _ in range(constants.MOST_ROUNDS):
        missing = scale.shortfall(solution)
        if missing.max() <= constants.SHORTFALL:
            break
        short = np.argsort(-missing)[: constants.VALUES_AT_ONCE]
        values = np.union1d(values, short[missing[short] > 0])
        solution = solve(scale.program(values, penalty))
    return solution, values


@dataclass(frozen=True, eq=False)
class _Scale:
    """The numbers of a program, scaled: rows by their deviations, values to [−1, 1].

    A bound on the share of honest users has values that are all 1, keeps their scale, and has no
    offset: no share is honest without reports.
    """

    centre: float
    half_range: float
    deviations: FloatArray
    cost: FloatArray
    rows: FloatArray
    targets: FloatArray
    offset: bool
    standard_error: float

    @classmethod
    def of(cls, cells: ReportCells, attackers: float) -> _Scale:
        low, high = float(cells.values.min()), float(cells.values.max())
        centre, half_range = ((low + high) / 2, (high - low) / 2) if low < high else (0.0, 1.0)
        deviations = cells.deviations / (1 - attackers)
        return cls(
            centre=centre,
            half_range=half_range,
            deviations=deviations,
            cost=cells.observed / (1 - attackers) / deviations,
            rows=cells.transitions.T / deviations,
            targets=(cells.values - centre) / half_range,
            offset=low < high,
            standard_error=cells.standard_error / half_range,
        )

    def program(self, values: IntArray, penalty: float) -> Program:
        return Program(self.cost, self.rows[values], self.targets[values], penalty, self.offset)

    def shortfall(self, solution: Solution) -> FloatArray:
        """The amount by which the bound falls short at each value."""
        missing: FloatArray = self.targets - self.rows @ solution.weights - solution.offset
        return missing

    def raised(self, solution: Solution) -> float:
        """μ such that the bound nowhere falls short; without μ, as much is added in proportion."""
        missing = float(self.shortfall(solution).max())
        if self.offset:
            return solution.offset + missing
        reached = float((self.rows @ solution.weights).min())
        return float(self.cost @ solution.weights) * max(1 / reached - 1, 0.0)

    def covariance(
        self, cells: ReportCells, solution: Solution, values: IntArray, attackers: float
    ) -> FloatArray:
        """Covariance of the program's costs, if its own honest histogram is the truth."""
        total = float(solution.honest.sum())
        share = attackers if self.offset else min(max(1 - total, 0.0), 1.0)
        of_shares = cells.covariance(solution.honest / total, values, share)
        scale = (1 - attackers) * self.deviations
        covariance: FloatArray = of_shares / np.outer(scale, scale)
        return covariance
