from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from unpoison import Plan
from unpoison.attacks import (
    Adaptive,
    Attack,
    Beta,
    Evasion,
    Gaussian,
    InputManipulation,
    MaximalGain,
    NoAttack,
    Noise,
    Opposite,
    Point,
    RandomReports,
    Spread,
    Target,
    Targets,
    Triangular,
    Uniform,
    attacks,
    evaluate,
    parse_attack,
)
from unpoison.errors import InvalidParameter
from unpoison.mechanisms import CategoricalMechanism, make, mechanisms
from unpoison.simulation.ground_truth import Truth
from unpoison.simulation.inputs import Inputs
from unpoison.simulation.theory import reduce_to_biased, shift_of_mean
from unpoison.simulation.users import Crowd
from unpoison.summary.binning import Binner
from unpoison.types import FloatArray, IntArray

NUMERICAL = [name for name in mechanisms if not mechanisms[name].categorical]
CATEGORICAL = [name for name in mechanisms if mechanisms[name].categorical]
BUDGETS = (0.0625, 0.5, 2.0)
COUNT = 1000
DRINKS = ("tea", "coffee", "herbal tea", "7-up", "E=mc2")
SHARES = np.array([0.4, 0.05, 0.3, 0.05, 0.2])
"""How frequent each drink is among the honest users."""
IN_ENDS: Mapping[str, Mapping[str, Any]] = {
    "uniform": {"low": "(L+7R)/8", "high": "R"},
    "point": {"at": "R"},
    "evasion": {"at": "L/2", "low": "R/2", "high": "R"},
    "targets": {"names": ("tea", "E=mc2")},
    "maximal-gain": {"count": 2},
    "gaussian": {"low": "(L+R)/2", "high": "R"},
    "beta": {"low": "(L+R)/2", "high": "R"},
    "triangular": {"low": "(L+R)/2", "high": "R", "peak": "R"},
    "adaptive": {"low": "(L+7R)/8", "high": "R"},
    "opposite": {"low": "(L+7R)/8", "high": "R"},
}
"""Parameters in terms of the ends of the domain, for attacks whose defaults name C; and targets."""


def fits(name: str, mechanism: str) -> bool:
    return attacks[name].categorical in (None, mechanisms[mechanism].categorical)


PAIRS = [(name, mechanism) for name in attacks for mechanism in mechanisms if fits(name, mechanism)]
MISMATCHES = [
    (name, mechanism) for name in attacks for mechanism in mechanisms if not fits(name, mechanism)
]


def instance(name: str, mechanism: str = "piecewise") -> Attack:
    if name == "input" and mechanisms[mechanism].categorical:
        return InputManipulation("7-up")
    return attacks[name](**IN_ENDS.get(name, {}))


def target(mechanism: str, epsilon: float) -> Target:
    if mechanisms[mechanism].categorical:
        return Target(make(mechanism, epsilon, len(DRINKS)), np.nan, DRINKS, SHARES)
    part = make(mechanism, epsilon)
    return Target(part, honest_mean=part.input_low + 0.3 * (part.input_high - part.input_low))


def plan_of(mechanism: str, epsilon: float) -> Plan:
    if mechanisms[mechanism].categorical:
        return Plan.new(mechanism, epsilon=epsilon, min_epsilon=epsilon, categories=DRINKS)
    return Plan.new(mechanism, epsilon=epsilon, min_epsilon=epsilon, low=0, high=1)


def poison(name: str, mechanism: str, epsilon: float, seed: int, count: int = COUNT) -> FloatArray:
    rng = np.random.default_rng(seed)
    return instance(name, mechanism).poison(target(mechanism, epsilon), count, rng)


every_attack = pytest.mark.parametrize("name", list(attacks))
every_mechanism = pytest.mark.parametrize("mechanism", NUMERICAL)
every_categorical = pytest.mark.parametrize("mechanism", CATEGORICAL)
every_pair = pytest.mark.parametrize(("name", "mechanism"), PAIRS)
every_mismatch = pytest.mark.parametrize(("name", "mechanism"), MISMATCHES)
every_budget = pytest.mark.parametrize("epsilon", BUDGETS)


# The contract of every attack


