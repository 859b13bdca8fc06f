"""Plans with a step: which lattices there are, and what becomes of values beside them."""

from __future__ import annotations

import numpy as np
import pytest

from unpoison import InvalidParameter, InvalidValue, Plan, perturb, simulate
from unpoison.plan.lattice import MOST_STEPS, step_count
from unpoison.reports.values import checked_values
from unpoison.simulation.population import QUANTA, Population

STARS = Plan.new(epsilon=1.0, low=1, high=5, step=1)
CENTS = Plan.new(epsilon=1.0, low=0, high=1, step=0.01)


@pytest.mark.parametrize(
    ("low", "high", "step", "steps"),
    [
        (0, 1, 0.1, 10),
        (-273.15, 26.85, 0.25, 1200),
        (1, 5, 4, 1),
        (0, 1, 1 / 3, 3),
        (0, 6e9, 3, 2e9),
    ],
)
def test_steps_are_counted_in_spite_of_rounding(
    low: float, high: float, step: float, steps: int
) -> None:
    assert step_count(low, high, step) == steps


@pytest.mark.parametrize("step", [0.0, -1.0, 3.0, 8.0, 0.333333, 1e-12, 4 / (MOST_STEPS + 2)])
def test_a_step_that_does_not_lead_from_low_to_high_is_refused(step: float) -> None:
    with pytest.raises(InvalidParameter, match=r"^step must .*; received "):
        step_count(1.0, 5.0, step)


def test_a_plan_without_a_step_has_the_form_and_fingerprint_that_it_had() -> None:
    plan = Plan.new(epsilon=1.0, min_epsilon="paper", low=1, high=5)
    assert "step" not in plan.to_dict()
    assert plan.fingerprint == "32975d3b965576db97689d2bb49d7c280a6c3cf5371ab2d87ab90d7e6a228909"
    assert Plan.from_json(STARS.to_json()) == STARS
    assert STARS.fingerprint != plan.fingerprint


@pytest.mark.parametrize("mechanism", ["piecewise", "square-wave", "piecewise-integer"])
def test_a_value_counts_as_the_nearest_on_the_lattice(mechanism: str) -> None:
    plan = Plan.new(mechanism, 1.0, low=1, high=5, step=1)
    near, exact = np.array([0.2, 1.4, 2.6, 4.51, 7.0]), np.array([1.0, 1.0, 3.0, 5.0, 5.0])
    assert plan.inputs_of(near).tolist() == plan.normalise(exact).tolist()


def test_without_a_step_a_value_stays_where_it_is() -> None:
    plan = Plan.new(epsilon=1.0, low=1, high=5)
    assert plan.inputs_of(np.array([2.6])).tolist() == plan.normalise(np.array([2.6])).tolist()


def test_a_table_with_a_value_between_steps_is_refused_by_row() -> None:
    with pytest.raises(InvalidValue, match="row 3: values must be 1 and whole steps of 1 up to 5"):
        perturb([1, 2, 2.5], STARS)
    sums = np.cumsum(np.full(100, 0.01))
    assert checked_values(CENTS, np.minimum(sums, 1.0)) == pytest.approx(np.arange(1, 101) / 100)


def test_values_between_steps_cannot_be_simulated() -> None:
    for values in (np.array([1.0, 2.5]), Population(np.array([1.0, 2.5]), np.array([500, 500]))):
        with pytest.raises(InvalidValue, match="between two steps"):
            simulate(STARS, values)


def test_a_population_of_many_values_stays_on_the_lattice() -> None:
    """`Population.of` puts these into buckets, whose means lie between two steps."""
    plan = Plan.new(epsilon=1.0, low=0, high=3 * QUANTA, step=1)
    values = np.random.default_rng(1).integers(0, 3 * QUANTA, 40_000)
    population = Population.of(values)
    assert population.bucketed
    assert population.resampled(10, np.random.default_rng(1)).bucketed
    run = simulate(plan, population, rng=np.random.default_rng(2))
    assert run.truth == pytest.approx(values.mean(), abs=1.0)
    assert run.truth * 40_000 == pytest.approx(round(run.truth * 40_000), abs=1e-3)
