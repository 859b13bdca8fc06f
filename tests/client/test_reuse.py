"""Repeated questions: cells that a collector has had are sent again, or drawn and paid for anew."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest

from support.collector_protocol import Body, campaign_answer, ticket_answer
from support.fake_collector import HonestCollector
from unpoison import BudgetExceeded, InvalidParameter, Plan
from unpoison.client import Device, Ledger, Policy
from unpoison.client.memoised import draw_parameters, possible_parameters
from unpoison.client.receipt import Receipt

PLAN = Plan.new("piecewise-integer", epsilon=1.0, min_epsilon=0.25, low=0, high=100)
COLLECTOR = "https://collector.example"
REUSE = Policy(low=0, high=100, question="age", reuse=True)


class RepeatingCollector(HonestCollector):
    """Asks the same in one campaign after the other; `group` is the one that it assigns."""

    campaign = ""

    def answer(self, path: str, request: Body) -> Body:
        self.campaign = path.split("/")[3]
        return super().answer(path, request)

    def _campaign(self, request: Body) -> Body:
        return campaign_answer(self.plan, self.campaign, self.access)

    def _ticket(self, request: Body) -> Body:
        self.tickets += 1
        name = f"ticket {self.tickets}"
        return ticket_answer(self.plan, self.campaign, request["tier"], self.group, name)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger(tmp_path / "ledger.db") as opened:
        yield opened


@pytest.fixture
def collector() -> RepeatingCollector:
    return RepeatingCollector(PLAN, group=0)


def report(
    ledger: Ledger,
    collector: RepeatingCollector,
    campaign: str,
    policy: Policy = REUSE,
    address: str = COLLECTOR,
) -> Receipt:
    return Device(address, policy, ledger, collector).report(campaign, 42.0)


def cells(ledger: Ledger, campaign: str, address: str = COLLECTOR) -> tuple[int, ...]:
    entry = ledger.entry(address, campaign)
    assert entry is not None
    return entry.draw.cells


def test_the_same_question_gets_the_same_cells_and_spends_nothing_more(
    ledger: Ledger, collector: RepeatingCollector
) -> None:
    receipts = [report(ledger, collector, f"campaign{n}") for n in range(20)]
    assert [receipt.epsilon for receipt in receipts] == [1] + [0] * 19
    assert receipts[-1].total == 1
    assert len({cells(ledger, f"campaign{n}") for n in range(20)}) == 1
    assert len(collector.accepted) == 20, "each campaign has a device and a ticket of its own"
    assert len({tuple(values) for values in collector.accepted.values()}) == 1


def test_another_group_is_another_draw_that_is_paid_for(
    ledger: Ledger, collector: RepeatingCollector
) -> None:
    report(ledger, collector, "first")
    collector.group = 1
    assert report(ledger, collector, "second").epsilon == 1
    assert len(cells(ledger, "second")) == 2
    collector.group = 0
    assert report(ledger, collector, "third").epsilon == 0
    assert cells(ledger, "third") == cells(ledger, "first")


@pytest.mark.parametrize(
    "policy",
    [
        Policy(low=0, high=100),
        Policy(low=0, high=100, question="age"),
        Policy(low=0, high=100, question="height", reuse=True),
    ],
    ids=["no question", "not allowed", "another question"],
)
def test_without_the_policy_s_word_every_campaign_is_paid_for(
    ledger: Ledger, collector: RepeatingCollector, policy: Policy
) -> None:
    report(ledger, collector, "first")
    receipt = report(ledger, collector, "second", policy)
    assert [receipt.epsilon, receipt.total] == [Fraction(1), Fraction(2)]


def test_another_collector_never_gets_the_same_cells(
    ledger: Ledger, collector: RepeatingCollector
) -> None:
    """They would tell two collectors that they have the same device before them."""
    report(ledger, collector, "first")
    assert report(ledger, collector, "first", address="https://other.example").epsilon == 1


@pytest.mark.parametrize(
    "plan",
    [
        Plan.new("square-wave-integer", epsilon=1.0, min_epsilon=0.25, low=0, high=100),
        Plan.new("piecewise-integer", epsilon=0.5, min_epsilon=0.25, low=0, high=100),
        Plan.new("piecewise-integer", epsilon=1.0, min_epsilon=0.25, low=0, high=100, cells=512),
    ],
    ids=["mechanism", "budget", "cells"],
)
def test_another_mechanism_is_another_draw(
    ledger: Ledger, collector: RepeatingCollector, plan: Plan
) -> None:
    report(ledger, collector, "first")
    collector.plan = plan
    assert report(ledger, collector, "second").epsilon == Fraction(plan.epsilon)


def test_a_device_without_budget_takes_part_only_if_no_group_needs_a_draw(
    ledger: Ledger, collector: RepeatingCollector
) -> None:
    """One that reported in some groups only would bias which groups report."""
    poor = Policy(
        low=0, high=100, lifetime_epsilon=3, collector_epsilon=3, question="age", reuse=True
    )
    for group in (0, 1):
        collector.group = group
        report(ledger, collector, f"group{group}", poor)
    poorer = Policy(low=0, high=100, lifetime_epsilon=2, question="age", reuse=True)
    collector.group = 0
    with pytest.raises(BudgetExceeded, match="lifetime_epsilon"):
        report(ledger, collector, "declined", poorer)
    assert collector.tickets == 2
    collector.group = 2
    report(ledger, collector, "group2", poor)
    for group in (0, 1, 2):
        collector.group = group
        assert report(ledger, collector, f"again{group}", poor).total == 3


def test_two_devices_of_one_group_have_equal_parameters_whatever_else_the_plan_says() -> None:
    tiers = Plan.new(
        "piecewise-integer",
        1.0,
        0.25,
        low=0,
        high=100,
        tiers=[{"epsilon": 0.5, "min_epsilon": 0.5}],
    )
    assert draw_parameters(PLAN, (0,)) == draw_parameters(tiers, (0,))
    assert PLAN.fingerprint != tiers.fingerprint
    assert len(possible_parameters(PLAN, 0)) == 3
    both = Plan.new("piecewise-integer", epsilon=1.0, low=0, high=100, protocol="baseline")
    assert len(possible_parameters(both, 0)) == 1


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"reuse": True}, "reuse needs a question"),
        ({"question": ""}, "question must be a name"),
        ({"question": "a" * 201}, "question must be a name of 1 to 200 characters"),
        ({"collector_epsilon": 0}, "collector_epsilon must be positive"),
    ],
)
def test_policies_that_make_no_sense_are_refused(keys: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        Policy(low=0, high=1, **keys)  # type: ignore[arg-type]
