"""The contract of every registered attack, with the example that its class declares."""

from __future__ import annotations

import numpy as np
import pytest

from support.attack_targets import (
    BUDGETS,
    COUNT,
    NUMERICAL,
    every_budget,
    fits,
    make_target,
    pairs_that_do_not_fit,
    pairs_that_fit,
)
from support.goodness_of_fit import ALMOST_NEVER, pooled_p_value
from unpoison import Plan
from unpoison.attacks import Attack, NoAttack, RangeAttack, Target, attacks, parse_attack
from unpoison.errors import InvalidParameter
from unpoison.mechanisms import make, mechanisms
from unpoison.simulation.theory import reduce_to_biased, shift_of_mean
from unpoison.summary.binning import Binner
from unpoison.types import FloatArray

every_attack = pytest.mark.parametrize("name", list(attacks))
every_pair = pytest.mark.parametrize(("name", "mechanism"), pairs_that_fit())
every_mismatch = pytest.mark.parametrize(("name", "mechanism"), pairs_that_do_not_fit())
every_pair_with_numbers = pytest.mark.parametrize(
    ("name", "mechanism"), [pair for pair in pairs_that_fit() if pair[1] in NUMERICAL]
)
every_rank = pytest.mark.parametrize("rank", [0, 1, 2])


def example(name: str, target: Target) -> Attack:
    return attacks[name].example(target)


def plan_of(target: Target) -> Plan:
    """A plan of one group with the target's mechanism."""
    name, epsilon = target.mechanism.name, target.mechanism.epsilon
    if target.categories:
        return Plan.new(name, epsilon=epsilon, min_epsilon=epsilon, categories=target.categories)
    return Plan.new(name, epsilon=epsilon, min_epsilon=epsilon, low=0, high=1)


def poison(name: str, mechanism: str, epsilon: float, seed: int, count: int = COUNT) -> FloatArray:
    target = make_target(mechanism, epsilon)
    return example(name, target).poison(target, count, np.random.default_rng(seed))


@every_attack
def test_the_example_of_an_attack_is_of_its_class(name: str) -> None:
    mechanism = next(mechanism for mechanism in mechanisms if fits(name, mechanism))
    assert type(example(name, make_target(mechanism, 0.5))) is attacks[name]


@every_pair
@every_budget
def test_the_collector_accepts_all_poison(name: str, mechanism: str, epsilon: float) -> None:
    plan = plan_of(make_target(mechanism, epsilon))
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
def test_an_attack_sends_as_many_reports_as_requested(
    name: str, mechanism: str, count: int
) -> None:
    active = example(name, make_target(mechanism, 0.5)).active
    assert poison(name, mechanism, 0.5, 1, count).shape == (count if active else 0,)


@every_pair
def test_the_same_seed_gives_the_same_poison(name: str, mechanism: str) -> None:
    one, other = (poison(name, mechanism, 0.5, seed=3) for _ in range(2))
    np.testing.assert_array_equal(one, other)


@every_pair
def test_another_seed_gives_other_poison_where_an_attack_is_random(
    name: str, mechanism: str
) -> None:
    one, other = (poison(name, mechanism, 0.5, seed) for seed in (3, 4))
    assert np.array_equal(one, other) is not attacks[name].random


@every_pair
@every_rank
def test_poison_is_counted_as_it_is_sent(name: str, mechanism: str, rank: int) -> None:
    check_counts(make_target(mechanism, 2.0 / 2**rank, 64, rank, groups=3), name)


@pytest.mark.parametrize(
    ("name", "mechanism"),
    [pair for pair in pairs_that_fit() if issubclass(attacks[pair[0]], RangeAttack)],
)
@every_rank
def test_poison_on_a_range_inside_the_domain_is_counted_as_it_is_sent(
    name: str, mechanism: str, rank: int
) -> None:
    """Neither end is at the edge of a cell."""
    ends = {"low": "(L+2R)/3", "high": "(L+9R)/10"}
    target = make_target(mechanism, 2.0 / 2**rank, 64, rank, groups=3)
    check_counts(target, name, **ends)


def check_counts(target: Target, name: str, **parameters: str) -> None:
    """Counts that an attack draws directly are distributed as those of its reports."""
    attack = attacks[name](**parameters) if parameters else example(name, target)
    if not attack.active:
        return
    counts = attack.poison_counts(target, 60_000, np.random.default_rng(1))
    sent = Attack.poison_counts(attack, target, 600_000, np.random.default_rng(2))
    assert counts.sum() == 60_000
    assert pooled_p_value(counts, sent / 10) > ALMOST_NEVER


@every_pair
def test_an_attack_fits_mechanisms_of_its_kind(name: str, mechanism: str) -> None:
    target = make_target(mechanism, 0.5)
    example(name, target).check_fits(target.mechanism)
    example(name, target).check_fits(target.mechanism, target.categories)


@every_mismatch
def test_an_attack_on_values_of_the_other_kind_is_refused(name: str, mechanism: str) -> None:
    fitting_mechanism = next(fitting for fitting in mechanisms if fits(name, fitting))
    attack = example(name, make_target(fitting_mechanism, 0.5))
    part = make_target(mechanism, 0.5).mechanism
    with pytest.raises(InvalidParameter) as refusal:
        attack.check_fits(part)
    kind = "categories" if part.categorical else "numbers"
    fitting = ", ".join(other for other in attacks if fits(other, mechanism))
    expected = f"attack must be one on {kind}: {fitting}; received {name!r}"
    assert str(refusal.value) == expected


@every_attack
def test_an_attack_is_a_frozen_value_that_its_name_finds(name: str) -> None:
    mechanism = next(mechanism for mechanism in mechanisms if fits(name, mechanism))
    target = make_target(mechanism, 0.5)
    attack = example(name, target)
    assert parse_attack(name) == attacks[name]()
    assert parse_attack(attack) is attack
    assert hash(attack) == hash(example(name, target))


@every_attack
def test_an_attack_is_documented_with_an_example(name: str) -> None:
    assert ">>>" in (attacks[name].__doc__ or "")


@every_rank
@every_pair_with_numbers
def test_the_reduction_of_any_poison_to_one_side_shifts_the_mean_alike(
    name: str, mechanism: str, rank: int
) -> None:
    """Theorem 1: every attack has a one-sided attack that is equivalent to it."""
    target = make_target(mechanism, 0.5, rank=rank, groups=3)
    attack = example(name, target)
    if not attack.active:
        return
    reports = attack.poison(target, COUNT, np.random.default_rng(1))
    positions, mean = target.position_of(reports), target.honest_mean
    reduced = reduce_to_biased(positions, mean)
    before, after = (shift_of_mean(poison, mean, 4 * COUNT) for poison in (positions, reduced))
    assert after == pytest.approx(before, rel=1e-9, abs=1e-9)
    assert (reduced >= mean).all() or (reduced <= mean).all()
    assert len(reduced) <= COUNT


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


def test_nobody_attacks_when_the_attack_is_none_and_somebody_does_otherwise() -> None:
    assert not NoAttack().active
    for name, mechanism in pairs_that_fit():
        assert example(name, make_target(mechanism, BUDGETS[0])).active or name == "none"
