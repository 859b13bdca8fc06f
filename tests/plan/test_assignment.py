"""Who goes into which group, and the reports that users send from there."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unpoison import InvalidParameter, InvalidValue, Plan, Reports, UnpoisonError, perturb
from unpoison.mechanisms.exact import exact
from unpoison.mechanisms.randomness import SystemGenerator
from unpoison.plan.assignment import GroupAssigner, group_sizes
from unpoison.plan.budgets import Group
from unpoison.reports import Reporter
from unpoison.reports.values import tiers_of

SIGMAS = 6.0
UNEQUAL = Plan.from_dict(
    {
        "mechanism": "piecewise",
        "epsilon": 1.0,
        "low": 0,
        "high": 10,
        "groups": [
            {"epsilon": 1.0, "reports": 1, "share": 0.5},
            {"epsilon": 0.5, "reports": 2, "share": 0.3},
            {"epsilon": 0.25, "reports": 3, "share": 0.2},
        ],
    }
)
TIERED = Plan.new(
    epsilon=1.0, min_epsilon=0.25, low=0, high=10, tiers=[{"epsilon": 0.5}, {"epsilon": 0.125}]
)
BASELINE_TIERS = Plan.new(
    protocol="baseline", epsilon=1.0, low=0, high=10, tiers=[{"epsilon": 0.5}]
)
NAMES = [f"category {number}" for number in range(30)]
PLANS = (
    Plan.new(epsilon=1.0, min_epsilon=0.25, low=0, high=10),
    Plan.new(mechanism="square-wave-integer", epsilon=1.5, min_epsilon=0.2, low=0, high=10),
    Plan.new(mechanism="k-rr", epsilon=1.0, min_epsilon=0.5, categories=NAMES),
    Plan.new(protocol="baseline", epsilon=1.0, low=0, high=10),
    UNEQUAL,
    TIERED,
    BASELINE_TIERS,
)
every_plan = pytest.mark.parametrize(
    "plan", PLANS, ids=["plain", "integer", "letters", "baseline", "unequal", "tiers", "both"]
)
chunks = st.lists(st.integers(0, 40), max_size=8)


def equal_plan(groups: int) -> Plan:
    return Plan.new(epsilon=1.0, min_epsilon=2.0 ** (1 - groups), low=0, high=1, cells=4)


def plan_with_shares(weights: list[int]) -> Plan:
    groups = [{"epsilon": 1.0, "reports": 1, "share": w / sum(weights)} for w in weights]
    keys = {"mechanism": "piecewise", "epsilon": 1.0, "low": 0, "high": 1, "cells": 4}
    return Plan.from_dict({**keys, "groups": groups})


def some_values(plan: Plan, count: int) -> list[Any]:
    rng = np.random.default_rng(11)
    if plan.categories is not None:
        return [plan.categories[at] for at in rng.integers(0, len(plan.categories), count)]
    return list(rng.uniform(*plan.bounds, count).tolist())


def some_budgets(plan: Plan, count: int) -> list[float] | None:
    """Personal budgets at, between and above those of the tiers."""
    if not plan.tiers:
        return None
    known = [tier.epsilon for tier in plan.all_tiers]
    choice = np.random.default_rng(12).integers(0, 3 * len(known), count)
    return [known[at // 3] * (1.0, 1.3, 1.9)[at % 3] for at in choice.tolist()]


def cut(values: Sequence[Any] | None, sizes: list[int]) -> list[Any]:
    """Neighbouring chunks of the given sizes, then the rest."""
    ends = np.cumsum([0, *sizes]).tolist()
    bounds = [*ends, None]
    pairs = pairwise(bounds)
    return [None if values is None else values[first:last] for first, last in pairs]


def reports_of_each_user(reports: Reports) -> dict[int, list[int]]:
    """The groups of each user's reports."""
    groups_by_user: dict[int, list[int]] = {}
    for user, group in zip(reports.user.tolist(), reports.group.tolist(), strict=True):
        groups_by_user.setdefault(user, []).append(group)
    return groups_by_user


# Sizes


@settings(max_examples=60, deadline=None)
@given(groups=st.integers(1, 8), users=st.integers(0, 10**9))
def test_equal_groups_differ_by_one_user_at_most(groups: int, users: int) -> None:
    sizes = group_sizes(equal_plan(groups).groups, users)
    assert sizes.sum() == users
    assert sizes.max() - sizes.min() <= 1


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(weights=st.lists(st.integers(1, 50), min_size=1, max_size=6), users=st.integers(0, 10**7))
def test_groups_have_their_shares_to_less_than_one_user(weights: list[int], users: int) -> None:
    sizes = group_sizes(plan_with_shares(weights).groups, users)
    assert sizes.sum() == users
    for size, weight in zip(sizes.tolist(), weights, strict=True):
        assert abs(size - Fraction(weight * users, sum(weights))) < 1 + 1e-5


