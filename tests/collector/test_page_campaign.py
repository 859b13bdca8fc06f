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


@pytest.fixture(scope="module")
def attacked(server: InProcessCollector) -> RunningCampaign:
    """A campaign with attackers, for tests that only look at its page."""
    return campaign_of(server, "point:C", 0.2, name="Reaction time")


def test_headline_and_verdict_show_the_same_numbers_with_their_unit(
    server: InProcessCollector, attacked: RunningCampaign, page: Page
) -> None:
    open_campaign(page, server, attacked)
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


def pixels_of(page: Page, colour: str, chart: int, column: float) -> list[float]:
    """Heights, as shares of a chart's canvas, at which a column has this colour of the theme."""
    return page.evaluate(  # type: ignore[no-any-return]
        """([name, chart, column]) => {
            const canvas = document.querySelectorAll("#histograms-list canvas")[chart];
            const pen = canvas.getContext("2d");
            const wanted = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
            const [r, g, b] = [1, 3, 5].map((at) => parseInt(wanted.slice(at, at + 2), 16));
            const { width, height } = canvas;
            const x = Math.round(column * width);
            const { data } = pen.getImageData(x - 4, 0, 8, height);
            const off = (at) =>
                [r, g, b].reduce((sum, part, i) => sum + Math.abs(data[at + i] - part), 0);
            const near = (at) => off(at) < 60;
            return Array.from({ length: height }, (_, y) => y)
                .filter((y) => Array.from({ length: 8 }, (_, x) => 4 * (8 * y + x)).some(near))
                .map((y) => 1 - y / height);
        }""",
        [colour, chart, column],
    )


def test_poison_stands_on_top_of_the_honest_part(
    server: InProcessCollector, attacked: RunningCampaign, page: Page
) -> None:
    open_campaign(page, server, attacked)
    page.wait_for_selector("#histograms-list canvas")
    page.wait_for_timeout(500)
    last_bar = page.evaluate(
        """() => {
            const canvas = document.querySelector("#histograms-list canvas");
            const over = canvas.parentElement.querySelector(".u-over");
            return (over.offsetLeft + 0.985 * over.offsetWidth) / canvas.clientWidth;
        }"""
    )
    poison, honest = (pixels_of(page, f"--{name}", 0, last_bar) for name in ("poison", "honest"))
    assert poison
    assert honest
    assert min(poison) >= min(honest) - 0.02, "poison begins where the honest part ends"


def test_four_histograms_are_two_and_two_and_percents_are_whole(
    server: InProcessCollector, attacked: RunningCampaign, page: Page
) -> None:
    open_campaign(page, server, attacked)
    page.wait_for_selector("#histograms-list canvas")
    columns = page.evaluate(
        "getComputedStyle(document.querySelector('#histograms-list')).gridTemplateColumns"
    )
    assert len(columns.split()) == 2
    incrs = """async () => {
        const { percentAxis } = await import("/static/plot.js");
        return [[0, 0.06], [0, 0.3], [0, 0.01]].map(([low, high]) =>
            Math.min(...percentAxis().incrs(null, 1, low, high)));
    }"""
    assert page.evaluate(incrs) == [0.01, 0.01, 0.0001]


def test_the_last_label_of_a_time_axis_has_room(
    server: InProcessCollector, attacked: RunningCampaign, page: Page
) -> None:
    open_campaign(page, server, attacked)
    page.wait_for_selector("#history-charts canvas")
    room, half_label = page.evaluate(
        """() => {
            const canvas = document.querySelector("#history-charts canvas");
            const over = canvas.parentElement.querySelector(".u-over");
            const pen = document.createElement("canvas").getContext("2d");
            pen.font = "12px system-ui, sans-serif";
            const end = over.offsetLeft + over.offsetWidth;
            return [canvas.clientWidth - end, pen.measureText("12:59:59 PM").width / 2];
        }"""
    )
    assert room >= half_label


def test_on_a_phone_the_estimate_comes_before_the_buttons(
    server: InProcessCollector, attacked: RunningCampaign, browser: Browser
) -> None:
    with page_of(browser, viewport={"width": 390, "height": 844}) as page:
        open_campaign(page, server, attacked)
        top = "id => document.getElementById(id).getBoundingClientRect().top"
        assert page.evaluate(top, "estimate-value") < page.evaluate(top, "action-close")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        picture(page, "phone")


CATEGORIES = {
    **{"mechanism": "k-rr-integer", "epsilon": 2.0, "min_epsilon": 1.0},
    "categories": ["tea", "coffee", "milk"],
}


def test_frequencies_are_drawn_over_time(server: InProcessCollector, page: Page) -> None:
    campaign = server.create_campaign(CATEGORIES, name="Drinks")
    for seed in (1, 2):
        values = np.random.default_rng(seed).choice(["tea", "coffee", "milk"], 1000)
        run = simulate(campaign.plan, values, rng=np.random.default_rng(seed))
        store_reports(server, campaign, run.summary)
        server.operator.get(f"{campaign.path}/estimate")
    stored = campaign.status()["estimates"]
    assert [set(entry["frequencies"]) for entry in stored] == [{"tea", "coffee", "milk"}] * 2
    open_campaign(page, server, campaign)
    page.wait_for_selector("#history-charts canvas")
    chart = page.locator("#history-charts figure").first
    assert chart.locator(".figure-title").inner_text() == "Frequencies of the categories"
    assert chart.locator(".legend li").count() == 3
    chart.locator("summary").click()
    assert chart.locator("tbody tr").count() == 2
    picture(page, "categories")


def test_a_time_range_leaves_out_older_estimates(server: InProcessCollector, page: Page) -> None:
    campaign = campaign_of(server, "point:C", 0.2)
    server.operator.get(f"{campaign.path}/estimate")
    server.clock.step += 7200
    try:
        values = np.random.default_rng(5).beta(2, 5, 500)
        more = simulate(campaign.plan, values, rng=np.random.default_rng(6)).summary
        store_reports(server, campaign, more)
        server.operator.get(f"{campaign.path}/estimate")
    finally:
        server.clock.step -= 7200
    open_campaign(page, server, campaign)
    page.wait_for_selector("#history-charts canvas")
    page.locator("#history-charts summary").first.click()
    rows = page.locator("#history-charts figure").first.locator("tbody tr")
    assert rows.count() == 2
    page.select_option("#history-range", "3600")
    assert rows.count() == 1
    page.select_option("#history-range", "86400")
    assert rows.count() == 2
