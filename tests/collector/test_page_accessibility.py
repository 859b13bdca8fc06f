"""The collector's pages in Chromium, light and dark, by the rules of WCAG 2 A and AA."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pytest

from support.accessibility import violations
from support.page_view import open_campaign, page_of, picture
from support.running_collectors import (
    SMALL_PLAN,
    InProcessCollector,
    RunningCampaign,
    in_process_collector,
)
from support.stored_reports import store_reports
from unpoison import simulate

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CATEGORIES = {
    **{"mechanism": "k-rr-integer", "epsilon": 2.0, "min_epsilon": 1.0},
    "categories": ["tea", "coffee", "milk"],
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcessCollector]:
    with in_process_collector(tmp_path_factory.mktemp("rules"), estimate_every=3600) as server:
        yield server


@pytest.fixture(scope="module")
def rides(server: InProcessCollector) -> RunningCampaign:
    """A campaign of numbers under attack, with groups that do not report alike and a rejection."""
    campaign = server.create_campaign({**SMALL_PLAN, "unit": "km"}, name="Rides", access="open")
    values = np.random.default_rng(1).normal(30, 10, 3000).clip(0, 100)
    run = simulate(campaign.plan, values, "point:C", 0.2, np.random.default_rng(2))
    store_reports(server, campaign, run.summary, enrolled=[1000, 1500, 1500])
    device = campaign.enrol_device()
    assert campaign.submit(device.body([5000] * device.reports)).code == "out-of-domain"
    server.operator.get(f"{campaign.path}/estimate")
    server.create_campaign(name="A draft", open=False)
    return campaign


@pytest.fixture(scope="module")
def drinks(server: InProcessCollector) -> RunningCampaign:
    """A campaign of categories without attackers."""
    campaign = server.create_campaign(CATEGORIES, name="Drinks", access="open")
    values = np.random.default_rng(1).choice(["tea", "coffee", "milk"], 2000)
    run = simulate(campaign.plan, values, rng=np.random.default_rng(2))
    store_reports(server, campaign, run.summary)
    return campaign


@pytest.fixture(params=["light", "dark"])
def page(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    with page_of(browser, color_scheme=request.param) as page:
        yield page


def open_all(page: Page) -> None:
    """Unfold everything: what is folded is not checked."""
    page.evaluate("for (const part of document.querySelectorAll('details')) part.open = true")


def test_the_list_and_its_form(
    page: Page, server: InProcessCollector, rides: RunningCampaign
) -> None:
    page.goto(f"{server.url}/#token={server.token}")
    page.wait_for_selector("#campaign-table tbody .badge[data-state=found]")
    open_all(page)
    assert violations(page) == []
    for kind in ("categories", "plan"):
        page.check(f"[name=kind][value={kind}]")
        page.check("[name=access][value=token]")
        page.click("#create-submit")
        page.wait_for_selector("#create-form .field-error")
        assert violations(page) == []


@pytest.mark.parametrize("name", ["rides", "drinks"])
def test_a_campaign(
    page: Page, server: InProcessCollector, name: str, request: pytest.FixtureRequest
) -> None:
    open_campaign(page, server, request.getfixturevalue(name))
    page.wait_for_selector("#history-charts canvas")
    open_all(page)
    picture(page, f"all-open-{name}")
    assert violations(page) == []
    for dialog in ("action-extend", "action-close"):
        page.click(f"#{dialog}")
        assert violations(page) == []
        page.keyboard.press("Escape")


def test_a_campaign_without_a_token_and_without_reports(
    page: Page, server: InProcessCollector
) -> None:
    campaign = server.create_campaign(name="New")
    page.goto(f"{server.url}/campaigns/{campaign.id}")
    page.wait_for_selector("#token:visible")
    assert violations(page) == []
    page.goto(f"{server.url}/campaigns/{campaign.id}#token={server.token}")
    page.reload()
    page.wait_for_selector("#waiting:visible")
    assert violations(page) == []


def test_the_page_that_reports(
    page: Page, server: InProcessCollector, rides: RunningCampaign
) -> None:
    page.goto(f"{server.url}/campaigns/{rides.id}/report")
    page.wait_for_selector("#report-number")
    assert violations(page) == []


def test_what_breaks_a_rule_is_seen(
    page: Page, server: InProcessCollector, rides: RunningCampaign
) -> None:
    page.goto(f"{server.url}/#token={server.token}")
    page.wait_for_selector("#campaign-table tbody tr")
    page.evaluate("document.querySelector('label[for=list-search]').remove()")
    page.evaluate("document.querySelector('#list-search').removeAttribute('placeholder')")
    page.evaluate("document.querySelector('h1').style.color = 'var(--line)'")
    rules = {line.partition(":")[0] for line in violations(page)}
    assert rules == {"label", "color-contrast"}