@every_pair
@every_budget
def test_the_collector_accepts_all_poison(name: str, mechanism: str, epsilon: float) -> None:
    plan = plan_of(mechanism, epsilon)
    part = plan.group_mechanisms[0]
    reports = poison(name, mechanism, epsilon, seed=1)
    assert reports.dtype == np.float64
    top = part.output_high - (1 if part.discrete else 0)
    assert ((reports >= part.output_low) & (reports <= top)).all()
    if part.discrete:
        assert (reports == np.floor(reports)).all()
    binner = Binner(plan)
    binner.add_group(0, reports)
    assert binner.summary().reports.sum() == len(reports)


@every_pair
@pytest.mark.parametrize("count", [0, 1, 7, COUNT])
def test_an_attack_sends_as_many_reports_as_asked(name: str, mechanism: str, count: int) -> None:
    expected = count if instance(name).active else 0
    assert poison(name, mechanism, 0.5, 1, count).shape == (expected,)


@every_pair
def test_the_same_seed_gives_the_same_poison(name: str, mechanism: str) -> None:
    one, other = (poison(name, mechanism, 0.5, seed=3) for _ in range(2))
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("name", "mechanism"), [pair for pair in PAIRS if pair[0] not in ("none", "point")]
)
def test_another_seed_gives_other_poison(name: str, mechanism: str) -> None:
    one, other = (poison(name, mechanism, 0.5, seed) for seed in (3, 4))
    assert not np.array_equal(one, other)


@every_pair
def test_an_attack_fits_mechanisms_of_its_kind(name: str, mechanism: str) -> None:
    where = target(mechanism, 0.5)
    instance(name, mechanism).check_fits(where.mechanism)
    instance(name, mechanism).check_fits(where.mechanism, where.categories)


@every_mismatch
def test_an_attack_on_values_of_the_other_kind_is_refused(name: str, mechanism: str) -> None:
    part = target(mechanism, 0.5).mechanism
    with pytest.raises(InvalidParameter) as refusal:
        instance(name).check_fits(part)
    kind = "categories" if part.categorical else "numbers"
    fitting = ", ".join(each for each in attacks if fits(each, mechanism))
    expected = f"attack must be one on {kind}: {fitting}; received {name!r}"
    assert str(refusal.value) == expected


def test_there_are_attacks_on_numbers_and_on_categories() -> None:
    kinds = {name: attacks[name].categorical for name in attacks}
    assert [kinds[name] for name in ("uniform", "point", "evasion")] == [False] * 3
    assert [kinds[name] for name in ("targets", "maximal-gain", "random")] == [True] * 3
    assert [kinds[name] for name in ("none", "input")] == [None] * 2


def test_an_attack_of_ones_own_is_on_numbers_unless_it_says_otherwise() -> None:
    class Mine(Attack):
        def poison(self, target: Target, count: int, rng: np.random.Generator) -> FloatArray:
            return np.zeros(count)

    Mine().check_fits(make("piecewise", 1.0))
    with pytest.raises(InvalidParameter, match=r"on categories: .* received Mine$"):
        Mine().check_fits(make("k-rr", 1.0, 3))


@every_attack
def test_an_attack_is_a_frozen_value_that_its_name_finds(name: str) -> None:
    attack = instance(name)
    assert parse_attack(name) == attacks[name]()
    assert parse_attack(attack) is attack
    assert hash(attack) == hash(instance(name))


@every_attack
def test_an_attack_is_documented_with_an_example(name: str) -> None:
    assert ">>>" in (attacks[name].__doc__ or "")


# Where poison lies


@every_mechanism
@every_budget
def test_uniform_poison_fills_its_range_evenly(mechanism: str, epsilon: float) -> None:
    where = target(mechanism, epsilon)
    part = where.mechanism
    low, high = where.position("(L+7R)/8"), part.output_high
    reports = Uniform("(L+7R)/8", "R").poison(where, 20_000, np.random.default_rng(1))
    middles = reports + (0.5 if part.discrete else 0.0)
    shares = np.clip((middles - low) / (high - low), 0, 1)
    assert abs(shares.mean() - 0.5) < 5 * np.sqrt(1 / 12 / 20_000) + 1 / 500
    assert shares.min() < 0.01
    assert shares.max() > 0.99


@every_mechanism
@every_budget
def test_point_poison_is_in_one_place(mechanism: str, epsilon: float) -> None:
    where = target(mechanism, epsilon)
    part = where.mechanism
    highest = Point("R").poison(where, 10, np.random.default_rng(1))
    lowest = Point("L").poison(where, 10, np.random.default_rng(1))
    top = part.cells - 1 if part.discrete else part.output_high
    assert set(highest.tolist()) == {top}
    assert set(lowest.tolist()) == {part.output_low}


