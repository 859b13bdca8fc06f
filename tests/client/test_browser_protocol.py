"""The browser's client and its collector: requests, retries, renewed tickets and reloads."""

from __future__ import annotations

import re
from email.utils import formatdate
from time import time
from typing import TYPE_CHECKING, Any

import pytest

from support.browser_client import (
    ALL_ROUTES,
    ATTEMPTS,
    SECRET_VALUE,
    collector_fixture,
    ledger,
    ledger_text,
    policy,
    report,
)
from support.scripted_collector import Fault, ScriptedCollector
from unpoison import Plan

if TYPE_CHECKING:
    from playwright.sync_api import Page

collector = collector_fixture()


def test_a_report_takes_three_requests(page: Page, collector: ScriptedCollector) -> None:
    receipt = report(page)
    assert receipt == {
        "campaign": "k3v9",
        "groups": [2],
        "reports": 4,
        "epsilon": "1",
        "spent": "1",
        "already": False,
        "sleeps": [],
    }
    assert collector.routes() == ALL_ROUTES
    _, ticket, sent = collector.protocol_requests()
    assert set(ticket.json) == {"device", "invite", "tier"}
    assert (ticket.json["invite"], ticket.json["tier"]) == ("invite", 0)
    assert re.fullmatch("[0-9a-f]{64}", ticket.json["device"])
    assert sent.json.keys() == {"ticket", "device", "values"}
    assert (sent.json["ticket"], sent.json["device"]) == ("ticket-for-k3v9", ticket.json["device"])
    assert len(sent.json["values"]) == 4
    assert all(isinstance(cell, int) and 0 <= cell < 4096 for cell in sent.json["values"])


def test_an_open_campaign_is_sent_no_invite(page: Page, collector: ScriptedCollector) -> None:
    collector.access = "open"
    assert report(page)["reports"] == 4
    assert collector.sent("POST tickets")[0].json.keys() == {"device", "tier"}


def test_a_campaign_with_invites_is_not_asked_without_one(
    page: Page, collector: ScriptedCollector
) -> None:
    assert report(page, invite=None)["code"] == "invalid-invite"
    assert collector.routes() == ["GET k3v9"]


def test_in_the_baseline_both_groups_are_reported_to(
    page: Page, collector: ScriptedCollector
) -> None:
    collector.plan = Plan.new(
        "square-wave-integer", 1.0, 0.1, low=0, high=86400, protocol="baseline"
    )
    receipt = report(page)
    assert (receipt["groups"], receipt["reports"], receipt["epsilon"]) == ([0, 1], 2, "1")


def test_categories_are_reported_by_number(page: Page, collector: ScriptedCollector) -> None:
    names = ["tea", "coffee", "__proto__"]
    collector.plan = Plan.new("k-rr-integer", 1.0, 0.25, categories=names)
    receipt = report(page, value="__proto__", policy={"categories": names})
    assert receipt["reports"] == 4
    assert set(collector.sent("POST reports")[0].json["values"]) <= {0, 1, 2}


def test_a_smaller_own_budget_takes_the_smaller_tier(
    page: Page, collector: ScriptedCollector
) -> None:
    receipt = report(page, policy=policy(maxEpsilon=0.7))
    assert (receipt["groups"], receipt["epsilon"]) == ([3], "0.5")
    assert collector.sent("POST tickets")[0].json["tier"] == 1


def test_a_plan_that_spends_exactly_its_budget_is_no_lie(
    page: Page, collector: ScriptedCollector
) -> None:
    """In floats, three times 0.1 is more than 0.3."""
    collector.plan = Plan.new("piecewise-integer", 0.3, 0.1, low=0, high=86400)
    receipt = report(page, policy=policy(maxEpsilon=0.3, lifetimeEpsilon=0.3))
    assert (receipt["reports"], receipt["epsilon"]) == (3, "0.3")


@pytest.mark.parametrize("value", [-5.0, 1e300])
def test_numbers_outside_the_range_are_clamped(page: Page, value: float) -> None:
    assert report(page, value=value)["reports"] == 4


def test_the_value_is_in_no_request_and_not_in_the_storage(
    page: Page, collector: ScriptedCollector
) -> None:
    collector.faults = {"POST reports": [Fault(503)] * ATTEMPTS}
    assert report(page)["code"] == "unavailable"
    share = SECRET_VALUE / 86400
    places = [*map(repr, collector.requests), str(ledger_text(page))]
    derived = [SECRET_VALUE, share, 2 * share - 1]
    for text in [repr(number)[:8] for number in derived]:
        assert not any(text in text_sent for text_sent in places)
    assert page.evaluate("() => localStorage.length + sessionStorage.length") == 0


@pytest.mark.parametrize("route", ALL_ROUTES)
@pytest.mark.parametrize("fault", [Fault(), Fault(500), Fault(503), Fault(429), Fault(408)])
def test_a_request_that_failed_is_repeated_to_the_byte(
    page: Page, collector: ScriptedCollector, route: str, fault: Fault
) -> None:
    collector.faults = {route: [fault, fault]}
    assert report(page)["reports"] == 4
    assert len(collector.sent(route)) == 3
    assert len({request.body for request in collector.sent(route)}) == 1


