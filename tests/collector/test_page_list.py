"""The list of campaigns in Chromium: last estimates, badges, search, filter and order."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pytest

from support.page_view import page_of, picture
from support.running_collectors import SMALL_PLAN, InProcessCollector, in_process_collector
from support.stored_reports import store_reports
from unpoison import simulate

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Route

ROWS = "#campaign-table tbody tr"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcessCollector]:
    with in_process_collector(tmp_path_factory.mktemp("list"), estimate_every=3600) as server:
        attacked = server.create_campaign({**SMALL_PLAN, "unit": "km"}, name="Rides to work")
        values = np.random.default_rng(1).normal(30, 10, 2000).clip(0, 100)
        run = simulate(attacked.plan, values, "point:C", 0.2, np.random.default_rng(2))
        store_reports(server, attacked, run.summary)
        server.operator.get(f"{attacked.path}/estimate")
        server.create_campaign(name="Coffee a day", open=False)
        closed = server.create_campaign(name="Old rides")
        server.operator.post(f"{closed.path}/close", {})
        yield server


@pytest.fixture
def page(browser: Browser, server: InProcessCollector) -> Iterator[Page]:
    with page_of(browser) as page:
        page.goto(f"{server.url}/#token={server.token}")
        page.wait_for_selector(ROWS)
        yield page


def names(page: Page) -> list[str]:
    return page.locator(f"{ROWS} th").all_inner_texts()


def wait_for_names(page: Page, count: int) -> list[str]:
    wanted = "([rows, count]) => document.querySelectorAll(rows).length === count"
    page.wait_for_function(wanted, arg=[ROWS, count])
    return names(page)


def wait_for_first(page: Page, name: str) -> None:
    wanted = "([row, name]) => document.querySelector(row).textContent === name"
    page.wait_for_function(wanted, arg=[f"{ROWS} th", name])


def test_the_list_has_the_last_estimate_and_a_badge(server: InProcessCollector, page: Page) -> None:
    listed = server.operator.get("/v1/campaigns")["campaigns"]
    last = next(entry["last_estimate"] for entry in listed if entry["name"] == "Rides to work")
    row = page.locator(ROWS, has_text="Rides to work")
    assert last["answer"].endswith(" km")
    assert last["answer"] in row.inner_text()
    assert last["interval"] in row.inner_text()
    assert row.locator(".badge[data-state=found]").inner_text() == "Attackers"
    assert "–" in page.locator(ROWS, has_text="Coffee").inner_text()
    picture(page, "list")
    page.emulate_media(color_scheme="dark")
    page.set_viewport_size({"width": 390, "height": 844})
    picture(page, "list-phone-dark")


def test_the_list_is_searched_filtered_and_ordered(page: Page) -> None:
    assert len(names(page)) == 3
    page.fill("#list-search", "RIDES")
    assert sorted(wait_for_names(page, 2)) == ["Old rides", "Rides to work"]
    page.select_option("#list-state", "closed")
    assert wait_for_names(page, 1) == ["Old rides"]
    page.fill("#list-search", "nothing like it")
    page.wait_for_selector("#no-match:visible")
    page.fill("#list-search", "")
    page.select_option("#list-state", "")
    wait_for_names(page, 3)
    page.select_option("#list-order", "name")
    wait_for_first(page, "Coffee a day")
    page.select_option("#list-order", "attackers")
    wait_for_first(page, "Rides to work")


def test_a_collector_with_pages_is_asked_for_more(page: Page, server: InProcessCollector) -> None:
    """As a collector answers that searches, filters and divides the list itself."""
    entry = server.operator.get("/v1/campaigns")["campaigns"][0]
    asked: list[str] = []

    def answer(route: Route) -> None:
        asked.append(route.request.url.partition("?")[2])
        second = "after=two" in asked[-1]
        campaigns = [{**entry, "id": f"c{second}", "name": "Second" if second else "First"}]
        body = {"campaigns": campaigns, "next": None if second else "two"}
        route.fulfill(body=json.dumps(body), content_type="application/json")

    page.route("**/v1/campaigns?*", answer)
    page.fill("#list-search", "i&s")
    page.wait_for_selector("#list-more:visible")
    assert wait_for_names(page, 1) == ["First"]
    page.click("#list-more")
    assert wait_for_names(page, 2) == ["First", "Second"]
    assert not page.is_visible("#list-more")
    assert "limit=50&search=i%26s" in asked
    assert any("after=two" in query for query in asked)
