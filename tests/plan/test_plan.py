"""Plans: short and full form, budgets that are never exceeded, and every refusal."""

from __future__ import annotations

import dataclasses
import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from unpoison import InvalidFile, InvalidParameter, Plan
from unpoison.mechanisms import mechanisms
from unpoison.mechanisms.base import MIN_EPSILON
from unpoison.mechanisms.exact import decimal_at_most, exact, halvings
from unpoison.plan.budgets import Group, Tier, baseline_groups, dap_groups

SHORT: dict[str, Any] = {"mechanism": "piecewise", "epsilon": 1.0, "low": 0, "high": 10}
LETTERS: dict[str, Any] = {"mechanism": "k-rr", "epsilon": 1.0, "categories": ["a", "b", "c"]}

decimals = st.decimals("0.0001", "16", places=4).map(float)
any_epsilon = decimals | st.floats(1e-4, 16.0)


def named(fault: pytest.ExceptionInfo[InvalidParameter], parameter: str) -> bool:
    """Whether the message names the parameter, and says what was received, in one line."""
    text = str(fault.value)
    return parameter in text and "; received " in text and "\n" not in text


def assert_refused_by_name(parameter: str, keys: dict[str, Any]) -> None:
    """A plan of these keys is refused in one line that names the parameter."""
    with pytest.raises(InvalidParameter) as fault:
        Plan.from_dict(keys)
    assert named(fault, parameter)