@settings(max_examples=60, deadline=None)
@given(groups=st.integers(1, 8), sizes=chunks, seed=st.integers(0, 2**32))
def test_equal_groups_are_balanced_after_every_user(
    groups: int, sizes: list[int], seed: int
) -> None:
    assigner = GroupAssigner(equal_plan(groups), 0, np.random.default_rng(seed))
    counts = np.zeros(groups, dtype=np.int64)
    for size in sizes:
        assigned = assigner.assign(size)
        assert len(assigned) == size
        counts += np.bincount(assigned, minlength=groups)
        assert counts.max() - counts.min() <= 1


@pytest.mark.parametrize("weights", [[6, 4], [7, 3], [1, 1, 8], [5, 3, 2], [1, 49, 50]])
def test_unequal_groups_have_their_shares(weights: list[int]) -> None:
    users = 100_000
    assigner = GroupAssigner(plan_with_shares(weights), 0, np.random.default_rng(1))
    counts = np.bincount(assigner.assign(users), minlength=len(weights))
    for count, weight in zip(counts.tolist(), weights, strict=True):
        share = weight / sum(weights)
        assert abs(count - users * share) < 5 * math.sqrt(users * share * (1 - share))


@pytest.mark.slow
@pytest.mark.parametrize("weights", [[6, 4], [7, 3], [1, 1, 8], [1, 1, 1]])
def test_a_device_that_asks_alone_is_in_a_group_with_the_probability_of_its_share(
    weights: list[int],
) -> None:
    devices = 4_000
    plan, streams = plan_with_shares(weights), np.random.default_rng(1).spawn(devices)
    groups = [int(GroupAssigner(plan, 0, stream).assign(1)[0]) for stream in streams]
    counts = np.bincount(groups, minlength=len(weights))
    for count, weight in zip(counts.tolist(), weights, strict=True):
        share = weight / sum(weights)
        assert abs(count - devices * share) < 5 * math.sqrt(devices * share * (1 - share))


def test_shares_written_to_ten_digits_lose_no_user() -> None:
    groups = (Group(1.0, 1, 0.3333333333),) * 3
    assert group_sizes(groups, 10**8).sum() == 10**8


# Chance


@settings(max_examples=60, deadline=None)
@given(
    plan=st.sampled_from([equal_plan(1), equal_plan(5), UNEQUAL]),
    sizes=chunks,
    seed=st.integers(0, 2**32),
)
def test_a_user_is_assigned_alike_in_any_chunk(plan: Plan, sizes: list[int], seed: int) -> None:
    whole = GroupAssigner(plan, 0, np.random.default_rng(seed)).assign(sum(sizes))
    assigner = GroupAssigner(plan, 0, np.random.default_rng(seed))
    parts = [assigner.assign(size).tolist() for size in sizes]
    assert [group for part in parts for group in part] == whole.tolist()


def test_every_order_of_the_groups_is_equally_likely() -> None:
    blocks = 12_000
    assigned = GroupAssigner(equal_plan(3), 0, np.random.default_rng(1)).assign(3 * blocks)
    orders = Counter(map(tuple, assigned.reshape(blocks, 3).tolist()))
    noise = math.sqrt(blocks * 1 / 6 * 5 / 6)
    assert len(orders) == 6
    assert all(abs(count - blocks / 6) <= SIGMAS * noise for count in orders.values())


@pytest.mark.parametrize("plan", [equal_plan(4), UNEQUAL], ids=["equal", "unequal"])
def test_every_place_has_every_group_as_often_as_its_share(plan: Plan) -> None:
    block = math.ceil(1 / min(group.share for group in plan.groups))
    blocks = 10_000
    assigned = GroupAssigner(plan, 0, np.random.default_rng(2)).assign(block * blocks)
    for place in assigned.reshape(blocks, block).T:
        counts = np.bincount(place, minlength=len(plan.groups))
        for count, group in zip(counts.tolist(), plan.groups, strict=True):
            noise = math.sqrt(blocks * group.share * (1 - group.share))
            assert abs(count - blocks * group.share) <= SIGMAS * noise


