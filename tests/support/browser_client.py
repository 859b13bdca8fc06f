"""The browser's client on a page, as tests call it, and the fixtures that lead to the page."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from support.scripted_collector import ScriptedCollector, serving
from unpoison import Plan

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

SECRET_VALUE = 31415.926535
"""A value whose digits are easily found in requests and storage."""
ATTEMPTS = 6
"""As in client.js."""
ALL_ROUTES = ["GET k3v9", "POST tickets", "POST reports"]
START = """(options) => {
    const sleeps = [];
    const sleep = async (seconds) => { sleeps.push(seconds); };
    const show = (error) => ({ code: error.code, message: error.message, sleeps });
    window.outcome = import("/client.js")
        .then(({ report }) => report({ invite: "invite", ...options, sleep }))
        .then((receipt) => ({ ...receipt, sleeps }), show);
}"""
ACCESS_LEDGER = """(text) => new Promise((resolve, reject) => {
    const opening = indexedDB.open("unpoison-ledger", 1);
    opening.onupgradeneeded = () => opening.result.createObjectStore("unpoison-ledger");
    opening.onerror = reject;
    opening.onsuccess = () => {
        const transaction = opening.result.transaction("unpoison-ledger", "readwrite");
        const store = transaction.objectStore("unpoison-ledger");
        const key = "unpoison-ledger";
        const asking = text === null ? store.get(key) : store.put(text, key);
        transaction.oncomplete = () => { opening.result.close(); resolve(asking.result ?? null); };
    };
})"""


def collector_fixture() -> Callable[..., Iterator[ScriptedCollector]]:
    """A fixture: a collector of its own for each test, with a plan of two tiers."""

    @pytest.fixture(name="collector")
    def collector() -> Iterator[ScriptedCollector]:
        tiers = [{"epsilon": 0.5, "min_epsilon": 0.5}]
        plan = Plan.new("piecewise-integer", 1.0, 0.25, low=0, high=86400, tiers=tiers)
        with serving(ScriptedCollector(plan)) as served:
            yield served

    return collector


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    """A browser's profile without pages of others, and with an empty storage.

    All tests of a file share one profile, which costs half of what a new one for each would.
    Storage belongs to an origin, and each test has a collector at a port of its own; it is emptied
    all the same, since a port may come again.
    """
    if not browser.contexts:
        # A page that stays open keeps the process that the next test's page will run in.
        browser.new_context().new_page()
    (context,) = browser.contexts
    yield context
    for page in context.pages[1:]:
        forget_storage(page)
        page.close()


@pytest.fixture
def page(context: BrowserContext, collector: ScriptedCollector) -> Page:
    """A page of the collector."""
    return open_page(context, collector)


def forget_storage(page: Page) -> None:
    """Empty the storage of a page's origin."""
    origin = page.evaluate("() => self.origin")
    session = page.context.new_cdp_session(page)
    session.send("Storage.clearDataForOrigin", {"origin": origin, "storageTypes": "all"})
    session.detach()


def open_page(context: BrowserContext, collector: ScriptedCollector) -> Page:
    page = context.new_page()
    page.goto(collector.address)
    return page


def start(page: Page, **options: Any) -> None:
    """Begin a report without waiting for its outcome; its sleeps take no time."""
    usual = {"campaign": "k3v9", "value": SECRET_VALUE, "policy": policy()}
    page.evaluate(START, {**usual, **options})


def finish(page: Page) -> dict[str, Any]:
    """Wait for the outcome of the last report that was started on the page."""
    outcome = page.evaluate("() => window.outcome")
    assert isinstance(outcome, dict)
    return outcome


def report(page: Page, **options: Any) -> dict[str, Any]:
    """The receipt, or the error's code and message; how long it would have slept."""
    start(page, **options)
    return finish(page)


def policy(**more: Any) -> dict[str, Any]:
    return {"low": 0, "high": 86400, **more}


def ledger_text(page: Page) -> str | None:
    text = page.evaluate(ACCESS_LEDGER, None)
    assert text is None or isinstance(text, str)
    return text


def write_ledger(page: Page, text: str) -> None:
    page.evaluate(ACCESS_LEDGER, text)


def ledger(page: Page) -> dict[str, Any]:
    """The entries of all campaigns, by the campaign's name."""
    campaigns = json.loads(ledger_text(page) or '{"campaigns": {}}')["campaigns"]
    return {key.rsplit("/", 1)[-1]: entry for key, entry in campaigns.items()}
