"""The quadratic program behind a bound: optimal, feasible, and with the response that it says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import linprog

from unpoison.filters.worst_case.program import Program, solve


def random_program(seed: int, penalty: float, offset: bool) -> Program:
    rng = np.random.default_rng(seed)
    matrix = rng.random((12, 20))
    targets = np.sort(rng.uniform(-1, 1, 12)) if offset else np.ones(12)
    return Program(0.5 + matrix.mean(axis=0) + rng.random(20), matrix, targets, penalty, offset)


@pytest.mark.parametrize("offset", [True, False])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_with_hardly_a_ridge_it_is_the_linear_program(seed: int, offset: bool) -> None:
    program = random_program(seed, 1e-6, offset)
    solution = solve(program)
    rows, cost = -program.matrix, program.cost
    limits: list[tuple[float | None, float | None]] = [(0, None)] * 20
    if offset:
        rows, cost = np.column_stack([rows, -np.ones(12)]), np.append(cost, 1.0)
        limits += [(None, None)]
    least = linprog(cost, rows, -program.targets, bounds=limits).fun
    assert least is not None
    value = program.cost @ solution.weights + solution.offset
    assert value == pytest.approx(least, abs=1e-3)


@pytest.mark.parametrize("offset", [True, False])
def test_its_bounds_hold_and_its_histogram_sums_to_one(offset: bool) -> None:
    program = random_program(4, 0.3, offset)
    solution = solve(program)
    reached = program.matrix @ solution.weights + solution.offset
    assert (reached > program.targets - 1e-6).all()
    assert (solution.weights > 0).all()
    if offset:
        assert solution.honest.sum() == pytest.approx(1)


@pytest.mark.parametrize("offset", [True, False])
def test_its_response_is_how_the_solution_moves_with_a_cost(offset: bool) -> None:
    program = random_program(5, 0.3, offset)
    response, change = solve(program).response, 1e-4
    for row in range(0, 20, 5):
        up, down = (
            solve(replace(program, cost=program.cost + sign * change * (np.arange(20) == row)))
            for sign in (1, -1)
        )
        moved = (down.weights - up.weights) / (2 * change)
        np.testing.assert_allclose(moved, response[row], atol=0.02 * np.abs(response).max())