@every_mechanism
def test_integer_and_continuous_mechanisms_put_a_position_in_the_same_part(mechanism: str) -> None:
    where = target(mechanism, 0.5)
    part = where.mechanism
    width = part.output_high - part.output_low
    for share in (0.0, 0.25, 0.75, 1.0):
        place = where.position(f"L+{share}*(R-L)")
        assert (place - part.output_low) / width == pytest.approx(share, abs=1e-9)


def test_positions_may_be_written_in_terms_of_the_honest_mean() -> None:
    where = Target(make("piecewise", 1.0), honest_mean=-0.4)
    assert where.position("O") == pytest.approx(-0.4)
    assert where.position("3C/4") == pytest.approx(0.75 / np.tanh(0.25))
    wave = make("square-wave", 1.0)
    assert Target(wave, 0.3).position("1+b/2") == pytest.approx(1 + wave.landmarks()["b"] / 2)


@settings(deadline=None)
@given(st.floats(0, 1), st.integers(0, 500))
def test_exactly_the_share_of_evasive_poison_is_on_the_other_side(share: float, count: int) -> None:
    where = Target(make("piecewise", 1.0), honest_mean=0.0)
    reports = Evasion(share=share).poison(where, count, np.random.default_rng(1))
    assert (reports < 0).sum() == round(share * count)


def test_nobody_attacks_when_the_attack_is_none() -> None:
    assert not NoAttack().active
    assert all(instance(name).active for name in attacks if name != "none")


def shares_of(attack: Attack, where: Target, low: str, high: str) -> FloatArray:
    """How far reports are on the way from low to high."""
    first, last = where.position(low), where.position(high)
    reports = attack.poison(where, 20_000, np.random.default_rng(1))
    middles = reports + (0.5 if where.mechanism.discrete else 0.0)
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


@every_mechanism
@pytest.mark.parametrize(("attack", "law"), SHAPES)
def test_poison_on_a_range_follows_its_law(attack: Spread, law: Any, mechanism: str) -> None:
    where = target(mechanism, 0.5)
    shares = np.sort(shares_of(attack, where, "L/2", "R"))
    low, high = where.position("L/2"), where.position("R")
    cells = np.clip((where.mechanism.grid() - low) / (high - low), 0, 1)
    found = np.searchsorted(shares, cells) / len(shares)
    assert np.abs(found - law.cdf(cells))[:-1].max() < 2.5 / math.sqrt(len(shares))
    edges = np.linspace(0, 1, 33)
    np.testing.assert_allclose(attack.below(where, edges), law.cdf(edges), atol=1e-12)


@every_mechanism
@pytest.mark.parametrize("kind", [Uniform, Gaussian, Beta, Triangular])
def test_a_range_of_one_point_is_that_point(kind: type[Spread], mechanism: str) -> None:
    where, rng = target(mechanism, 0.5), np.random.default_rng(1)
    point = Point("R/2").poison_counts(where, 100, rng)
    attack = kind("R/2", "R/2")  # type: ignore[call-arg]
    np.testing.assert_array_equal(attack.poison_counts(where, 100, rng), point)


def test_a_peak_outside_the_range_is_refused() -> None:
    where, rng = target("piecewise", 0.5), np.random.default_rng(1)
    with pytest.raises(InvalidParameter, match="peak must be from 0 to C; received -C/2"):
        Triangular("0", "C", "-C/2").poison(where, 3, rng)


@every_mechanism
@every_budget
def test_noise_fills_the_whole_domain(mechanism: str, epsilon: float) -> None:
    shares = shares_of(Noise(), target(mechanism, epsilon), "L", "R")
    assert stats.kstest(shares, "uniform").statistic < 2.5 / math.sqrt(len(shares))


# Honest reports of false values


@every_mechanism
@pytest.mark.parametrize(("written", "share"), [("-1", 0.0), ("1", 1.0), ("1/2", 0.75), ("O", 0.3)])
def test_a_manipulated_input_is_perturbed_like_any_other(
    mechanism: str, written: str, share: float
) -> None:
    where = target(mechanism, 2.0)
    part = where.mechanism
    held = part.input_low + share * (part.input_high - part.input_low)
    assert where.input_of(written) == pytest.approx(held)
    expected = part.perturb(np.full(COUNT, where.input_of(written)), np.random.default_rng(1))
    sent = InputManipulation(written).poison(where, COUNT, np.random.default_rng(1))
    np.testing.assert_array_equal(sent, expected)


