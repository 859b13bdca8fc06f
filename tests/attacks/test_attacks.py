"""What each attack on numbers sends: where its poison lies, and what goes by the group."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from support.attack_targets import (
    COUNT,
    every_budget,
    every_categorical_mechanism,
    every_numerical_mechanism,
    make_target,
)
from unpoison import Plan
from unpoison.attacks import (
    Adaptive,
    Attack,
    Beta,
    Evasion,
    Gaussian,
    InputManipulation,
    Noise,
    Opposite,
    Point,
    RangeAttack,
    Target,
    Triangular,
    Uniform,
)
from unpoison.errors import InvalidParameter
from unpoison.mechanisms import make
from unpoison.simulation.ground_truth import GroundTruth
from unpoison.simulation.honest_inputs import HonestInputs
from unpoison.simulation.users import SimulatedUsers
from unpoison.types import FloatArray


@every_numerical_mechanism
@every_budget
def test_uniform_poison_fills_its_range_evenly(mechanism: str, epsilon: float) -> None:
    target = make_target(mechanism, epsilon)
    part = target.mechanism
    low, high = target.position("(L+7R)/8"), part.output_high
    reports = Uniform("(L+7R)/8", "R").poison(target, 20_000, np.random.default_rng(1))
    middles = reports + (0.5 if part.discrete else 0.0)
    shares = np.clip((middles - low) / (high - low), 0, 1)
    assert abs(shares.mean() - 0.5) < 5 * np.sqrt(1 / 12 / 20_000) + 1 / 500
    assert shares.min() < 0.01
    assert shares.max() > 0.99


@every_numerical_mechanism
@every_budget
def test_point_poison_is_in_one_place(mechanism: str, epsilon: float) -> None:
    target = make_target(mechanism, epsilon)
    part = target.mechanism
    highest = Point("R").poison(target, 10, np.random.default_rng(1))
    lowest = Point("L").poison(target, 10, np.random.default_rng(1))
    top = part.cells - 1 if part.discrete else part.output_high
    assert set(highest.tolist()) == {top}
    assert set(lowest.tolist()) == {part.output_low}


@every_numerical_mechanism
def test_integer_and_continuous_mechanisms_put_a_position_in_the_same_part(mechanism: str) -> None:
    target = make_target(mechanism, 0.5)
    part = target.mechanism
    width = part.output_high - part.output_low
    for share in (0.0, 0.25, 0.75, 1.0):
        place = target.position(f"L+{share}*(R-L)")
        assert (place - part.output_low) / width == pytest.approx(share, abs=1e-9)


def test_positions_may_be_written_in_terms_of_the_honest_mean() -> None:
    target = Target(make("piecewise", 1.0), honest_mean=-0.4)
    assert target.position("O") == pytest.approx(-0.4)
    assert target.position("3C/4") == pytest.approx(0.75 / np.tanh(0.25))
    wave = make("square-wave", 1.0)
    assert Target(wave, 0.3).position("1+b/2") == pytest.approx(1 + wave.landmarks()["b"] / 2)


@settings(deadline=None)
@given(st.floats(0, 1), st.integers(0, 500))
def test_exactly_the_share_of_evasive_poison_is_on_the_other_side(share: float, count: int) -> None:
    target = Target(make("piecewise", 1.0), honest_mean=0.0)
    reports = Evasion(share=share).poison(target, count, np.random.default_rng(1))
    assert (reports < 0).sum() == round(share * count)


def shares_of(attack: Attack, target: Target, low: str, high: str) -> FloatArray:
    """How far reports are on the way from low to high."""
    first, last = target.position(low), target.position(high)
    reports = attack.poison(target, 20_000, np.random.default_rng(1))
    middles = reports + (0.5 if target.mechanism.discrete else 0.0)
    return np.asarray((middles - first) / (last - first))


SHAPES = [
    (Gaussian("L/2", "R"), stats.truncnorm(-3, 3, loc=1 / 2, scale=1 / 6)),
    (Beta("L/2", "R"), stats.beta(1, 6)),
    (Beta("L/2", "R", 3.5, 0.5), stats.beta(3.5, 0.5)),
    (Triangular("L/2", "R"), stats.triang(1 / 2)),
    (Triangular("L/2", "R", "L/2"), stats.triang(0)),
    (Triangular("L/2", "R", "R"), stats.triang(1)),
    (Triangular("L/2", "R", "L/8+3R/4"), stats.triang(3 / 4)),
]


@every_numerical_mechanism
@pytest.mark.parametrize(("attack", "law"), SHAPES)
def test_poison_on_a_range_follows_its_law(attack: RangeAttack, law: Any, mechanism: str) -> None:
    target = make_target(mechanism, 0.5)
    shares = np.sort(shares_of(attack, target, "L/2", "R"))
    low, high = target.position("L/2"), target.position("R")
    cells = np.clip((target.mechanism.grid() - low) / (high - low), 0, 1)
    observed = np.searchsorted(shares, cells) / len(shares)
    assert np.abs(observed - law.cdf(cells))[:-1].max() < 2.5 / math.sqrt(len(shares))
    edges = np.linspace(0, 1, 33)
    np.testing.assert_allclose(
        attack.distribution_function(target, edges), law.cdf(edges), atol=1e-12
    )


@every_numerical_mechanism
@pytest.mark.parametrize("kind", [Uniform, Gaussian, Beta, Triangular])
def test_a_range_of_one_point_is_that_point(kind: type[RangeAttack], mechanism: str) -> None:
    target, rng = make_target(mechanism, 0.5), np.random.default_rng(1)
    point = Point("R/2").poison_counts(target, 100, rng)
    attack = kind("R/2", "R/2")  # type: ignore[call-arg]
    np.testing.assert_array_equal(attack.poison_counts(target, 100, rng), point)


def test_a_peak_outside_the_range_is_refused() -> None:
    target, rng = make_target("piecewise", 0.5), np.random.default_rng(1)
    with pytest.raises(InvalidParameter, match="peak must be from 0 to C; received -C/2"):
        Triangular("0", "C", "-C/2").poison(target, 3, rng)


@every_numerical_mechanism
@every_budget
def test_noise_fills_the_whole_domain(mechanism: str, epsilon: float) -> None:
    shares = shares_of(Noise(), make_target(mechanism, epsilon), "L", "R")
    assert stats.kstest(shares, "uniform").statistic < 2.5 / math.sqrt(len(shares))


# Refused positions and ranges


@pytest.mark.parametrize(
    "formula",
    ["C+", "(C", "C)", "2**C", "C/0", "C/(O-O)", "x", "3%2", "C;C", " ", "()", "b", "import"],
)
def test_a_position_that_is_no_formula_is_refused(formula: str) -> None:
    target = Target(make("piecewise", 1.0), honest_mean=0.25)
    with pytest.raises(InvalidParameter, match="position must be a formula of"):
        Point(formula).poison(target, 3, np.random.default_rng(1))


@every_numerical_mechanism
@pytest.mark.parametrize("formula", ["R+1", "L-1", "2R-L", "1e300*10", "1e999", "1e999-1e999"])
def test_a_position_outside_the_report_domain_is_refused(mechanism: str, formula: str) -> None:
    with pytest.raises(InvalidParameter, match="position must be in the output domain"):
        Point(formula).poison(make_target(mechanism, 0.5), 3, np.random.default_rng(1))


@every_numerical_mechanism
def test_a_range_that_goes_downwards_is_refused(mechanism: str) -> None:
    target, rng = make_target(mechanism, 0.5), np.random.default_rng(1)
    for kind in (Uniform, Gaussian, Beta, Triangular, Opposite):
        with pytest.raises(InvalidParameter, match="attack range must go upwards; received R, R/2"):
            kind("R", "R/2").poison(target, 3, rng)
        with pytest.raises(InvalidParameter, match="attack range must go upwards; received R, R/2"):
            kind("R", "R/2").poison_counts(target, 3, rng)


# Honest reports of false values


@every_numerical_mechanism
@pytest.mark.parametrize(("written", "share"), [("-1", 0.0), ("1", 1.0), ("1/2", 0.75), ("O", 0.3)])
def test_a_manipulated_input_is_perturbed_like_any_other(
    mechanism: str, written: str, share: float
) -> None:
    target = make_target(mechanism, 2.0)
    part = target.mechanism
    held = part.input_low + share * (part.input_high - part.input_low)
    assert target.input_of(written) == pytest.approx(held)
    expected = part.perturb(np.full(COUNT, target.input_of(written)), np.random.default_rng(1))
    sent = InputManipulation(written).poison(target, COUNT, np.random.default_rng(1))
    np.testing.assert_array_equal(sent, expected)


@every_categorical_mechanism
def test_a_manipulated_category_is_perturbed_like_any_other(mechanism: str) -> None:
    target = make_target(mechanism, 2.0)
    sent = InputManipulation("herbal tea").poison(target, COUNT, np.random.default_rng(1))
    expected = target.mechanism.perturb(np.full(COUNT, 2.0), np.random.default_rng(1))
    np.testing.assert_array_equal(sent, expected)


@every_numerical_mechanism
@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("2", r"input must be in \[-1, 1\]; received '2'"),
        ("-1.01", r"input must be in \[-1, 1\]; received '-1.01'"),
        ("1e999-1e999", r"input must be in \[-1, 1\]; received '1e999-1e999'"),
        ("C", "input must be a formula of O; received 'C'"),
        ("tea", "input must be a formula of O; received 'tea'"),
    ],
)
def test_an_input_that_is_no_value_is_refused(mechanism: str, written: str, message: str) -> None:
    target, rng = make_target(mechanism, 0.5), np.random.default_rng(1)
    with pytest.raises(InvalidParameter, match=message):
        InputManipulation(written).poison(target, 3, rng)
    with pytest.raises(InvalidParameter, match=message):
        InputManipulation(written).poison_counts(target, 3, rng)


@every_categorical_mechanism
def test_an_input_that_is_no_category_is_refused(mechanism: str) -> None:
    target, rng = make_target(mechanism, 0.5), np.random.default_rng(1)
    message = "input must be categories: 'tea', .*; received 'cofee', did you mean 'coffee'"
    with pytest.raises(InvalidParameter, match=message):
        InputManipulation("cofee").check_fits(target.mechanism, target.categories)
    with pytest.raises(InvalidParameter, match=message):
        InputManipulation("cofee").poison(target, 3, rng)
    with pytest.raises(InvalidParameter, match="target must name its categories"):
        InputManipulation("tea").poison(Target(target.mechanism, np.nan), 3, rng)


# Attacks that go by the group


def targets_of(plan: Plan) -> list[Target]:
    truth = GroundTruth(plan, HonestInputs(plan.normalise(np.array([0.2, 0.4]))))
    return [truth.target(group) for group in range(len(plan.all_groups))]


def test_attackers_know_how_large_their_budget_is_among_those_of_their_tier() -> None:
    tier = {"epsilon": 0.5, "min_epsilon": 0.25}
    plan = Plan.new(epsilon=1.0, min_epsilon=0.25, low=0, high=1, tiers=[tier])
    ranks = [(target.rank, target.groups) for target in targets_of(plan)]
    assert ranks == [(0, 3), (1, 3), (2, 3), (0, 2), (1, 2)]


def test_groups_of_one_budget_have_one_rank() -> None:
    budgets = [(1.0, 1), (0.5, 2), (0.5, 1), (0.25, 4)]
    groups = [{"epsilon": e, "reports": reports, "share": 0.25} for e, reports in budgets]
    plan = Plan.new(epsilon=1.0, low=0, high=1, groups=groups)
    assert [target.rank for target in targets_of(plan)] == [0, 1, 1, 2]


@every_numerical_mechanism
@pytest.mark.parametrize("groups", [1, 2, 9])
def test_adaptive_attackers_poison_where_budgets_are_largest(mechanism: str, groups: int) -> None:
    attack = Adaptive(groups, "(L+7R)/8", "R", "-1/2")
    for target in targets_of(Plan.new(mechanism, 1.0, 0.125, low=0, high=1)):
        poisoned = target.rank < groups
        alone = Uniform("(L+7R)/8", "R") if poisoned else InputManipulation("-1/2")
        sent, expected = (
            sender.poison(target, COUNT, np.random.default_rng(1)) for sender in (attack, alone)
        )
        np.testing.assert_array_equal(sent, expected)


@every_numerical_mechanism
def test_opposite_poison_changes_sides_from_budget_to_budget(mechanism: str) -> None:
    for target in targets_of(Plan.new(mechanism, 1.0, 0.125, low=0, high=1)):
        shares = shares_of(Opposite("(L+7R)/8", "R"), target, "L", "R")
        if target.rank % 2:
            shares = 1 - shares
        assert 7 / 8 - 1e-3 <= shares.min() < 0.89
        assert 0.99 < shares.max() <= 1


@pytest.mark.parametrize("attack", ["input:-1", "adaptive:1,3C/4,C", "opposite"])
def test_in_the_baseline_reports_that_go_by_the_group_are_not_repeated(attack: str) -> None:
    plan = Plan.new(protocol="baseline", epsilon=2.0, min_epsilon=0.25, low=0, high=1)
    users = SimulatedUsers.draw(plan, np.full(1000, 0.3), attack, 0.3, np.random.default_rng(1))
    sent = users.poison(1)
    alone = users.attack.poison(
        users.truth.target(1), 300, np.random.default_rng(users.poison_seeds[1])
    )
    np.testing.assert_array_equal(sent, alone)
