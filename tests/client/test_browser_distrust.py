"""The browser's client trusts neither its page's options nor its collector's answers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from support.browser_client import (
    ALL_ROUTES,
    collector_fixture,
    ledger,
    policy,
    report,
)
from support.collector_protocol import Body
from support.scripted_collector import ScriptedCollector
from unpoison import Plan

if TYPE_CHECKING:
    from playwright.sync_api import Page

collector = collector_fixture()


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"value": math.nan}, "invalid-value"),
        ({"value": -math.inf}, "invalid-value"),
        ({"value": "31415.926535"}, "invalid-value"),
        ({"value": None}, "invalid-value"),
        ({"value": "31415.926535", "policy": {"categories": ["tea", "coffee"]}}, "invalid-value"),
        ({"policy": None}, "invalid-policy"),
        ({"policy": {}}, "invalid-policy"),
        ({"policy": {"low": 0}}, "invalid-policy"),
        ({"policy": {"low": 0, "high": math.inf}}, "invalid-policy"),
        ({"policy": {"low": 1, "high": 1}}, "invalid-policy"),
        ({"policy": {"low": -1e308, "high": 1e308}}, "invalid-policy"),
        ({"policy": policy(step=0)}, "invalid-policy"),
        ({"policy": policy(step=7)}, "invalid-policy"),
        ({"policy": policy(step="1")}, "invalid-policy"),
        ({"policy": policy(categories=["tea"])}, "invalid-policy"),
        ({"value": "tea", "policy": {"categories": ["tea", "tea"]}}, "invalid-policy"),
        ({"value": "tea", "policy": {"categories": ["tea", ""]}}, "invalid-policy"),
        ({"value": "tea", "policy": {"categories": "tea"}}, "invalid-policy"),
        ({"policy": policy(maxepsilon=1)}, "invalid-policy"),
        ({"policy": policy(maxEpsilon=0)}, "invalid-policy"),
        ({"policy": policy(maxEpsilon="1")}, "invalid-policy"),
        ({"policy": policy(lifetimeEpsilon=math.nan)}, "invalid-policy"),
        ({"campaign": None}, "invalid-request"),
        ({"campaign": "../campaigns"}, "invalid-request"),
        ({"collector": "javascript:alert(1)"}, "invalid-request"),
    ],
)
def test_mistakes_of_the_page_are_found_before_any_request(
    page: Page, collector: ScriptedCollector, options: dict[str, Any], code: str
) -> None:
    outcome = report(page, **options)
    assert outcome["code"] == code
    assert "31415" not in outcome["message"]
    assert collector.routes() == []
    assert ledger(page) == {}


def change(**keys: Any) -> Callable[[Body], None]:
    return lambda answer: answer.update(keys)


def change_plan(**keys: Any) -> Callable[[Body], None]:
    return lambda answer: answer["plan"].update(keys)


def change_group(**keys: Any) -> Callable[[Body], None]:
    return lambda answer: answer["plan"]["groups"][1].update(keys)


def change_tier(**keys: Any) -> Callable[[Body], None]:
    return lambda answer: answer["plan"]["tiers"][0].update(keys)


GROUP = {"epsilon": 0.5, "reports": 1, "share": 1.0}
PLAN_LIES = {
    "another campaign": change(id="other"),
    "no plan": change(plan=None),
    "no fingerprint": change(fingerprint=None),
    "unknown mechanism": change_plan(mechanism="piecewise"),
    "mechanism of objects": change_plan(mechanism="constructor"),
    "another kind of mechanism": change_plan(mechanism="k-rr-integer"),
    "unknown protocol": change_plan(protocol="trust me"),
    "unknown key": change_plan(bonus_reports=3),
    "another low": change_plan(low=1),
    "another high": change_plan(high=31416),
    "a step": change_plan(step=1),
    "no step": change_plan(step=None),
    "range of text": change_plan(low="0", high="86400"),
    "categories beside a range": change_plan(categories=["tea", "coffee"]),
    "no cells": change_plan(cells=None),
    "one cell": change_plan(cells=1),
    "too many cells": change_plan(cells=2**20 + 1),
    "half a cell": change_plan(cells=10.5),
    "cells of text": change_plan(cells="4096"),
    "no budget": change_plan(epsilon=None),
    "negative budget": change_plan(epsilon=-1),
    "huge budget": change_plan(epsilon=17),
    "tiny budget": change_plan(epsilon=1e-5),
    "budget of text": change_plan(epsilon="1"),
    "no groups": change_plan(groups=[]),
    "groups of numbers": change_plan(groups=[1]),
    "too many groups": change_plan(groups=[GROUP] * 65),
    "more reports than the budget": change_group(reports=3),
    "more than the budget by the last digit": change_group(epsilon=0.5000000000000001),
    "more than the budget where floats see none": change_group(
        epsilon=0.33333333333333337, reports=3
    ),
    "no reports": change_group(reports=0),
    "half a report": change_group(reports=1.5),
    "negative reports": change_group(reports=-2),
    "reports of text": change_group(reports="2"),
    "no share": change_group(share=0),
    "unknown key of a group": change_group(extra=1),
    "a baseline of three": change_plan(
        protocol="baseline", groups=[{**GROUP, "epsilon": 0.25}] * 3, tiers=[]
    ),
    "a baseline with two reports": change_plan(
        protocol="baseline", groups=[{**GROUP, "epsilon": 0.25, "reports": 2}, GROUP], tiers=[]
    ),
    "a baseline that spends twice": change_plan(
        protocol="baseline", groups=[GROUP, {**GROUP, "epsilon": 0.75}], tiers=[]
    ),
    "tiers of numbers": change_plan(tiers=[1]),
    "tiers of text": change_plan(tiers="none"),
    "unknown key of a tier": change_tier(mechanism="piecewise"),
    "a tier that spends more": change_tier(groups=[{**GROUP, "reports": 2}]),
    "a tier without budget": change_tier(epsilon=None),
    "weights beyond 53 bits": lambda answer: answer["plan"].update(
        cells=2**20, epsilon=16, groups=[{**GROUP, "epsilon": 16}]
    ),
}


@pytest.mark.parametrize("lie", PLAN_LIES)
def test_a_lie_about_the_plan_is_refused_before_anything_is_sent(
    page: Page, collector: ScriptedCollector, lie: str
) -> None:
    collector.campaign_lie = PLAN_LIES[lie]
    outcome = report(page, policy=policy(maxEpsilon=100, lifetimeEpsilon=100))
    assert outcome["code"] == "plan-refused"
    assert "31415" not in outcome["message"]
    assert collector.routes() == ["GET k3v9"]
    assert ledger(page) == {}


@pytest.mark.parametrize(
    "names", [["c", "t"], ["t"], ["t", "c", "m"], ["t", ""], ["t", ["c"]], None, "tc"]
)
def test_other_categories_are_refused(
    page: Page, collector: ScriptedCollector, names: object
) -> None:
    collector.plan = Plan.new("k-rr-integer", 1.0, 0.25, categories=["t", "c"])
    collector.campaign_lie = change_plan(categories=names)
    outcome = report(page, value="t", policy={"categories": ["t", "c"]})
    assert outcome["code"] == "plan-refused"
    assert collector.routes() == ["GET k3v9"]


@pytest.mark.parametrize("state", ["draft", "closed", None])
def test_a_campaign_that_is_not_open_is_not_reported_to(
    page: Page, collector: ScriptedCollector, state: str | None
) -> None:
    collector.campaign_lie = change(state=state)
    assert report(page)["code"] == "campaign-not-open"
    assert collector.routes() == ["GET k3v9"]


TICKET_LIES = {
    "another campaign": change(campaign="other"),
    "another plan": change(fingerprint="0" * 64),
    "another tier": change(tier=1),
    "a tier of text": change(tier="0"),
    "no ticket": change(ticket=""),
    "a ticket of numbers": change(ticket=7),
    "a huge ticket": change(ticket="t" * 5000),
    "no groups": change(groups=[]),
    "groups of numbers": change(groups=[2]),
    "an unknown group": change(groups=[{"group": 9, "reports": 4}]),
    "a group of another tier": change(groups=[{"group": 3, "reports": 1}]),
    "a group of text": change(groups=[{"group": "2", "reports": 4}]),
    "more reports": change(groups=[{"group": 2, "reports": 5}]),
    "fewer reports": change(groups=[{"group": 2, "reports": 3}]),
    "no reports": change(groups=[{"group": 2}]),
    "two groups": change(groups=[{"group": 0, "reports": 1}, {"group": 1, "reports": 2}]),
    "one group twice": change(groups=[{"group": 0, "reports": 1}] * 2),
}


@pytest.mark.parametrize("lie", TICKET_LIES)
def test_a_lie_about_the_ticket_is_refused_before_anything_is_drawn(
    page: Page, collector: ScriptedCollector, lie: str
) -> None:
    collector.ticket_lie = TICKET_LIES[lie]
    assert report(page)["code"] == "ticket-refused"
    assert collector.routes() == ALL_ROUTES[:2]
    assert ledger(page)["k3v9"].keys() == {"device", "fingerprint", "tier"}


@pytest.mark.parametrize("groups", [[0], [1], [0, 0], [0, 1, 0], [1, 2]])
def test_a_lie_about_the_baseline_s_groups_is_refused(
    page: Page, collector: ScriptedCollector, groups: list[int]
) -> None:
    collector.plan = Plan.new("piecewise-integer", 1.0, 0.1, low=0, high=86400, protocol="baseline")
    collector.ticket_lie = change(groups=[{"group": group, "reports": 1} for group in groups])
    assert report(page)["code"] == "ticket-refused"
    assert collector.routes() == ALL_ROUTES[:2]