@every_categorical
def test_a_manipulated_category_is_perturbed_like_any_other(mechanism: str) -> None:
    where = target(mechanism, 2.0)
    sent = InputManipulation("herbal tea").poison(where, COUNT, np.random.default_rng(1))
    expected = where.mechanism.perturb(np.full(COUNT, 2.0), np.random.default_rng(1))
    np.testing.assert_array_equal(sent, expected)


@every_mechanism
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
    where, rng = target(mechanism, 0.5), np.random.default_rng(1)
    with pytest.raises(InvalidParameter, match=message):
        InputManipulation(written).poison(where, 3, rng)
    with pytest.raises(InvalidParameter, match=message):
        InputManipulation(written).poison_counts(where, 3, rng)


@every_categorical
def test_an_input_that_is_no_category_is_refused(mechanism: str) -> None:
    where, rng = target(mechanism, 0.5), np.random.default_rng(1)
    message = "input must be categories: 'tea', .*; received 'cofee', did you mean 'coffee'"
    with pytest.raises(InvalidParameter, match=message):
        InputManipulation("cofee").check_fits(where.mechanism, where.categories)
    with pytest.raises(InvalidParameter, match=message):
        InputManipulation("cofee").poison(where, 3, rng)
    with pytest.raises(InvalidParameter, match="target must name its categories"):
        InputManipulation("tea").poison(Target(where.mechanism, np.nan), 3, rng)


# Attacks that go by the group


def targets_of(plan: Plan) -> list[Target]:
    truth = Truth(plan, Inputs(plan.normalise(np.array([0.2, 0.4]))))
    return [truth.target(group) for group in range(len(plan.all_groups))]


def test_attackers_know_how_large_their_budget_is_among_those_of_their_tier() -> None:
    tier = {"epsilon": 0.5, "min_epsilon": 0.25}
    plan = Plan.new(epsilon=1.0, min_epsilon=0.25, low=0, high=1, tiers=[tier])
    known = [(each.rank, each.groups) for each in targets_of(plan)]
    assert known == [(0, 3), (1, 3), (2, 3), (0, 2), (1, 2)]


def test_groups_of_one_budget_have_one_rank() -> None:
    budgets = [(1.0, 1), (0.5, 2), (0.5, 1), (0.25, 4)]
    groups = [{"epsilon": e, "reports": reports, "share": 0.25} for e, reports in budgets]
    plan = Plan.new(epsilon=1.0, low=0, high=1, groups=groups)
    assert [each.rank for each in targets_of(plan)] == [0, 1, 1, 2]


@every_mechanism
@pytest.mark.parametrize("groups", [1, 2, 9])
def test_adaptive_attackers_poison_where_budgets_are_largest(mechanism: str, groups: int) -> None:
    attack = Adaptive(groups, "(L+7R)/8", "R", "-1/2")
    for where in targets_of(Plan.new(mechanism, 1.0, 0.125, low=0, high=1)):
        poisoned = where.rank < groups
        alone = Uniform("(L+7R)/8", "R") if poisoned else InputManipulation("-1/2")
        sent, expected = (
            each.poison(where, COUNT, np.random.default_rng(1)) for each in (attack, alone)
        )
        np.testing.assert_array_equal(sent, expected)


@every_mechanism
def test_opposite_poison_changes_sides_from_budget_to_budget(mechanism: str) -> None:
    for where in targets_of(Plan.new(mechanism, 1.0, 0.125, low=0, high=1)):
        shares = shares_of(Opposite("(L+7R)/8", "R"), where, "L", "R")
        if where.rank % 2:
            shares = 1 - shares
        assert 7 / 8 - 1e-3 <= shares.min() < 0.89
        assert 0.99 < shares.max() <= 1


@pytest.mark.parametrize("attack", ["input:-1", "adaptive:1,3C/4,C", "opposite"])
def test_in_the_baseline_reports_that_go_by_the_group_are_not_repeated(attack: str) -> None:
    plan = Plan.new(protocol="baseline", epsilon=2.0, min_epsilon=0.25, low=0, high=1)
    crowd = Crowd.draw(plan, np.full(1000, 0.3), attack, 0.3, np.random.default_rng(1))
    sent = crowd.poison(1)
    alone = crowd.attack.poison(
        crowd.truth.target(1), 300, np.random.default_rng(crowd.poison_seeds[1])
    )
    np.testing.assert_array_equal(sent, alone)


