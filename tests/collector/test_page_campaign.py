"""What a campaign's page says in Chromium: numbers, findings, balance and charts that agree."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from support.page_view import open_campaign, page_of, picture
from support.running_collectors import InProcessCollector, RunningCampaign, in_process_collector
from support.stored_reports import store_reports
from unpoison import Plan, simulate

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

NARROW = {
    **{"mechanism": "piecewise-integer", "epsilon": 1.0, "min_epsilon": 0.125},
    **{"low": 0, "high": 1, "unit": "s"},
}
"""Four groups over a narrow range."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcessCollector]:
    with in_process_collector(tmp_path_factory.mktemp("page"), estimate_every=3600) as server:
        yield server


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    with page_of(browser) as page:
        yield page


def campaign_of(
    server: InProcessCollector,
    attack: str = "none",
    fraction: float = 0.0,
    users: int = 3000,
    enrolled: list[int] | None = None,
    **fields: Any,
) -> RunningCampaign:
    """A campaign over [0, 1] with the reports of simulated users."""
    campaign = server.create_campaign(NARROW, **fields)
    values = np.random.default_rng(1).beta(2, 5, users)
    plan = Plan.from_dict(NARROW)
    summary = simulate(plan, values, attack, fraction, np.random.default_rng(2)).summary
    store_reports(server, campaign, summary, enrolled)
    return campaign


def test_headline_and_verdict_show_the_same_numbers_with_their_unit(
    server: InProcessCollector, page: Page
) -> None:
    campaign = campaign_of(server, "point:C", 0.2, name="Reaction time")
    open_campaign(page, server, campaign)
    value = page.inner_text("#estimate-value").strip()
    interval = page.inner_text("#estimate-interval").removeprefix("95 %: ").strip()
    assert value.startswith("0.2") or value.startswith("0.3")
    assert value.endswith(" s")
    verdict = page.inner_text("#verdict")
    assert f"The mean without them is {value} (95 %: {interval})" in verdict
    assert f"the mean is from {page.inner_text('#worst-case-value').strip()}." in verdict
    page.wait_for_selector("#history-charts .figure-note")
    assert f"Latest: {value}, 95 % interval {interval}" in page.inner_text("#history-charts")
    picture(page, "narrow")
    page.emulate_media(color_scheme="dark")
    picture(page, "narrow-dark")


@pytest.mark.parametrize(
    ("attack", "fraction", "users", "tone", "label"),
    [
        ("point:C", 0.2, 3000, "attack", "Attackers found"),
        ("none", 0.0, 600, "unclear", "Cannot tell: none found, but up to "),
        ("none", 0.0, 60_000, "calm", "No attackers found, at most "),
    ],
)
def test_the_badge_agrees_with_the_interval_of_the_share(
    server: InProcessCollector,
    page: Page,
    attack: str,
    fraction: float,
    users: int,
    tone: str,
    label: str,
) -> None:
    open_campaign(page, server, campaign_of(server, attack, fraction, users))
    assert page.get_attribute("#verdict-box", "data-tone") == tone
    shown = page.inner_text("#verdict-label")
    assert shown.startswith(label)
    if tone != "attack":
        most = page.inner_text("#attackers-interval").rpartition(" to ")[2]
        assert most in shown
        assert (float(most.split()[0]) <= 5) == (tone == "calm")


def test_groups_that_do_not_report_alike_are_warned_about(
    server: InProcessCollector, page: Page
) -> None:
    campaign = campaign_of(server, enrolled=[750, 1000, 1100, 1050])
    open_campaign(page, server, campaign)
    words = page.inner_text("#balance-text")
    assert words.startswith("Groups do not report alike (p")
    assert "warning" in (page.get_attribute("#balance-text", "class") or "")
    assert "same size" not in words
    picture(page, "unbalanced")


def test_groups_that_report_alike_are_compared_by_those_who_reported(
    server: InProcessCollector, page: Page
) -> None:
    open_campaign(page, server, campaign_of(server, enrolled=[1000, 1000, 1000, 1000]))
    words = page.inner_text("#balance-text").replace("\N{NO-BREAK SPACE}", " ")
    assert words.startswith(
        "75.0 % of the enrolled users of each group reported: no more different"
    )