def test_the_first_user_of_a_new_collection_may_get_any_group() -> None:
    plan, trials = equal_plan(4), 2000
    firsts = [GroupAssigner(plan, 0, SystemGenerator()).assign(1)[0] for _ in range(trials)]
    noise = math.sqrt(trials * 1 / 4 * 3 / 4)
    assert (np.abs(np.bincount(firsts, minlength=4) - trials / 4) <= 7 * noise).all()


def test_tiers_are_assigned_their_own_groups() -> None:
    for tier in range(3):
        assigned = GroupAssigner(TIERED, tier, np.random.default_rng(1)).assign(60)
        assert sorted(set(assigned.tolist())) == list(TIERED.tier_groups(tier))


# Reports


@every_plan
@settings(max_examples=20, deadline=None)
@given(sizes=chunks, seed=st.integers(0, 2**32))
def test_a_user_reports_alike_in_any_chunk(plan: Plan, sizes: list[int], seed: int) -> None:
    values, budgets = some_values(plan, 100), some_budgets(plan, 100)
    whole = perturb(values, plan, np.random.default_rng(seed), budgets)
    reporter = Reporter(plan, np.random.default_rng(seed))
    parts = [
        reporter.report(part, share)
        for part, share in zip(cut(values, sizes), cut(budgets, sizes), strict=True)
    ]
    np.testing.assert_array_equal(np.concatenate([part.group for part in parts]), whole.group)
    np.testing.assert_array_equal(np.concatenate([part.value for part in parts]), whole.value)


@every_plan
def test_no_user_spends_more_than_the_personal_budget(plan: Plan) -> None:
    values, budgets = some_values(plan, 300), some_budgets(plan, 300)
    reports = perturb(values, plan, np.random.default_rng(1), budgets)
    spent = {
        user: sum(exact(plan.all_groups[group].epsilon) for group in groups)
        for user, groups in reports_of_each_user(reports).items()
    }
    assert sorted(spent) == list(range(300))
    for user, total in spent.items():
        assert total <= exact(plan.epsilon if budgets is None else budgets[user])


@pytest.mark.parametrize("plan", [PLANS[0], PLANS[1], UNEQUAL, TIERED])
def test_a_user_is_in_one_group_and_sends_its_number_of_reports(plan: Plan) -> None:
    reports = perturb(
        some_values(plan, 300), plan, np.random.default_rng(2), some_budgets(plan, 300)
    )
    assert (np.diff(reports.user) >= 0).all()
    for groups in reports_of_each_user(reports).values():
        assert set(groups) == {groups[0]}
        assert len(groups) == plan.all_groups[groups[0]].reports


@pytest.mark.parametrize("plan", [PLANS[3], BASELINE_TIERS])
def test_a_user_of_the_baseline_reports_once_in_each_group_of_a_tier(plan: Plan) -> None:
    budgets = some_budgets(plan, 100)
    tiers = tiers_of(plan, 100, budgets)
    reports = perturb(some_values(plan, 100), plan, np.random.default_rng(3), budgets)
    for user, groups in reports_of_each_user(reports).items():
        assert groups == list(plan.tier_groups(int(tiers[user])))


def test_a_personal_budget_buys_the_largest_tier_that_it_covers() -> None:
    budgets = [9.0, 1.0, 0.99, 0.5, 0.49, 0.125]
    assert tiers_of(TIERED, 6, budgets).tolist() == [0, 0, 1, 1, 2, 2]
    assert tiers_of(TIERED, 3, None).tolist() == [0, 0, 0]


@every_plan
def test_reports_are_in_the_output_domain_of_their_group(plan: Plan) -> None:
    reports = perturb(some_values(plan, 500), plan, np.random.default_rng(4))
    for group, part in enumerate(plan.group_mechanisms):
        mine = reports.value[reports.group == group]
        assert ((mine >= part.output_low) & (mine <= part.output_high - part.discrete)).all()


@pytest.mark.parametrize("name", ["piecewise", "square-wave-integer"])
def test_decoded_reports_of_each_group_are_the_value_in_natural_units(name: str) -> None:
    plan = Plan.new(mechanism=name, epsilon=4.0, min_epsilon=1.0, low=-50, high=150)
    reports = perturb(np.full(60_000, 37.0), plan, np.random.default_rng(5))
    for group, part in enumerate(plan.group_mechanisms):
        decoded = part.decode(reports.value[reports.group == group])
        noise = plan.natural_scale * math.sqrt(part.worst_variance / len(decoded))
        assert abs(plan.natural(float(decoded.mean())) - 37.0) <= SIGMAS * noise


