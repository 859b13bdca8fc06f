"""Attacks that take another attack and differ from group to group."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from support.goodness_of_fit import ALMOST_NEVER, p_value
from unpoison import Plan, simulate
from unpoison.attacks import SomeGroups, Target, parse_attack
from unpoison.errors import InvalidParameter
from unpoison.mechanisms import make
from unpoison.simulation import Population, Simulation

PLAN = Plan.new(epsilon=2.0, min_epsilon=0.5, low=-1, high=1, cells=64)
VALUES = np.repeat([-0.9, -0.25, 0.5], [3000, 5000, 4000])
DRINKS = Plan.new("k-rr", epsilon=2.0, min_epsilon=0.5, categories=["tea", "milk", "juice"])
DRUNK = np.repeat(["tea", "milk", "juice"], [7000, 4000, 1000])

both_ways = pytest.mark.parametrize("direct", [False, True], ids=["one by one", "as counts"])


def run(plan: Plan, values: np.ndarray, attack: str, share: float, direct: bool) -> Simulation:
    """A collection whose reports are drawn one by one, or whose counts are drawn directly."""
    users = Population.of(values) if direct else values
    return simulate(plan, users, attack, share, np.random.default_rng(1))


def poison_of(collection: Simulation) -> np.ndarray:
    assert collection.honest_summary is not None
    return np.asarray(collection.summary.counts - collection.honest_summary.counts)


@both_ways
def test_attackers_in_some_groups_attack_there(direct: bool) -> None:
    collection = run(PLAN, VALUES, "some-groups:0,2;point:C", 0.25, direct)
    poison = poison_of(collection)
    assert (poison[[0, 2], -1] == poison[[0, 2]].sum(axis=1)).all()
    assert poison[1, -1] < poison[1].sum() / 4


@both_ways
@pytest.mark.parametrize(
    ("plan", "values", "attack"),
    [(PLAN, VALUES, "point:C"), (DRINKS, DRUNK, "targets:juice")],
    ids=["numbers", "categories"],
)
def test_groups_without_an_attack_look_as_if_nobody_attacked(
    plan: Plan, values: np.ndarray, attack: str, direct: bool
) -> None:
    collection = run(plan, values, f"some-groups:1;{attack}", 0.45, direct)
    inputs = plan.normalise(values) if plan is PLAN else np.repeat([0, 1, 2], [7000, 4000, 1000])
    for group in (0, 2):
        part = plan.group_mechanisms[group]
        expected = part.cell_probabilities(inputs, part.grid()).mean(axis=0)
        counts = poison_of(collection)[group]
        assert p_value(counts, counts.sum() * expected) > ALMOST_NEVER


@both_ways
def test_the_truth_is_that_of_the_users_who_do_not_attack(direct: bool) -> None:
    collection = run(PLAN, VALUES, "some-groups:1;point:C", 0.25, direct)
    assert collection.truth == pytest.approx(VALUES.mean(), abs=0.02)
    assert collection.byzantine_fraction == 0.25


def test_in_a_collection_without_groups_everybody_attacks() -> None:
    plan = Plan.new(epsilon=1.0, min_epsilon=1.0, low=-1, high=1, cells=64)
    poison = poison_of(run(plan, VALUES, "some-groups:3;point:C", 0.25, direct=False))
    assert poison[0, -1] == 3000


def test_groups_that_the_plan_does_not_have_are_refused() -> None:
    with pytest.raises(
        InvalidParameter, match="groups must be from 0 to 2 in this plan; received 3"
    ):
        run(PLAN, VALUES, "some-groups:0,3;point:C", 0.25, direct=False)


def test_an_attack_of_the_other_kind_is_refused_also_inside_another() -> None:
    with pytest.raises(InvalidParameter, match="attack must be one on categories"):
        run(DRINKS, DRUNK, "some-groups:0;point:C", 0.25, direct=False)


def test_an_attack_inside_another_that_is_none_is_none() -> None:
    assert not parse_attack("some-groups:0;none").active
    assert run(PLAN, VALUES, "some-groups:0;none", 0.25, direct=False).byzantine_fraction == 0


@pytest.mark.parametrize("send", [SomeGroups().poison, SomeGroups().poison_counts])
def test_attackers_who_do_not_know_the_collection_cannot_look_like_it(
    send: Callable[[Target, int, np.random.Generator], object],
) -> None:
    target = Target(make("piecewise", 1.0), 0.1, groups=2, group=1)
    with pytest.raises(InvalidParameter, match="target must know the whole collection"):
        send(target, 3, np.random.default_rng(1))
