"""The paper's theory, and the oracle floor."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize

from unpoison import Plan
from unpoison.errors import InvalidParameter
from unpoison.mechanisms import make
from unpoison.protocols import combined_variance, group_weights, minimal_variance
from unpoison.simulation.oracle_floor import HonestUsers, cramer_rao, oracle_floor
from unpoison.simulation.theory import (
    evasion_cost,
    reduce_to_biased,
    shift_of_mean,
    utility_evasive,
    utility_max,
)
from unpoison.types import FloatArray

Vector = np.ndarray[tuple[int], np.dtype[np.float64]]
C = 4.0
poison_values = st.lists(st.floats(-C, C), min_size=1, max_size=40)
means = st.floats(-1.0, 1.0)
users = st.floats(0.5, 1e6)


# Theorem 1: any attack reduces to a one-sided one


@settings(deadline=None)
@given(poison_values, means)
def test_the_reduction_keeps_the_effect_on_the_mean(poison: list[float], mean: float) -> None:
    reduced = reduce_to_biased(poison, mean)
    before = math.fsum(value - mean for value in poison)
    after = math.fsum(value - mean for value in reduced.tolist())
    assert after == pytest.approx(before, abs=1e-12 * len(poison) * C)


@settings(deadline=None)
@given(poison_values, means)
def test_the_reduced_attack_is_on_one_side(poison: list[float], mean: float) -> None:
    reduced = reduce_to_biased(poison, mean)
    assert (reduced >= mean).all() or (reduced <= mean).all()


@settings(deadline=None)
@given(poison_values, means)
def test_the_reduced_attack_stays_in_the_domain_and_needs_no_more_attackers(
    poison: list[float], mean: float
) -> None:
    reduced = reduce_to_biased(poison, mean)
    rounding = 1e-12 * C
    assert len(reduced) <= len(poison)
    assert all(
        min([*poison, mean]) - rounding <= value <= max([*poison, mean]) + rounding
        for value in reduced
    )


@settings(deadline=None)
@given(st.lists(st.integers(-32, 32), min_size=1, max_size=40), st.integers(-8, 8), st.data())
def test_the_reduction_does_not_depend_on_the_order_of_the_attackers(
    eighths: list[int], mean_eighths: int, data: st.DataObject
) -> None:
    shuffled = data.draw(st.permutations(eighths))
    mean = mean_eighths / 8
    one, other = (reduce_to_biased(np.array(poison) / 8, mean) for poison in (eighths, shuffled))
    np.testing.assert_array_equal(one, other)


@settings(deadline=None)
@given(st.lists(st.floats(0.0, C), min_size=1, max_size=20))
def test_an_attack_that_is_one_sided_already_stays_as_it_is(poison: list[float]) -> None:
    np.testing.assert_array_equal(np.sort(reduce_to_biased(poison, 0.0)), np.sort(poison))


@pytest.mark.parametrize("poison", [[math.nan], [1.0, math.inf], [-math.inf]])
def test_poison_that_is_not_finite_is_refused(poison: list[float]) -> None:
    with pytest.raises(InvalidParameter, match="poison must be finite numbers"):
        reduce_to_biased(poison, 0.0)


def test_the_shift_is_that_of_the_average_of_all() -> None:
    poison, mean, users = np.array([3.0, 4.0, -1.0]), 0.5, 10
    everybody = np.concatenate([poison, np.full(users - len(poison), mean)])
    assert shift_of_mean(poison, mean, users) == pytest.approx(everybody.mean() - mean)
    assert shift_of_mean([], mean, users) == 0


@pytest.mark.parametrize("users", [0, 2])
def test_a_shift_of_fewer_users_than_attackers_is_refused(users: int) -> None:
    with pytest.raises(InvalidParameter, match="users must be at least 1, and as many as there"):
        shift_of_mean([1.0, 2.0, 3.0], 0.0, users)


# Section V-D: what evasion costs


@settings(deadline=None)
@given(users, users, st.floats(1.0, 64.0), means, st.floats(0.0, 1.0), means)
def test_evasion_costs_the_difference_of_the_utilities(
    byzantine: float, honest: float, end: float, mean: float, share: float, initial_mean: float
) -> None:
    best = utility_max(byzantine, honest, end, mean)
    evasive = utility_evasive(byzantine, honest, end, mean, share, initial_mean)
    cost = evasion_cost(byzantine, honest, end, share, initial_mean)
    assert best - evasive == pytest.approx(cost, abs=1e-9 * end)
    assert cost >= 0


@pytest.mark.slow
@settings(deadline=None)
@given(users, users, st.floats(1.0, 64.0), means)
def test_the_largest_utility_is_the_shift_when_all_attackers_send_the_end(
    byzantine: float, honest: float, end: float, mean: float
) -> None:
    gamma = byzantine / (byzantine + honest)
    shift = gamma * (end - mean)
    assert utility_max(byzantine, honest, end, mean) == pytest.approx(shift, abs=1e-9 * end)


def test_evading_entirely_leaves_only_the_shift_of_the_initial_mean() -> None:
    assert utility_evasive(1, 3, C, 0.0, share=1.0, initial_mean=0.0) == 0
    assert evasion_cost(1, 3, C, share=0.0, initial_mean=0.0) == 0


@pytest.mark.parametrize("share", [-0.1, 1.1, math.nan])
def test_a_share_that_is_none_is_refused(share: float) -> None:
    with pytest.raises(InvalidParameter, match=r"share must be in \[0, 1\]"):
        utility_evasive(1, 3, C, 0.0, share, 0.0)
    with pytest.raises(InvalidParameter, match=r"share must be in \[0, 1\]"):
        evasion_cost(1, 3, C, share, 0.0)


@pytest.mark.parametrize("numbers", [(-1, 3), (1, -3), (0, 0)])
def test_numbers_of_users_that_are_none_are_refused(numbers: tuple[int, int]) -> None:
    with pytest.raises(InvalidParameter, match="must be numbers of users"):
        utility_max(*numbers, C=C, mean=0.0)


# Theorem 6: the least variance of a combination


def worst_piecewise_variance(epsilon: float) -> float:
    growth = math.exp(epsilon / 2)
    return 1 / (growth - 1) + (growth + 3) / (3 * (growth - 1) ** 2)


@pytest.mark.parametrize("epsilon", [0.0625, 0.5, 1.0, 2.0, 4.0])
def test_the_variance_that_sets_the_weights_is_the_worst_case_of_the_paper(epsilon: float) -> None:
    variance = make("piecewise", epsilon).worst_variance
    assert variance == pytest.approx(worst_piecewise_variance(epsilon), rel=1e-9)


def test_a_numerical_optimiser_finds_the_least_variance() -> None:
    budgets = [2.0, 1.0, 0.5, 0.25]
    variances = np.array([worst_piecewise_variance(epsilon) for epsilon in budgets])
    reports = np.array([1000.0, 1500.0, 4000.0, 9000.0])
    least = minimal_variance(reports, variances)

    def excess(weights: Vector) -> float:
        return combined_variance(weights, reports, variances) / least

    optimum = optimize.minimize(
        excess,
        np.full(4, 0.25),
        method="SLSQP",
        constraints=optimize.LinearConstraint(np.ones((1, 4)), 1.0, 1.0),
        tol=1e-14,
    )
    assert optimum.fun == pytest.approx(1, rel=1e-6)
    weights = group_weights("optimal", reports, reports, variances)
    np.testing.assert_allclose(optimum.x, weights, atol=1e-4)


@settings(deadline=None)
@given(st.lists(st.tuples(users, st.floats(0.05, 8.0)), min_size=1, max_size=6))
def test_the_least_variance_is_as_the_theorem_prints_it(groups: list[tuple[float, float]]) -> None:
    honest = np.array([size for size, _ in groups])
    variances = np.array([worst_piecewise_variance(epsilon) for _, epsilon in groups])
    printed = 1 / (honest**2 / (honest * variances)).sum()
    assert minimal_variance(honest, variances) == pytest.approx(printed)


# The oracle floor


def oracle_errors(plan: Plan, inputs: FloatArray, trials: int, seed: int) -> FloatArray:
    """Errors of the best linear combination, group means taken over honest reports alone."""
    rng = np.random.default_rng(seed)
    size = len(inputs) // len(plan.groups)
    reports = np.array([size * group.reports for group in plan.groups])
    noise = np.array([part.variance(inputs).mean() for part in plan.group_mechanisms])
    weights = (reports / noise) / (reports / noise).sum()
    order = rng.permuted(np.tile(inputs, (trials, 1)), axis=1)
    estimates = np.zeros(trials)
    for group, part in enumerate(plan.group_mechanisms):
        members = order[:, group * size : (group + 1) * size]
        sent = np.repeat(members, plan.groups[group].reports, axis=1)
        decoded = part.decode(part.perturb(sent.ravel(), rng)).reshape(sent.shape)
        estimates += weights[group] * decoded.mean(axis=1)
    return np.asarray(plan.natural_scale * (estimates - inputs.mean()))


@pytest.mark.parametrize(
    ("mechanism", "epsilon", "min_epsilon"),
    [
        ("piecewise", 1.0, 0.25),
        ("piecewise", 8.0, 2.0),
        ("piecewise-integer", 2.0, 1.0),
        ("square-wave", 2.0, 0.5),
        ("square-wave-integer", 8.0, 4.0),
    ],
)
def test_the_floor_is_the_error_of_the_oracle(
    mechanism: str, epsilon: float, min_epsilon: float
) -> None:
    plan = Plan.new(mechanism=mechanism, epsilon=epsilon, min_epsilon=min_epsilon, low=5, high=9)
    inputs = plan.normalise(np.random.default_rng(3).choice([5.0, 6.0, 9.0], 60))
    trials = 20_000
    squares = oracle_errors(plan, inputs, trials, seed=4) ** 2
    floor = oracle_floor(
        HonestUsers(plan, inputs, np.full(len(plan.groups), 60 / len(plan.groups)))
    )
    standard_error = squares.std() / math.sqrt(trials)
    finite_population = floor * (60 / 59 - 1)
    assert abs(squares.mean() - floor) < 5 * standard_error + finite_population


def test_random_grouping_is_a_visible_part_of_the_floor() -> None:
    plan = Plan.new(epsilon=8.0, min_epsilon=2.0, low=-1, high=1)
    honest = np.full(3, 20.0)
    spread = np.random.default_rng(3).choice([-1.0, 1.0], 60)
    equal = np.ones(60)
    assert oracle_floor(HonestUsers(plan, spread, honest)) > 1.2 * oracle_floor(
        HonestUsers(plan, equal, honest)
    )


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 1000), st.floats(0.1, 4.0), st.floats(0.0, 1.0))
def test_the_floor_of_one_group_is_the_variance_over_the_reports(
    honest: int, epsilon: float, value: float
) -> None:
    plan = Plan.new(epsilon=epsilon, min_epsilon=epsilon, low=-1, high=1)
    values = np.array([value, -value])
    variance = plan.group_mechanisms[0].variance(values).mean()
    floor = oracle_floor(HonestUsers(plan, values, np.array([float(honest)])))
    assert floor == pytest.approx(variance / honest, rel=1e-9)


def test_the_floor_is_in_natural_units() -> None:
    honest = np.full(3, 100.0)
    values = np.linspace(-1, 1, 50)
    narrow = Plan.new(epsilon=1.0, min_epsilon=0.25, low=-1, high=1)
    wide = Plan.new(epsilon=1.0, min_epsilon=0.25, low=0, high=2000)
    ratio = oracle_floor(HonestUsers(wide, values, honest)) / oracle_floor(
        HonestUsers(narrow, values, honest)
    )
    assert ratio == pytest.approx(1000**2)


def test_more_honest_users_lower_the_floor_in_proportion() -> None:
    plan = Plan.new(epsilon=1.0, min_epsilon=0.25, low=-1, high=1)
    values = np.linspace(-1, 1, 50)
    few, many = (
        oracle_floor(HonestUsers(plan, values, np.full(3, size))) for size in (100.0, 1000.0)
    )
    assert few / many == pytest.approx(10)


def test_the_floor_of_the_baseline_uses_both_reports_of_a_user() -> None:
    plan = Plan.new(protocol="baseline", epsilon=2.0, min_epsilon=0.5, low=-1, high=1)
    values = np.linspace(-1, 1, 50)
    variances = [part.variance(values).mean() for part in plan.group_mechanisms]
    floor = oracle_floor(HonestUsers(plan, values, np.full(2, 100.0)))
    assert floor == pytest.approx(1 / sum(100 / variance for variance in variances))


def test_the_floor_of_tiers_is_that_of_each_tiers_own_inputs() -> None:
    """With users of one tier all alike, grouping them adds nothing, however the others spread."""
    small = {"epsilon": 0.5, "min_epsilon": 0.5}
    plan = Plan.new(epsilon=1.0, min_epsilon=1.0, low=-1, high=1, tiers=[small])
    inputs = np.concatenate([np.linspace(-1, 1, 600), np.zeros(400)])
    tiers = np.repeat([0, 1], [600, 400])
    main, other = plan.group_mechanisms
    expected = 0.36 * main.variance(inputs[:600]).mean() / 600
    expected += 0.16 * other.variance(inputs[600:]).mean() / 400
    floor = oracle_floor(HonestUsers(plan, inputs, np.array([600.0, 400.0]), tiers))
    assert floor == pytest.approx(expected, rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", ["piecewise", "piecewise-integer", "square-wave"])
@pytest.mark.parametrize("epsilon", [0.25, 1.0, 3.0])
def test_the_cramer_rao_bound_is_below_the_floor_of_linear_estimators(
    mechanism: str, epsilon: float
) -> None:
    plan = Plan.new(mechanism, epsilon, 0.125, low=0, high=1)
    inputs = plan.normalise(np.random.default_rng(1).beta(2, 5, 20_000))
    users = np.full(len(plan.groups), 3_000.0)
    bound = cramer_rao(HonestUsers(plan, inputs, users))
    assert 0 < bound < oracle_floor(HonestUsers(plan, inputs, users))
    assert cramer_rao(HonestUsers(plan, inputs, 4 * users)) == pytest.approx(bound / 4, rel=1e-6)


def test_the_cramer_rao_bound_of_two_possible_values_is_that_of_a_coin() -> None:
    """With all inputs in the two end buckets, one share is unknown: the bound is 1/information."""
    plan = Plan.new("piecewise", 2.0, 2.0, low=-1, high=1)
    part, users, share = plan.group_mechanisms[0], 1_000.0, 0.3
    inputs = np.repeat([-0.99, 0.99], [700, 300])
    cells = np.linspace(part.output_low, part.output_high, 4001)
    ends = np.array([-1, -1 + 2 / 64, 1 - 2 / 64, 1])
    matrix = part.transition(ends, cells).dense()[:, [0, 2]]
    slope = (matrix[:, 1] - matrix[:, 0]) / (2 - 2 / 64)
    mixture = matrix @ np.array([1 - share, share])
    population = 1 / (users * np.sum(slope**2 / mixture))
    expected = population - np.var(inputs) / users
    assert cramer_rao(HonestUsers(plan, inputs, np.array([users]))) == pytest.approx(
        expected, rel=0.01
    )


def test_a_large_attack_is_reduced_in_no_time() -> None:
    poison = np.random.default_rng(1).uniform(-8, 8.1, 200_000)
    reduced = reduce_to_biased(poison, 0.0)
    assert reduced.sum() == pytest.approx(poison.sum(), abs=1e-6)
    assert reduced.min() >= 0