def test_categories_are_reported_by_their_number() -> None:
    plan = Plan.new(mechanism="k-rr", epsilon=16.0, min_epsilon=16.0, categories=NAMES)
    reports = perturb(NAMES * 10, plan, np.random.default_rng(6))
    assert (reports.value == np.tile(np.arange(30), 10)).mean() > 0.9


def test_the_same_seed_gives_the_same_reports_and_another_gives_others() -> None:
    values = some_values(PLANS[0], 50)
    one, same, other = (perturb(values, PLANS[0], np.random.default_rng(s)) for s in (1, 1, 2))
    np.testing.assert_array_equal(one.value, same.value)
    assert not np.array_equal(one.value, other.value)
    by_system = [perturb(values, PLANS[0]).value.tolist() for _ in range(2)]
    assert by_system[0] != by_system[1]


def test_values_may_come_in_any_container_of_numbers() -> None:
    import pandas as pd

    numbers = list(range(11))
    containers = [numbers, tuple(numbers), np.array(numbers, dtype=np.int16), pd.Series(numbers)]
    reported_values = [
        perturb(container, PLANS[0], np.random.default_rng(1)).value.tolist()
        for container in containers
    ]
    assert all(reported == reported_values[0] for reported in reported_values)


def test_what_leaves_as_a_table_does_not_say_who_sent_it() -> None:
    table = perturb(some_values(PLANS[0], 5), PLANS[0], np.random.default_rng(1)).to_pandas()
    assert list(table.columns) == ["group", "value"]


def test_no_users_send_no_reports() -> None:
    for plan in PLANS:
        assert len(perturb([], plan)) == 0


# Refusals


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (math.nan, "not a number"),
        (math.inf, "an infinity"),
        (-math.inf, "an infinity"),
        (98765.4321, "a value above high"),
        (-98765.4321, "a value below low"),
        (np.nextafter(10.0, 11.0), "a value above high"),
    ],
)
def test_a_bad_value_is_placed_and_described_but_never_repeated(bad: float, said: str) -> None:
    with pytest.raises(UnpoisonError, match=rf"row 3: values must be .* received {said}$") as fault:
        perturb([1.0, 2.0, bad, math.nan], PLANS[0], np.random.default_rng(1))
    assert not any(text in str(fault.value) for text in ("nan", "98765", "10.000"))


def test_an_unknown_category_is_placed_but_never_repeated() -> None:
    with pytest.raises(UnpoisonError, match="row 2: values must be categories") as fault:
        perturb([NAMES[0], "a private thing"], PLANS[2], np.random.default_rng(1))
    assert "private" not in str(fault.value)


@pytest.mark.parametrize("plan", [PLANS[0], PLANS[2]], ids=["numbers", "categories"])
@pytest.mark.parametrize("values", ["a private thing", [["a private thing"]], {"a private thing"}])
def test_values_that_are_no_column_are_refused_and_never_repeated(plan: Plan, values: Any) -> None:
    with pytest.raises(InvalidParameter, match=r"^values must be") as fault:
        perturb(values, plan, np.random.default_rng(1))
    assert "private" not in str(fault.value)
    assert fault.value.__cause__ is None
    assert fault.value.__suppress_context__ or fault.value.__context__ is None


@pytest.mark.parametrize(
    ("budgets", "rule"),
    [
        ([1.0], r"must be one a user, 2; received \(1,\)"),
        (1.0, "must be one a user"),
        (["much", "more"], "must be numbers"),
    ],
)
def test_bad_budgets_are_refused(budgets: Any, rule: str) -> None:
    with pytest.raises(InvalidParameter, match=f"^budgets {rule}"):
        perturb([1.0, 2.0], TIERED, np.random.default_rng(1), budgets)


@pytest.mark.parametrize("budget", [0.1, 0.124, math.nan, -1.0, -math.inf])
def test_a_budget_that_no_tier_serves_is_placed_but_not_repeated(budget: float) -> None:
    rule = "row 2: budgets must be at least the smallest tier's epsilon 0.125; received less"
    with pytest.raises(InvalidValue, match=f"^{rule}") as caught:
        perturb([1.0, 2.0], TIERED, np.random.default_rng(1), [1.0, budget])
    assert str(budget) not in str(caught.value).replace("0.125", "")


@pytest.mark.parametrize("share", [0.0, -0.5, 1.5, math.nan])
def test_a_group_needs_a_share_of_the_users(share: float) -> None:
    with pytest.raises(InvalidParameter, match=r"^share must be in \[1e-06, 1\]"):
        Group(1.0, 1, share)