def test_waits_grow_and_are_spread(page: Page, collector: ScriptedCollector) -> None:
    collector.faults = {"POST tickets": [Fault()] * ATTEMPTS}
    outcome = report(page)
    assert (outcome["code"], len(collector.sent("POST tickets"))) == ("unavailable", ATTEMPTS)
    shares = [wait / (0.5 * 2**turn) for turn, wait in enumerate(outcome["sleeps"])]
    assert len(shares) == len(set(shares)) == ATTEMPTS - 1
    assert all(0.5 <= share < 1 for share in shares)


def test_retry_after_is_honoured(page: Page, collector: ScriptedCollector) -> None:
    started = time()
    date = formatdate(started + 30, usegmt=True)
    faults = [Fault(429, headers={"Retry-After": wait}) for wait in ("7", date, "soon")]
    collector.faults = {"POST tickets": faults}
    first, second, third = report(page)["sleeps"]
    assert first == 7
    # A date has whole seconds, and the clock goes on until the page reads it.
    assert 29 - (time() - started) <= second <= 30
    assert third <= 2


def test_a_wait_that_is_too_long_is_left_to_the_page(
    page: Page, collector: ScriptedCollector
) -> None:
    collector.faults = {"GET k3v9": [Fault(503, headers={"Retry-After": "3600"})]}
    assert report(page) == {
        "code": "unavailable",
        "message": "the collector does not answer now; try again later",
        "sleeps": [],
    }


@pytest.mark.parametrize("status", [400, 403, 404, 409, 413, 422])
def test_a_refusal_is_final(page: Page, collector: ScriptedCollector, status: int) -> None:
    collector.faults = {"POST tickets": [Fault(status, "invite-used")]}
    assert report(page)["code"] == "invite-used"
    assert collector.routes() == ALL_ROUTES[:2]


def test_a_report_is_not_sent_on_to_elsewhere(page: Page, collector: ScriptedCollector) -> None:
    elsewhere = Fault(307, headers={"Location": "/v1/campaigns/other/reports"})
    collector.faults = {"POST reports": [elsewhere]}
    assert report(page)["code"] == "answer-refused"
    assert collector.routes() == ALL_ROUTES


@pytest.mark.parametrize("code", ["ticket-expired", "invalid-ticket"])
def test_an_expired_ticket_is_renewed_for_the_same_cells(
    page: Page, collector: ScriptedCollector, code: str
) -> None:
    collector.faults = {"POST reports": [Fault(403, code)]}
    names = iter(["old", "new"])
    collector.ticket_lie = lambda answer: answer.update(ticket=next(names))
    assert report(page)["reports"] == 4
    assert collector.routes() == [*ALL_ROUTES, *ALL_ROUTES]
    first, second = (request.json for request in collector.sent("POST reports"))
    assert (first["ticket"], second["ticket"]) == ("old", "new")
    assert (first["values"], first["device"]) == (second["values"], second["device"])


def test_a_renewed_ticket_is_for_the_same_groups_and_plan(
    page: Page, collector: ScriptedCollector
) -> None:
    collector.faults = {"POST reports": [Fault(403, "ticket-expired")] * 2}
    others = iter([2, 1])
    collector.before_answer = lambda request: setattr(
        collector, "group", next(others) if request.route == "GET k3v9" else collector.group
    )
    assert report(page)["code"] == "ticket-refused"
    collector.plan = Plan.new("piecewise-integer", 0.5, 0.25, low=0, high=86400)
    collector.before_answer = lambda request: None
    assert report(page)["code"] == "plan-refused"
    assert len({request.body for request in collector.sent("POST reports")}) == 1


@pytest.mark.parametrize("code", ["<b>", "A" * 99, "", None, ["a"]])
def test_a_refusal_in_other_words_is_not_repeated_to_the_page(
    page: Page, collector: ScriptedCollector, code: Any
) -> None:
    collector.faults = {"POST tickets": [Fault(403, code)]}
    assert report(page)["code"] == "answer-refused"


def test_a_reload_sends_the_same_cells_until_they_are_accepted(
    page: Page, collector: ScriptedCollector
) -> None:
    collector.faults = {"POST reports": [Fault()] * ATTEMPTS}
    assert report(page)["code"] == "unavailable"
    page.reload()
    receipt = report(page, value=1.0)
    assert (receipt["reports"], receipt["already"]) == (4, False)
    bodies = {request.body for request in collector.sent("POST reports")}
    assert (len(collector.sent("POST reports")), len(bodies)) == (ATTEMPTS + 1, 1)
    assert len(collector.sent("POST tickets")) == 1


def test_a_campaign_that_accepted_is_never_reported_to_again(
    page: Page, collector: ScriptedCollector
) -> None:
    first = report(page)
    page.reload()
    assert report(page, value=1.0) == {**first, "already": True}
    assert collector.routes() == ALL_ROUTES
    entry = {"groups": [{"group": 2, "reports": 4}], "epsilon": "1", "accepted": True}
    assert ledger(page) == {"k3v9": entry}


def test_a_device_that_lost_its_ticket_asks_as_the_same_device(
    page: Page, collector: ScriptedCollector
) -> None:
    collector.faults = {"POST tickets": [Fault()] * ATTEMPTS}
    assert report(page)["code"] == "unavailable"
    page.reload()
    assert report(page)["reports"] == 4
    assert len({request.body for request in collector.sent("POST tickets")}) == 1


def test_each_campaign_sees_another_device(page: Page, collector: ScriptedCollector) -> None:
    report(page, campaign="one")
    report(page, campaign="two")
    devices = [request.json["device"] for request in collector.sent("POST tickets")]
    assert len(set(devices)) == 2
