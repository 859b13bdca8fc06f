"""Attacks that take another attack and differ from group to group."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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
    with pytest.raises(
        InvalidParameter, match=r"attack needs the whole collection: use simulate\(\)"
    ):
        send(target, 3, np.random.default_rng(1))


# Attackers who are not in all groups alike


def attackers_in_groups(collection: Simulation) -> list[float]:
    reports = [group.reports for group in collection.summary.plan.groups]
    return [float(sent) for sent in poison_of(collection).sum(axis=1) / reports]


@both_ways
def test_fishing_attackers_are_in_their_groups_only_and_enlarge_them(direct: bool) -> None:
    collection = run(PLAN, VALUES, "fishing:0,2;point:C", 0.25, direct)
    assert attackers_in_groups(collection) == [1500, 0, 1500]
    assert collection.summary.users.tolist() == [4500, 3000, 4500]
    assert collection.byzantine_fraction == 0.25
    assert (poison_of(collection)[:, -1] == poison_of(collection).sum(axis=1)).all()


@both_ways
def test_uneven_attackers_are_as_many_as_weights_say_and_leave_sizes_as_planned(
    direct: bool,
) -> None:
    collection = run(PLAN, VALUES, "uneven:0,1,3;point:C", 0.25, direct)
    assert attackers_in_groups(collection) == [0, 750, 2250]
    assert collection.summary.users.tolist() == [4000, 4000, 4000]


@pytest.mark.parametrize("shares", [(0.5, 0.3, 0.2), (0.1, 0.1, 0.8)])
def test_weights_are_of_shares_of_attackers_whatever_the_sizes_of_groups(
    shares: tuple[float, ...],
) -> None:
    groups = [
        {"epsilon": 1 / 2**index, "reports": 2**index, "share": share}
        for index, share in enumerate(shares)
    ]
    plan = Plan.new(epsilon=1.0, low=-1, high=1, groups=groups, cells=64)
    collection = run(plan, VALUES, "uneven:1,1,2;point:C", 0.2, direct=True)
    attackers = np.array(attackers_in_groups(collection)) / collection.summary.users
    assert attackers[1:] / attackers[0] == pytest.approx([1, 2], rel=0.01)
    assert sum(attackers_in_groups(collection)) == 2400


@both_ways
@pytest.mark.parametrize("attack", ["fishing:1;point:C", "uneven:1,0,2;point:C"])
def test_honest_users_of_every_group_are_alike_wherever_attackers_are(
    attack: str, direct: bool
) -> None:
    collection = run(PLAN, VALUES, attack, 0.2, direct)
    assert collection.honest_summary is not None
    for group, part in enumerate(PLAN.group_mechanisms):
        expected = part.cell_probabilities(VALUES, part.grid()).mean(axis=0)
        counts = collection.honest_summary.counts[group]
        assert p_value(counts, counts.sum() * expected) > ALMOST_NEVER


@pytest.mark.parametrize("attack", ["fishing:2;point:C", "uneven:1,2,3;point:C"])
def test_without_groups_all_attackers_are_in_the_only_one(attack: str) -> None:
    plan = Plan.new(epsilon=1.0, min_epsilon=1.0, low=-1, high=1, cells=64)
    collection = run(plan, VALUES, attack, 0.25, direct=False)
    assert attackers_in_groups(collection) == [3000]
    assert collection.summary.total_users == 12_000


@pytest.mark.parametrize(
    ("attack", "message"),
    [
        ("fishing:3", "groups must be from 0 to 2 in this plan; received 3"),
        ("uneven:1,2", r"weights must be one for each of the 3 groups .*\(1.0, 2.0\)"),
        ("uneven:0,0,1", r"weights must leave at most as many attackers .*\(group 2\)"),
        ("fishing:0;some-groups:3", "groups must be from 0 to 2 in this plan; received 3"),
    ],
)
def test_a_plan_that_has_no_such_groups_is_refused(attack: str, message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        run(PLAN, VALUES, attack, 0.4, direct=False)


@pytest.mark.parametrize("attack", ["fishing:0", "uneven:1,1"])
@pytest.mark.parametrize("keys", [{"protocol": "baseline"}, {"tiers": [{"epsilon": 0.25}]}])
def test_attackers_choose_groups_only_where_users_are_in_one(
    attack: str, keys: dict[str, Any]
) -> None:
    plan = Plan.new(epsilon=1.0, min_epsilon=0.5, low=-1, high=1, **keys)
    with pytest.raises(InvalidParameter, match="plan must be a dap plan without tiers"):
        simulate(plan, VALUES, attack, 0.25, np.random.default_rng(1))