@st.composite
def budget_pairs(draw: st.DrawFn) -> tuple[float, float]:
    epsilon, min_epsilon = sorted((draw(any_epsilon), draw(any_epsilon)), reverse=True)
    return epsilon, min_epsilon


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Plans of any mechanism and protocol, some with tiers."""
    name = draw(st.sampled_from(list(mechanisms)))
    epsilon, min_epsilon = draw(budget_pairs())
    keys: dict[str, Any] = {"mechanism": name, "epsilon": epsilon, "min_epsilon": min_epsilon}
    if mechanisms[name].categorical:
        keys["categories"] = draw(
            st.lists(st.text(min_size=1, max_size=5), min_size=2, max_size=6, unique=True)
        )
    else:
        keys["low"], keys["high"] = sorted(
            draw(st.lists(st.floats(-1e9, 1e9), min_size=2, max_size=2, unique=True))
        )
        assume(keys["high"] > keys["low"])
        if draw(st.booleans()):
            keys["step"] = (keys["high"] - keys["low"]) / draw(st.integers(1, 1000))
        if draw(st.booleans()):
            keys["unit"] = draw(st.sampled_from(["s", "€", "km/h"]))
        keys["cells"] = draw(st.integers(2, 64))
    if 2 * exact(min_epsilon) <= exact(epsilon) and draw(st.booleans()):
        keys["protocol"] = "baseline"
    elif min_epsilon < epsilon and draw(st.booleans()):
        keys["tiers"] = [{"epsilon": min_epsilon, "min_epsilon": min_epsilon}]
    return Plan.from_dict(keys)


# Forms


def test_the_short_form_expands_to_the_groups_of_the_paper() -> None:
    plan = Plan.from_dict({**SHORT, "min_epsilon": 0.25})
    full = plan.to_dict()
    assert full["protocol"] == "dap"
    assert full["cells"] == mechanisms["piecewise"].default_cells
    budgets = [(group["epsilon"], group["reports"]) for group in full["groups"]]
    assert budgets == [(1.0, 1), (0.5, 2), (0.25, 4)]
    assert sum(Fraction(group["share"]).limit_denominator() for group in full["groups"]) == 1
    assert Plan.from_dict(full) == plan


def test_the_short_form_of_categories_expands_too() -> None:
    full = Plan.from_dict(LETTERS).to_dict()
    assert full["categories"] == ["a", "b", "c"]
    assert not {"low", "high", "cells"} & set(full)


def test_new_takes_the_keys_of_the_short_form() -> None:
    assert Plan.new(low=0, high=10) == Plan.from_dict(SHORT)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(plan=plans())
def test_json_brings_back_an_equal_plan(plan: Plan) -> None:
    again = Plan.from_json(plan.to_json())
    assert again == plan
    assert again.fingerprint == plan.fingerprint
    assert again.to_json() == plan.to_json()


def test_the_fingerprint_does_not_depend_on_how_a_plan_is_written() -> None:
    of_paper = {**SHORT, "min_epsilon": "paper"}
    written = Plan.from_json(json.dumps({**SHORT, "epsilon": 1, "min_epsilon": 0.0625}))
    reordered = Plan.from_dict(dict(reversed(written.to_dict().items())))
    negative_zero = Plan.from_dict({**of_paper, "low": -0.0})
    assert written == reordered == negative_zero == Plan.from_dict(of_paper)
    fingerprints = {plan.fingerprint for plan in (written, reordered, negative_zero)}
    assert fingerprints == {Plan.from_dict(of_paper).fingerprint}


@pytest.mark.parametrize("epsilon", [0.0001, 0.0005, 0.3, 1.0, 16.0])
def test_a_plan_without_groups_has_half_of_its_users_in_the_first_of_four(epsilon: float) -> None:
    plan = Plan.from_dict({**SHORT, "epsilon": epsilon})
    shares = [group.share for group in plan.groups]
    assert plan.groups[0].epsilon == epsilon
    assert sum(shares) == pytest.approx(1)
    if epsilon < 0.0008:
        assert plan.min_epsilon == MIN_EPSILON
    else:
        assert plan.min_epsilon == pytest.approx(epsilon / 8)
        assert [group.reports for group in plan.groups] == [1, 2, 4, 8]
        assert shares == pytest.approx([1 / 2, 1 / 6, 1 / 6, 1 / 6])
    assert all(group.spent <= exact(epsilon) for group in plan.groups)


@pytest.mark.parametrize(
    "change",
    [
        {"mechanism": "square-wave"},
        {"epsilon": 2.0},
        {"min_epsilon": 0.125},
        {"low": -1},
        {"high": 11},
        {"step": 1},
        {"cells": 64},
        {"protocol": "baseline"},
        {"tiers": [{"epsilon": 0.5}]},
    ],
)
def test_any_change_changes_the_fingerprint(change: dict[str, Any]) -> None:
    assert Plan.from_dict({**SHORT, **change}).fingerprint != Plan.from_dict(SHORT).fingerprint


def test_the_order_of_categories_is_part_of_the_fingerprint() -> None:
    turned = {**LETTERS, "categories": ["c", "b", "a"]}
    assert Plan.from_dict(turned).fingerprint != Plan.from_dict(LETTERS).fingerprint


def test_a_plan_is_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Plan.from_dict(SHORT).epsilon = 2.0  # type: ignore[misc]


def test_a_plan_file_is_read_back(tmp_path: Path) -> None:
    plan = Plan.from_dict({**LETTERS, "categories": ["café", "naïve", "Ω"]})
    path = tmp_path / "plan.json"
    path.write_text(plan.to_json(), encoding="utf-8")
    assert Plan.load(path) == plan


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"[1]", b'{"mechanism": "x"}'])
def test_a_file_that_is_no_plan_is_refused_by_name(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "broken.json"
    path.write_bytes(content)
    with pytest.raises(InvalidFile, match=r"broken\.json"):
        Plan.load(path)


def test_a_missing_plan_file_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile, match=r"absent\.json"):
        Plan.load(tmp_path / "absent.json")


# Budgets


@pytest.mark.parametrize(
    ("epsilon", "min_epsilon", "groups", "reports"),
    [
        (1.5, 0.0625, 6, 24),
        (0.3, 0.1, 3, 3),
        (2.0, 0.0625, 6, 32),
        (1.0, 1.0, 1, 1),
        (0.7, 0.1, 4, 7),
        (1.0, 0.3, 3, 3),
    ],
)
def test_known_budgets_give_known_groups(
    epsilon: float, min_epsilon: float, groups: int, reports: int
) -> None:
    made = dap_groups(epsilon, min_epsilon)
    assert len(made) == groups
    assert (made[-1].epsilon, made[-1].reports) == (min_epsilon, reports)


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(pair=budget_pairs())
@example(pair=(0.3000000000000004, 0.3000000000000003))
def test_no_user_ever_spends_more_than_epsilon(pair: tuple[float, float]) -> None:
    plan = Plan.new(epsilon=pair[0], min_epsilon=pair[1], low=0, high=1, cells=4)
    for group in plan.groups:
        assert Fraction(repr(group.epsilon)) * group.reports <= Fraction(repr(pair[0]))
        assert Fraction(repr(group.epsilon)) * (group.reports + 1) > Fraction(repr(pair[0]))


@settings(max_examples=200, deadline=None)
@given(pair=budget_pairs())
@example(pair=(0.3000000000000004, 0.3000000000000003))
def test_budgets_halve_down_to_the_smallest(pair: tuple[float, float]) -> None:
    epsilon, min_epsilon = pair
    groups = dap_groups(epsilon, min_epsilon)
    ratio = exact(epsilon) / exact(min_epsilon)
    steps = len(groups) - 1
    assert 2**steps >= ratio
    assert steps == 0 or 2 ** (steps - 1) < ratio
    for step, group in enumerate(groups[:-1]):
        assert group.epsilon == pytest.approx(epsilon / 2**step, rel=1e-14)
        assert group.reports == 2**step
    assert groups[-1].epsilon == min_epsilon
    assert len({group.share for group in groups}) == 1


@settings(max_examples=100, deadline=None)
@given(pair=budget_pairs())
def test_the_two_budgets_of_the_baseline_add_up_to_epsilon(pair: tuple[float, float]) -> None:
    epsilon, small = pair
    assume(2 * exact(small) <= exact(epsilon))
    large, last = baseline_groups(epsilon, small)
    assert last.epsilon == small
    assert exact(large.epsilon) + exact(last.epsilon) <= exact(epsilon)
    assert large.epsilon + last.epsilon == pytest.approx(epsilon, rel=1e-14)
    assert (large.reports, last.reports) == (1, 1)


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(number=st.fractions(Fraction(1, 10**6), 16))
def test_a_decimal_is_never_above_the_fraction_that_it_stands_for(number: Fraction) -> None:
    decimal = exact(decimal_at_most(number))
    assert number * (1 - Fraction(1, 10**13)) <= decimal <= number


@settings(max_examples=100, deadline=None)
@given(number=st.floats(1e-6, 1e6))
def test_exact_is_the_decimal_text_of_a_number(number: float) -> None:
    assert float(exact(number)) == number
    assert exact(number) == Fraction(repr(number))


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(whole=st.fractions(Fraction(1, 100), 100), smallest=st.fractions(Fraction(1, 100), 100))
def test_halvings_are_the_fewest_that_reach_the_smallest(
    whole: Fraction, smallest: Fraction
) -> None:
    count = halvings(whole, smallest)
    assert whole / 2**count <= smallest
    assert count == 0 or whole / 2 ** (count - 1) > smallest


# Units


@settings(max_examples=60, deadline=None)
@given(
    ends=st.lists(st.integers(-(10**9), 10**9), min_size=2, max_size=2, unique=True),
    share=st.floats(0, 1),
    name=st.sampled_from([name for name in mechanisms if not mechanisms[name].categorical]),
)
def test_normalised_values_are_in_the_domain_and_come_back(
    ends: list[int], share: float, name: str
) -> None:
    low, high = sorted(ends)
    plan = Plan.new(mechanism=name, low=low, high=high, cells=4)
    value = min(low + share * (high - low), high)
    inside = plan.normalise_one(value)
    part = plan.group_mechanisms[0]
    assert part.input_low <= inside <= part.input_high
    assert plan.natural(inside) == pytest.approx(value, abs=1e-9 * (high - low))
    assert plan.natural(part.input_low) == low
    assert plan.natural(part.input_high) == pytest.approx(high)
    assert plan.natural_scale * (part.input_high - part.input_low) == pytest.approx(high - low)


@pytest.mark.parametrize("count", [2, 3, 23, 50, 200])
def test_category_numbers_are_left_as_they_are(count: int) -> None:
    names = [f"category {number}" for number in range(count)]
    plan = Plan.new(mechanism="k-rr", categories=names)
    numbers = np.arange(count, dtype=np.float64)
    assert plan.normalise(numbers).tolist() == numbers.tolist()


# Tiers


def test_tiers_number_their_groups_after_those_of_the_plan() -> None:
    alone = {"epsilon": 0.0625, "min_epsilon": 0.0625}
    keys = {**SHORT, "min_epsilon": 0.25, "tiers": [{"epsilon": 0.5}, alone]}
    plan = Plan.from_dict(keys)
    assert [list(plan.tier_groups(tier)) for tier in range(3)] == [
        [0, 1, 2],
        [3, 4, 5, 6],
        [7],
    ]
    assert [group.epsilon for group in plan.all_groups[3:]] == [0.5, 0.25, 0.125, 0.0625, 0.0625]
    assert [mechanism.epsilon for mechanism in plan.group_mechanisms] == [
        group.epsilon for group in plan.all_groups
    ]
    assert Plan.from_json(plan.to_json()) == plan


@pytest.mark.parametrize(
    ("budget", "tier"),
    [(5.0, 0), (1.0, 0), (0.99, 1), (0.5, 1), (0.49, 2), (0.25, 2), (0.2, None), (math.nan, None)],
)
def test_a_personal_budget_buys_the_largest_tier_that_it_covers(
    budget: float, tier: int | None
) -> None:
    plan = Plan.from_dict({**SHORT, "tiers": [{"epsilon": 0.5}, {"epsilon": 0.25}]})
    assert plan.tier_for_budget(budget) == tier


# Refusals


@pytest.mark.parametrize(
    ("key", "meant"), [("epsilonn", "epsilon"), ("hihg", "high"), ("categorys", "categories")]
)
def test_an_unknown_key_is_refused_with_the_one_that_was_meant(key: str, meant: str) -> None:
    with pytest.raises(
        InvalidParameter, match=f"received '{key}', did you mean '{meant}'"
    ) as fault:
        Plan.from_dict({**SHORT, key: 1})
    assert named(fault, "plan")


def test_an_unknown_key_like_no_other_is_refused_as_it_is() -> None:
    with pytest.raises(InvalidParameter, match=r"received 'zzz'$"):
        Plan.from_dict({**SHORT, "zzz": 1})


GROUP = {"epsilon": 1.0, "reports": 1, "share": 1.0}
HALF = {"epsilon": 1.0, "reports": 1, "share": 0.5}

BAD_PLANS: list[tuple[str, dict[str, Any]]] = [
    ("mechanism", {"mechanism": "piecewize"}),
    ("protocol", {"protocol": "dpa"}),
    ("epsilon", {"epsilon": 0}),
    ("epsilon", {"epsilon": -1}),
    ("epsilon", {"epsilon": math.nan}),
    ("epsilon", {"epsilon": math.inf}),
    ("epsilon", {"epsilon": "1"}),
    ("epsilon", {"epsilon": True}),
    ("epsilon", {"epsilon": None}),
    ("epsilon", {"epsilon": 17}),
    ("epsilon", {"epsilon": 10**400}),
    ("min_epsilon", {"min_epsilon": 2.0}),
    ("min_epsilon", {"min_epsilon": 0}),
    ("min_epsilon", {"min_epsilon": -0.5}),
    ("min_epsilon", {"min_epsilon": math.nan}),
    ("min_epsilon", {"min_epsilon": 0.5, "groups": [GROUP]}),
    ("low", {"low": 10}),
    ("low", {"low": 11}),
    ("low", {"low": math.nan}),
    ("low", {"low": -math.inf}),
    ("low", {"low": "0"}),
    ("low", {"low": -1e308, "high": 1e308}),
    ("high", {"high": math.inf}),
    ("high", {"high": [1]}),
    ("step", {"step": 0}),
    ("step", {"step": -1}),
    ("step", {"step": 3}),
    ("step", {"step": math.inf}),
    ("step", {"step": "1"}),
    *(("unit", {"unit": unit}) for unit in ("", " s", "s ", "s\n", "\u202e", "3 km", "x" * 17, 5)),
    ("categories", {"categories": ["a", "b"]}),
    ("cells", {"cells": 1}),
    ("cells", {"cells": 0}),
    ("cells", {"cells": -4}),
    ("cells", {"cells": 2.5}),
    ("cells", {"cells": "64"}),
    ("groups", {"groups": []}),
    ("groups", {"groups": {}}),
    ("groups", {"groups": [1]}),
    ("groups", {"groups": [{**GROUP, "reports": 2}]}),
    ("groups", {"groups": [{**GROUP, "epsilon": 0.25, "reports": 5}]}),
    ("groups", {"groups": [{**GROUP, "epsilon": 0.3333333333333334, "reports": 3}]}),
    ("groups", {"groups": [HALF]}),
    ("groups", {"groups": [HALF, HALF, HALF]}),
    ("groups", {"groups": [{**HALF, "epsilon": 0.5}, HALF]}),
    ("reports", {"groups": [{**GROUP, "reports": 0}]}),
    ("reports", {"groups": [{**GROUP, "reports": 1.5}]}),
    ("share", {"groups": [{**GROUP, "share": 0}]}),
    ("share", {"groups": [{**GROUP, "share": 1.5}]}),
    ("share", {"groups": [{**GROUP, "share": math.nan}]}),
    ("share", {"groups": [{"epsilon": 1.0, "reports": 1}]}),
    ("did you mean 'share'", {"groups": [{**GROUP, "shares": 1}]}),
    ("epsilon", {"groups": [{**GROUP, "epsilon": -1}]}),
    ("tiers", {"tiers": {}}),
    ("tiers", {"tiers": [0.5]}),
    ("tiers", {"tiers": [{"epsilon": 1.0}]}),
    ("tiers", {"tiers": [{"epsilon": 2.0}]}),
    ("tiers", {"tiers": [{"epsilon": 0.5}, {"epsilon": 0.5}]}),
    ("epsilon", {"tiers": [{"min_epsilon": 0.5}]}),
    ("epsilon", {"tiers": [{"epsilon": 0}]}),
    ("did you mean 'epsilon'", {"tiers": [{"epsilon": 0.5, "epsilom": 1}]}),
    ("min_epsilon", {"tiers": [{"epsilon": 0.5, "min_epsilon": 0.75}]}),
    ("groups", {"tiers": [{"epsilon": 0.5, "groups": [GROUP]}]}),
    ("min_epsilon", {"protocol": "baseline", "min_epsilon": 0.75}),
    ("groups", {"protocol": "baseline", "groups": [GROUP]}),
    ("groups", {"protocol": "baseline", "groups": [GROUP, GROUP]}),
    ("groups", {"protocol": "baseline", "groups": [{**HALF, "epsilon": 0.5}] * 2}),
    (
        "groups",
        {"protocol": "baseline", "groups": [{**GROUP, "epsilon": 0.25}, {**GROUP, "epsilon": 0.5}]},
    ),
]


@pytest.mark.parametrize(("parameter", "keys"), BAD_PLANS)
def test_a_bad_plan_is_refused_in_one_line_that_names_the_key(
    parameter: str, keys: dict[str, Any]
) -> None:
    assert_refused_by_name(parameter, {**SHORT, **keys})


@pytest.mark.parametrize(
    ("parameter", "keys"),
    [
        ("categories", {"categories": ["a", "b", "a"]}),
        ("categories", {"categories": ["a"]}),
        ("categories", {"categories": []}),
        ("categories", {"categories": "abc"}),
        ("categories", {"categories": ["a", ""]}),
        ("categories", {"categories": ["a", 1]}),
        ("categories", {"categories": None}),
        ("low and high", {"low": 0, "high": 1}),
        ("step", {"step": 1}),
        ("unit", {"unit": "s"}),
        ("cells", {"cells": 4}),
    ],
)
def test_bad_categories_are_refused_in_one_line_that_names_the_key(
    parameter: str, keys: dict[str, Any]
) -> None:
    assert_refused_by_name(parameter, {**LETTERS, **keys})


@pytest.mark.parametrize("missing", ["mechanism", "epsilon", "low", "high"])
def test_a_missing_key_is_named(missing: str) -> None:
    with pytest.raises(InvalidParameter, match=missing):
        Plan.from_dict({key: value for key, value in SHORT.items() if key != missing})


@pytest.mark.parametrize("text", ["", "{", "[]", "1", "null", "[" * 100_000, "1" * 5000])
def test_text_that_is_no_json_object_is_refused(text: str) -> None:
    with pytest.raises(InvalidParameter) as fault:
        Plan.from_json(text)
    assert named(fault, "plan")


def test_json_numbers_that_are_none_are_refused() -> None:
    text = json.dumps(SHORT).replace("1.0", "NaN")
    with pytest.raises(InvalidParameter, match="epsilon must be a finite number"):
        Plan.from_json(text)


@pytest.mark.parametrize(("epsilon", "reports"), [(0.1, 3), (0.06, 5), (0.05, 6), (0.3, 1)])
def test_a_group_may_spend_all_of_epsilon(epsilon: float, reports: int) -> None:
    group = {"epsilon": epsilon, "reports": reports, "share": 1.0}
    plan = Plan.from_dict({**SHORT, "epsilon": 0.3, "groups": [group]})
    assert plan.groups[0].spent == Fraction(3, 10)


def test_the_baseline_may_spend_all_of_epsilon() -> None:
    groups = [{**GROUP, "epsilon": 0.2}, {**GROUP, "epsilon": 0.1}]
    keys = {**SHORT, "protocol": "baseline", "epsilon": 0.3, "groups": groups}
    assert sum(group.spent for group in Plan.from_dict(keys).groups) == Fraction(3, 10)


def test_a_tier_built_by_hand_is_checked_as_well() -> None:
    greedy = Tier(0.5, (Group(0.5, 2, 1.0),))
    with pytest.raises(InvalidParameter, match="must spend at most epsilon"):
        dataclasses.replace(Plan.from_dict(SHORT), tiers=(greedy,))


def test_a_key_named_twice_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="'low' twice"):
        Plan.from_json('{"mechanism": "piecewise", "epsilon": 1, "low": 0, "low": 1, "high": 2}')


@pytest.mark.parametrize(("epsilon", "smallest"), [(1.0, 0.0625), (0.05, 0.05)])
def test_the_papers_setting_has_a_name_that_is_saved_as_a_number(
    epsilon: float, smallest: float
) -> None:
    named = Plan.new(epsilon=epsilon, min_epsilon="paper", low=0, high=1)
    assert named == Plan.new(epsilon=epsilon, min_epsilon=smallest, low=0, high=1)
    assert named.to_dict()["min_epsilon"] == smallest


def test_other_names_of_settings_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="min_epsilon must be a finite number"):
        Plan.new(epsilon=1.0, min_epsilon="papers", low=0, high=1)


def test_a_plan_without_a_unit_keeps_its_fingerprint_and_one_with_it_has_another() -> None:
    keys = {"mechanism": "piecewise-integer", "epsilon": 1.0, "low": 0, "high": 86400}
    plain, in_seconds, in_minutes = (
        Plan.from_dict({**keys, **unit}) for unit in ({}, {"unit": "s"}, {"unit": "min"})
    )
    # The fingerprint that plans of these keys had before plans had units.
    assert plain.fingerprint.startswith("2ea63942abf54356")
    assert "unit" not in plain.to_dict()
    assert Plan.from_json(in_seconds.to_json()) == in_seconds
    assert len({plan.fingerprint for plan in (plain, in_seconds, in_minutes)}) == 3
