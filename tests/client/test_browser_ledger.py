"""The browser's client and its ledger: nothing is drawn twice, overspent or sent unrecorded."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from support.browser_client import (
    ALL_ROUTES,
    ATTEMPTS,
    collector_fixture,
    finish,
    ledger,
    open_page,
    policy,
    report,
    start,
    write_ledger,
)
from support.collector_protocol import Request
from support.scripted_collector import Fault, ScriptedCollector
from support.waiting import HANG_SECONDS
from unpoison import Plan

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Page

collector = collector_fixture()


def test_the_lifetime_budget_is_counted_exactly_over_all_campaigns(
    page: Page, collector: ScriptedCollector
) -> None:
    collector.plan = Plan.new("piecewise-integer", 0.1, 0.1, low=0, high=86400)
    own = policy(lifetimeEpsilon=0.3)
    spent = [report(page, campaign=name, policy=own)["spent"] for name in ("one", "two", "three")]
    assert spent == ["0.1", "0.2", "0.3"]
    assert report(page, campaign="four", policy=own)["code"] == "budget-exceeded"
    assert len(collector.sent("POST tickets")) == 3
    assert "four" not in ledger(page)


def test_what_is_left_of_the_lifetime_budget_does_not_change_the_tier(
    page: Page, collector: ScriptedCollector
) -> None:
    """A smaller tier would tell what was spent elsewhere; the page declines instead."""
    own = policy(lifetimeEpsilon=1.5, collectorEpsilon=1.5)
    assert report(page, campaign="one", policy=own)["spent"] == "1"
    refused = report(page, campaign="two", policy=own)
    assert (refused["code"], "lifetimeEpsilon" in refused["message"]) == ("budget-exceeded", True)
    assert [request.json["tier"] for request in collector.sent("POST tickets")] == [0]
    assert "two" not in ledger(page)


def test_one_collector_cannot_take_all_of_the_lifetime_budget(
    page: Page, collector: ScriptedCollector
) -> None:
    """Half of it by default."""
    own = policy(lifetimeEpsilon=4)
    spent = [report(page, campaign=name, policy=own)["spent"] for name in ("one", "two")]
    assert spent == ["1", "2"]
    refused = report(page, campaign="three", policy=own)
    assert (refused["code"], "collectorEpsilon" in refused["message"]) == ("budget-exceeded", True)
    more = policy(lifetimeEpsilon=4, collectorEpsilon=3)
    assert report(page, campaign="three", policy=more)["spent"] == "3"


def test_a_campaign_that_asks_for_too_much_is_refused(
    page: Page, collector: ScriptedCollector
) -> None:
    assert report(page, policy=policy(maxEpsilon=0.4))["code"] == "budget-exceeded"
    assert collector.routes() == ["GET k3v9"]


def test_cells_that_were_drawn_are_not_sent_under_a_stricter_policy(
    page: Page, collector: ScriptedCollector
) -> None:
    collector.faults = {"POST reports": [Fault()] * ATTEMPTS}
    report(page)
    assert report(page, policy=policy(maxEpsilon=0.5))["code"] == "budget-exceeded"
    assert len(collector.sent("POST reports")) == ATTEMPTS


def meeting(route: str, parties: int) -> Callable[[Request], object]:
    """Holds the answers to a route back until all parties have asked."""
    barrier = threading.Barrier(parties, timeout=HANG_SECONDS)
    return lambda request: barrier.wait() if request.route == route else None


def test_two_tabs_report_to_one_campaign_as_one_device(
    context: BrowserContext, collector: ScriptedCollector
) -> None:
    collector.before_answer = meeting("POST tickets", 2)
    tabs = [open_page(context, collector) for _ in range(2)]
    for tab, value in zip(tabs, (1.0, 80_000.0), strict=True):
        start(tab, value=value)
    assert [finish(tab)["reports"] for tab in tabs] == [4, 4]
    assert len({request.json["device"] for request in collector.sent("POST tickets")}) == 1
    assert len({request.body for request in collector.sent("POST reports")}) == 1


def test_a_tab_that_is_late_sends_what_another_has_drawn(
    context: BrowserContext, collector: ScriptedCollector
) -> None:
    """The second ticket is held back until the first report is on its way, and that until both."""
    tickets, on_its_way = iter((True, False)), threading.Event()
    together = meeting("POST reports", 2)

    def hold(request: Request) -> None:
        if request.route == "POST reports":
            on_its_way.set()
        elif request.route == "POST tickets" and not next(tickets):
            on_its_way.wait(HANG_SECONDS)
        together(request)

    collector.before_answer = hold
    tabs = [open_page(context, collector) for _ in range(2)]
    for tab, value in zip(tabs, (1.0, 80_000.0), strict=True):
        start(tab, value=value)
    assert [finish(tab)["reports"] for tab in tabs] == [4, 4]
    assert len(collector.sent("POST reports")) == 2
    assert len({request.body for request in collector.sent("POST reports")}) == 1


def test_a_tab_that_is_later_still_finds_the_campaign_reported_to(
    context: BrowserContext, collector: ScriptedCollector
) -> None:
    """The plan that the one tab asks for is held back until the other tab has reported."""
    held_back, done = iter((True, False)), threading.Event()
    collector.before_answer = lambda request: (
        request.route == "GET k3v9" and next(held_back) and done.wait(HANG_SECONDS)
    )
    late, other = (open_page(context, collector) for _ in range(2))
    start(late, value=80_000.0)
    while not collector.routes():
        late.wait_for_timeout(10)
    assert report(other)["already"] is False
    done.set()
    assert finish(late)["already"] is True
    assert collector.routes() == ["GET k3v9", *ALL_ROUTES]


def test_two_tabs_cannot_overspend_together(
    context: BrowserContext, collector: ScriptedCollector
) -> None:
    collector.before_answer = meeting("POST tickets", 2)
    tabs = [open_page(context, collector) for _ in range(2)]
    for tab, campaign in zip(tabs, ("one", "two"), strict=True):
        start(tab, campaign=campaign, policy=policy(lifetimeEpsilon=1.4))
    outcomes = [finish(tab) for tab in tabs]
    assert sorted(outcome.get("code", "done") for outcome in outcomes) == [
        "budget-exceeded",
        "done",
    ]
    assert len(collector.sent("POST reports")) == 1


def test_two_calls_on_a_page_draw_once(page: Page, collector: ScriptedCollector) -> None:
    collector.before_answer = meeting("POST tickets", 2)
    start(page)
    page.evaluate("() => { window.first = window.outcome; }")
    start(page, value=1.0)
    assert page.evaluate("() => window.first")["reports"] == finish(page)["reports"] == 4
    assert len({request.body for request in collector.sent("POST reports")}) == 1


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "no",
        "null",
        '{"version": 2, "campaigns": {}}',
        '{"version": 1, "campaigns": []}',
        '{"version": 1, "campaigns": {"other": {"epsilon": "much"}}}',
    ],
)
def test_a_ledger_that_cannot_be_read_is_not_taken_for_an_empty_one(
    page: Page, collector: ScriptedCollector, text: str
) -> None:
    write_ledger(page, text)
    assert report(page)["code"] == "storage"
    assert collector.routes() == []


FULL = """(word) => {
    const put = IDBObjectStore.prototype.put;
    IDBObjectStore.prototype.put = function (text, key) {
        const request = put.call(this, text, key);
        if (text.includes(word)) this.transaction.abort();
        return request;
    };
}"""


@pytest.mark.parametrize(("word", "requests"), [("device", 1), ("values", 2)])
def test_nothing_is_sent_that_could_not_be_written_down(
    page: Page, collector: ScriptedCollector, word: str, requests: int
) -> None:
    page.evaluate(FULL, word)
    assert report(page)["code"] == "storage"
    assert collector.routes() == ALL_ROUTES[:requests]
    assert word not in str(ledger(page))


def test_without_a_database_nothing_is_requested(page: Page, collector: ScriptedCollector) -> None:
    page.evaluate("() => { IDBFactory.prototype.open = () => { throw new DOMException(); }; }")
    assert report(page)["code"] == "storage"
    assert collector.routes() == []


OWN_PARTS = """async (options) => {
    const { report } = await import("/client.js");
    let stored = null;
    const storage = { change: async (update) => { stored = update(stored) ?? stored; } };
    const addresses = [];
    const own = (address, request) => { addresses.push(address); return fetch(address, request); };
    const receipt = await report({ ...options, storage, fetch: own });
    const again = await report({ ...options, storage, fetch: own });
    return { addresses, receipt, again, names: Object.keys(JSON.parse(stored).campaigns) };
}"""


def test_storage_and_fetch_can_be_the_page_s_own(page: Page, collector: ScriptedCollector) -> None:
    options = {"campaign": "k3v9", "value": 1.0, "invite": "invite", "policy": policy()}
    outcome = page.evaluate(OWN_PARTS, options)
    base = f"{collector.address}/v1/campaigns/k3v9"
    assert outcome["addresses"] == [base, f"{base}/tickets", f"{base}/reports"]
    assert outcome["again"] == {**outcome["receipt"], "already": True}
    assert outcome["names"] == [base]
    assert ledger(page) == {}
