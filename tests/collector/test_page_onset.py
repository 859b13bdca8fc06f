"""The onset of an attack on a campaign's page in Chromium: a mark on the charts, and words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pytest

from support.page_view import open_campaign, page_of, picture
from support.running_collectors import InProcessCollector, RunningCampaign, in_process_collector
from support.stored_reports import store_reports
from unpoison import Estimate, simulate
from unpoison.collector.campaigns.estimate_history import store_estimate
from unpoison.estimate import Byzantine

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

ATTACKED = [0.0, 0.01, 0.0, 0.0, 0.0, 0.04, 0.07, 0.09, 0.11, 0.12]
QUIET = [0.0, 0.01, 0.0, 0.0, 0.01, 0.0, 0.0, 0.0, 0.01, 0.0]
ONSET = 4
"""The last of the estimates of `ATTACKED` before the share rises."""
EVERY = 600
"""Seconds between two estimates: the whole history is longer than an hour."""
USERS = 600
"""Users who report between two estimates."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcessCollector]:
    with in_process_collector(tmp_path_factory.mktemp("onset"), estimate_every=3600) as server:
        yield server


def campaign_with_history(server: InProcessCollector, shares: Sequence[float]) -> RunningCampaign:
    """A campaign whose stored estimates had these shares of attackers."""
    campaign = server.create_campaign(name="Rides to work")
    users = USERS * len(shares)
    values = np.random.default_rng(1).normal(30, 10, users).clip(0, 100)
    run = simulate(campaign.plan, values, "point:C", shares[-1], np.random.default_rng(2))
    store_reports(server, campaign, run.summary)
    start = server.clock.now() - EVERY * len(shares)
    with server.collector.database.writing() as connection:
        for index, share in enumerate(shares):
            attackers = Byzantine(share, interval=(share, share + 0.03))
            mean = 30 + 10 * share
            answer = Estimate(
                "joint", mean, attackers, (mean - 2, mean + 2), users=USERS * (index + 1)
            )
            now = start + EVERY * index
            assert store_estimate(connection, campaign.id, answer.to_json(), now)
    server.collector.read_cache.clear()
    return campaign


def open_with_charts(page: Page, server: InProcessCollector, campaign: RunningCampaign) -> None:
    open_campaign(page, server, campaign)
    page.wait_for_function("document.querySelectorAll('#history-charts .u-over').length === 2")


def marked_place(page: Page, chart: int) -> float:
    """Where the mark of a chart is, as a share of the width between first and last estimate."""
    return page.evaluate(  # type: ignore[no-any-return]
        """chart => {
            const over = document.querySelectorAll("#history-charts .u-over")[chart];
            const [area, mark] = [over, over.querySelector(".onset-line")].map((node) =>
                node.getBoundingClientRect());
            return (mark.left - area.left) / area.width;
        }""",
        chart,
    )


def label_fits(page: Page, chart: int) -> bool:
    return page.evaluate(  # type: ignore[no-any-return]
        """chart => {
            const over = document.querySelectorAll("#history-charts .u-over")[chart];
            const [area, label] = [over, over.querySelector(".onset-line > span")].map((node) =>
                node.getBoundingClientRect());
            return label.left >= area.left && label.right <= area.right;
        }""",
        chart,
    )


def test_the_onset_is_a_mark_on_the_charts_and_a_sentence_by_the_verdict(
    server: InProcessCollector, browser: Browser
) -> None:
    campaign = campaign_with_history(server, ATTACKED)
    status = campaign.status()
    assert status["onset"] == status["estimates"][ONSET]["at"]
    with page_of(browser) as page:
        open_with_charts(page, server, campaign)
        shown = page.evaluate(
            "async at => (await import('/static/format.js')).dateTime(at)", status["onset"]
        )
        words = f"Attack onset: the share of attackers rose after {shown}."
        assert page.inner_text("#verdict-box #onset") == words
        assert f"Attack onset: {shown}." in page.inner_text("#history-charts")
        for chart in (0, 1):
            assert (
                page.locator("#history-charts .onset-line").nth(chart).inner_text()
                == "Attack onset"
            )
            assert marked_place(page, chart) == pytest.approx(ONSET / (len(ATTACKED) - 1), abs=0.01)
        picture(page, "onset")
        page.emulate_media(color_scheme="dark")
        picture(page, "onset-dark")
        page.select_option("#history-range", "3600")
        assert page.locator("#history-charts .onset-line:visible").count() == 2
        assert page.locator("#history-charts .onset-line.before").count() == 0


def test_the_label_of_the_mark_fits_on_a_phone(
    server: InProcessCollector, browser: Browser
) -> None:
    late = [0.0] * 14 + [0.12, 0.2]
    campaign = campaign_with_history(server, late)
    with page_of(browser, viewport={"width": 360, "height": 740}) as page:
        open_with_charts(page, server, campaign)
        page.wait_for_selector("#history-charts .onset-line.before:visible")
        assert marked_place(page, 0) > 0.8
        assert label_fits(page, 0)
        assert label_fits(page, 1)
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        picture(page, "onset-phone")
        page.emulate_media(color_scheme="dark")
        picture(page, "onset-phone-dark")


def test_a_quiet_campaign_and_a_later_time_range_have_no_mark(
    server: InProcessCollector, browser: Browser
) -> None:
    with page_of(browser) as page:
        open_with_charts(page, server, campaign_with_history(server, QUIET))
        assert not page.is_visible("#onset")
        assert page.locator("#history-charts .onset-line:visible").count() == 0
        early = [*ATTACKED, *[0.12] * 6]
        open_with_charts(page, server, campaign_with_history(server, early))
        page.wait_for_selector("#history-charts .onset-line:visible")
        page.select_option("#history-range", "3600")
        page.wait_for_selector("#history-charts .onset-line:visible", state="detached")
        assert page.is_visible("#onset")
        assert "Attack onset:" not in page.inner_text("#history-charts")