# The reduction to a one-sided attack (Thm. 1)


@pytest.mark.parametrize("rank", [0, 1, 2])
@pytest.mark.parametrize(
    ("name", "mechanism"), [pair for pair in PAIRS if pair[1] in NUMERICAL and pair[0] != "none"]
)
def test_the_reduction_of_any_poison_shifts_the_mean_alike(
    name: str, mechanism: str, rank: int
) -> None:
    where = replace(target(mechanism, 0.5), rank=rank, groups=3)
    reports = instance(name).poison(where, COUNT, np.random.default_rng(1))
    positions, mean = where.position_of(reports), where.honest_mean
    reduced = reduce_to_biased(positions, mean)
    before, after = (shift_of_mean(each, mean, 4 * COUNT) for each in (positions, reduced))
    assert after == pytest.approx(before, rel=1e-9, abs=1e-9)
    assert (reduced >= mean).all() or (reduced <= mean).all()
    assert len(reduced) <= COUNT


# Poison on categories


@every_categorical
@every_budget
def test_targets_are_reported_alike_and_nothing_else_is(mechanism: str, epsilon: float) -> None:
    names = ("E=mc2", "coffee", "tea")
    rng = np.random.default_rng(1)
    reports = Targets(names).poison(target(mechanism, epsilon), 30_000, rng)
    counts = np.bincount(reports.astype(int), minlength=len(DRINKS))
    assert counts[[2, 3]].tolist() == [0, 0]
    deviation = math.sqrt(30_000 * (1 / 3) * (2 / 3))
    assert abs(counts[[0, 1, 4]] - 10_000).max() < 5 * deviation


@every_categorical
def test_targets_may_be_one_or_all_categories(mechanism: str) -> None:
    where, rng = target(mechanism, 0.5), np.random.default_rng(1)
    assert set(Targets(("7-up",)).poison(where, COUNT, rng).tolist()) == {3}
    assert set(Targets(DRINKS).poison(where, COUNT, rng).tolist()) == {0, 1, 2, 3, 4}


def test_targets_may_be_any_sequence_of_names() -> None:
    names: Any = ["tea", "coffee"]
    assert Targets(names) == Targets(("tea", "coffee"))
    assert hash(Targets(names)) == hash(Targets(("tea", "coffee")))
    one: Any = "tea"
    with pytest.raises(InvalidParameter, match="names must be a tuple of names; received 'tea'"):
        Targets(one)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ((), "names must be one category or more; received none"),
        (("tea", "coffee", "tea"), "names must differ; received 'tea' twice"),
        (
            ("tea", "cofee"),
            "names must be categories: 'tea', 'coffee', 'herbal tea', '7-up', 'E=mc2';"
            " received 'cofee', did you mean 'coffee'?",
        ),
        (
            ("wine",),
            "names must be categories: 'tea', 'coffee', 'herbal tea', '7-up', 'E=mc2';"
            " received 'wine'",
        ),
    ],
)
@every_categorical
def test_targets_that_are_no_categories_are_refused(
    names: tuple[str, ...], message: str, mechanism: str
) -> None:
    where = target(mechanism, 0.5)
    with pytest.raises(InvalidParameter) as refusal:
        Targets(names).check_fits(where.mechanism, where.categories)
    assert str(refusal.value) == message
    with pytest.raises(InvalidParameter, match=re.escape(message)):
        Targets(names).poison(where, 3, np.random.default_rng(1))


def test_of_many_categories_only_some_are_listed() -> None:
    names = tuple(f"number {number}\n" for number in range(100))
    with pytest.raises(InvalidParameter) as refusal:
        Targets(("number 57",)).check_fits(make("k-rr", 1.0, 100), names)
    assert "'number 7\\n', …; received 'number 57', did you mean" in str(refusal.value)
    assert str(refusal.value).isprintable()
    assert "number 8" not in str(refusal.value)


def test_targets_need_the_names_of_the_categories() -> None:
    where = Target(make("k-rr", 1.0, 3), np.nan)
    with pytest.raises(InvalidParameter, match="target must name its categories; received none"):
        Targets(("tea",)).poison(where, 3, np.random.default_rng(1))


@every_categorical
@pytest.mark.parametrize(
    ("count", "rarest"),
    [(1, {1}), (2, {1, 3}), (3, {1, 3, 4}), (4, {1, 2, 3, 4}), (5, {*range(5)})],
)
def test_the_maximal_gain_is_on_the_rarest_categories(
    mechanism: str, count: int, rarest: set[int]
) -> None:
    where, rng = target(mechanism, 0.5), np.random.default_rng(1)
    reports = MaximalGain(count).poison(where, 20_000, rng)
    counts = np.bincount(reports.astype(int), minlength=len(DRINKS))
    assert set(np.flatnonzero(counts)) == rarest
    share = 1 / count
    deviation = math.sqrt(20_000 * share * (1 - share))
    assert abs(counts[list(rarest)] - 20_000 * share).max() <= 5 * deviation


@every_categorical
def test_no_reports_gain_more_for_the_targets_than_the_maximal_gain(mechanism: str) -> None:
    """The gain: the sum of the targets' decoded frequencies, less what honest users have there."""
    where = target(mechanism, 0.5)
    part = cast(CategoricalMechanism, where.mechanism)

    def gain(reports: FloatArray, targets: IntArray) -> float:
        observed = [float((reports == each).mean()) for each in targets]
        return float(part.decode(np.array(observed)).sum() - SHARES[targets].sum())

    mine = MaximalGain(2)
    rng = np.random.default_rng(1)
    best = gain(mine.poison(where, COUNT, rng), mine.chosen(where))
    for reports in (RandomReports().poison(where, COUNT, rng), part.perturb(np.ones(COUNT), rng)):
        assert gain(reports, mine.chosen(where)) < best
    for other in itertools.combinations(range(len(DRINKS)), 2):
        names = tuple(DRINKS[each] for each in other)
        reports = Targets(names).poison(where, COUNT, rng)
        assert gain(reports, np.array(other)) <= best + 1e-9


@pytest.mark.parametrize("count", [0, -1, 1.5, 2.0, "2"])
def test_a_maximal_gain_of_no_number_of_targets_is_refused(count: Any) -> None:
    with pytest.raises(InvalidParameter, match="count must be a whole number from 1; received"):
        MaximalGain(count)


def test_the_maximal_gain_has_at_most_all_categories_as_targets() -> None:
    where = target("k-rr", 0.5)
    MaximalGain(5).check_fits(where.mechanism)
    message = "count must be at most the number of categories, 5; received 6"
    with pytest.raises(InvalidParameter, match=message):
        MaximalGain(6).check_fits(where.mechanism)
    with pytest.raises(InvalidParameter, match=message):
        MaximalGain(6).poison(where, 3, np.random.default_rng(1))


@pytest.mark.parametrize("frequencies", [None, np.full(4, 0.25)])
def test_the_maximal_gain_needs_the_frequencies(frequencies: FloatArray | None) -> None:
    where = Target(make("k-rr", 1.0, 5), np.nan, DRINKS, frequencies)
    with pytest.raises(InvalidParameter, match="frequencies must be known of all 5 categories"):
        MaximalGain().poison(where, 3, np.random.default_rng(1))


@every_categorical
@every_budget
def test_random_reports_look_like_evenly_spread_users(mechanism: str, epsilon: float) -> None:
    where, rng = target(mechanism, epsilon), np.random.default_rng(1)
    even = np.repeat(np.arange(5.0), 10_000)
    deviation = math.sqrt(50_000 * 0.2 * 0.8)
    for reports in (
        RandomReports().poison(where, 50_000, rng),
        where.mechanism.perturb(even, rng),
    ):
        counts = np.bincount(reports.astype(int), minlength=5)
        assert abs(counts - 10_000).max() < 5 * deviation


# The written form


@pytest.mark.parametrize(
    ("text", "attack"),
    [
        ("none", NoAttack()),
        ("uniform", Uniform()),
        ("uniform:O,C/2", Uniform("O", "C/2")),
        ("uniform: O , C/2", Uniform("O", "C/2")),
        ("uniform:high=C/2", Uniform("3C/4", "C/2")),
        ("uniform:high=C,low=-C", Uniform("-C", "C")),
        ("point:-C", Point("-C")),
        ("point:at=O", Point("O")),
        ("evasion:0.3", Evasion(0.3)),
        ("evasion:3/10,-C/4", Evasion(0.3, "-C/4")),
        ("evasion:share=0.5,low=3C/4", Evasion(0.5, low="3C/4")),
        ("random", RandomReports()),
        ("maximal-gain", MaximalGain(1)),
        ("maximal-gain:3", MaximalGain(3)),
        ("maximal-gain:count=6/2", MaximalGain(3)),
        ("targets", Targets(())),
        ("targets:tea", Targets(("tea",))),
        ("targets:tea, herbal tea ,7-up", Targets(("tea", "herbal tea", "7-up"))),
        ("targets:names=tea,coffee", Targets(("tea", "coffee"))),
        ("targets:tea,E=mc2,=", Targets(("tea", "E=mc2", "="))),
        ("targets:E = mc2", Targets(("E = mc2",))),
        ("targets:names=names=tea,a:b", Targets(("names=tea", "a:b"))),
        ("targets:tea,tea", Targets(("tea", "tea"))),
        ("gaussian:O,C/2", Gaussian("O", "C/2")),
        ("beta:O,C,1/2,3", Beta("O", "C", 0.5, 3.0)),
        ("beta:b=2", Beta(b=2.0)),
        ("triangular:O,C", Triangular("O", "C")),
        ("triangular:peak=C", Triangular(peak="C")),
        ("noise", Noise()),
        ("input:-1/2", InputManipulation("-1/2")),
        ("input:herbal tea", InputManipulation("herbal tea")),
        ("input:value=E=mc2", InputManipulation("E=mc2")),
        ("adaptive:3,C/2,C,-1", Adaptive(3, "C/2", "C", "-1")),
        ("adaptive:input=O/2", Adaptive(input="O/2")),
        ("opposite:C/2,C", Opposite("C/2", "C")),
    ],
)
def test_an_attack_is_read_from_its_written_form(text: str, attack: Attack) -> None:
    assert parse_attack(text) == attack


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("unifrom", "did you mean 'uniform'"),
        ("", "attack must be one of"),
        ("uniform:middle=3", "uniform takes low, high, each once; received 'middle=3'"),
        ("uniform:0,1,2", "uniform takes low, high, each once; received '2'"),
        ("uniform:,C", "uniform takes low, high, each once; received ''"),
        ("uniform:C/2,low=0", "each once; received 'low=0'"),
        ("none:1", "none takes no parameters"),
        ("evasion:share=1.5", r"share must be in \[0, 1\]; received 1.5"),
        ("evasion:share=-0.1", r"share must be in \[0, 1\]"),
        ("evasion:share=1/0", "share must be a number; received 1/0"),
        ("evasion:much", "share must be a number; received much"),
        ("random:1", "random takes no parameters"),
        ("maximal-gain:many", "count must be a whole number; received many"),
        ("maximal-gain:1.5", "count must be a whole number; received 1.5"),
        ("maximal-gain:1e999", "count must be a whole number; received 1e999"),
        ("maximal-gain:0", "count must be a whole number from 1; received 0"),
        ("maximal-gain:1,2", "maximal-gain takes count, each once; received '2'"),
        ("targets:tea,,coffee", r"targets takes names \(one or more\), each once; received ''"),
        ("targets:tea,", "each once; received ''"),
        ("targets:names=", "each once; received 'names='"),
        ("targets:tea,names=coffee", "each once; received 'names=coffee'"),
        ("gaussian:0,1,2", "gaussian takes low, high, each once; received '2'"),
        ("beta:0,1,0", r"a must be in \[0.01, 10000\]; received 0.0"),
        ("beta:a=1e999", r"a must be in \[0.01, 10000\]; received inf"),
        ("beta:b=-1", r"b must be in \[0.01, 10000\]; received -1.0"),
        ("beta:b=C", "b must be a number; received C"),
        ("noise:1", "noise takes no parameters"),
        ("input:tea,coffee", "input takes value, each once; received 'coffee'"),
        ("adaptive:0", "groups must be a whole number from 1; received 0"),
        ("adaptive:3/2", "groups must be a whole number; received 3/2"),
    ],
)
def test_a_written_form_that_says_nothing_known_is_refused(text: str, message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        parse_attack(text)


@pytest.mark.parametrize(
    "formula",
    ["C+", "(C", "C)", "2**C", "C/0", "C/(O-O)", "x", "3%2", "C;C", " ", "()", "b", "import"],
)
def test_a_position_that_is_no_formula_is_refused(formula: str) -> None:
    where = Target(make("piecewise", 1.0), honest_mean=0.25)
    with pytest.raises(InvalidParameter, match="position must be a formula of"):
        Point(formula).poison(where, 3, np.random.default_rng(1))


@every_mechanism
@pytest.mark.parametrize("formula", ["R+1", "L-1", "2R-L", "1e300*10", "1e999", "1e999-1e999"])
def test_a_position_outside_the_report_domain_is_refused(mechanism: str, formula: str) -> None:
    with pytest.raises(InvalidParameter, match="position must be in the output domain"):
        Point(formula).poison(target(mechanism, 0.5), 3, np.random.default_rng(1))


@every_mechanism
def test_a_range_that_goes_downwards_is_refused(mechanism: str) -> None:
    where, rng = target(mechanism, 0.5), np.random.default_rng(1)
    for kind in (Uniform, Gaussian, Beta, Triangular, Opposite):
        with pytest.raises(InvalidParameter, match="attack range must go upwards; received R, R/2"):
            kind("R", "R/2").poison(where, 3, rng)
        with pytest.raises(InvalidParameter, match="attack range must go upwards; received R, R/2"):
            kind("R", "R/2").poison_counts(where, 3, rng)


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> type[Attack]:
    """An attack whose variadic parameter stands after another."""

    @dataclass(frozen=True)
    class Mixed(RandomReports):
        share: float = 0.5
        size: int = 2
        names: tuple[str, ...] = ()

    monkeypatch.setitem(attacks._items, "mixed", Mixed)
    return Mixed


@pytest.mark.parametrize(
    ("rest", "share", "size", "names"),
    [
        ("0.1,3,a,b=c", 0.1, 3, ("a", "b=c")),
        ("names=a,b,share=0.1,c", 0.1, 2, ("a", "b", "c")),
        ("size=3,share=0.1,a", 0.1, 3, ("a",)),
        ("0.1,names=a,b", 0.1, 2, ("a", "b")),
    ],
)
def test_a_variadic_parameter_takes_what_names_no_other(
    registered: type[Attack], rest: str, share: float, size: int, names: tuple[str, ...]
) -> None:
    expected = registered(share=share, size=size, names=names)  # type: ignore[call-arg]
    assert parse_attack(f"mixed:{rest}") == expected


@pytest.mark.parametrize("rest", ["b=c", "0.1,b=c,a", "0.1,3,a,size=4"])
def test_an_unknown_or_repeated_key_before_a_variadic_parameter_is_refused(
    registered: type[Attack], rest: str
) -> None:
    message = r"mixed takes share, size, names \(one or more\), each once"
    with pytest.raises(InvalidParameter, match=message):
        parse_attack(f"mixed:{rest}")


# Formulas against Python's own arithmetic


NAMES = {"C": 8.25, "O": -0.375, "b": 0.5}
atoms = st.one_of(
    st.sampled_from(list(NAMES)),
    st.integers(0, 99).map(str),
    st.floats(0.001, 99).map(lambda number: f"{number:.3f}"),
)


def longer(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    operators = st.sampled_from(["+", "-", "*", "/", " + ", " - ", " * ", " / "])
    return st.one_of(
        st.tuples(parts, operators, parts).map("".join),
        parts.map(lambda part: f"({part})"),
        st.tuples(st.sampled_from(["-", "+"]), atoms).map("".join),
    )


@settings(deadline=None)
@given(st.recursive(atoms, longer, max_leaves=8))
def test_a_formula_has_the_value_that_python_gives_it(formula: str) -> None:
    try:
        expected = eval(formula, {"__builtins__": {}}, dict(NAMES))
    except ZeroDivisionError:
        with pytest.raises(InvalidParameter):
            evaluate(formula, NAMES)
    else:
        assert evaluate(formula, NAMES) == pytest.approx(expected, rel=1e-12, abs=1e-12)


@settings(deadline=None)
@given(st.integers(1, 99), st.sampled_from(list(NAMES)), st.integers(1, 9))
def test_a_number_before_a_name_multiplies_it(factor: int, name: str, divisor: int) -> None:
    expected = factor * NAMES[name] / divisor
    assert evaluate(f"{factor}{name}/{divisor}", NAMES) == pytest.approx(expected)
    assert evaluate(f"-{factor}({name})/{divisor}", NAMES) == pytest.approx(-expected)


@pytest.mark.parametrize("formula", ["1.2.3", "3 4", "C 2", "C.5", ")", "(C", "C+", ""])
def test_a_formula_that_could_be_read_in_two_ways_is_refused(formula: str) -> None:
    with pytest.raises(InvalidParameter, match="must be a formula of C"):
        evaluate(formula, {"C": 8.0})
