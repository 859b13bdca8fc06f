"""The operator's page in Chromium, from creating a campaign to a changed estimate."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from support.running_collectors import InProcessCollector, RunningCampaign, in_process_collector
from support.waiting import HANG_SECONDS, eventually
from unpoison import Plan
from unpoison.demo.fleet import Fleet

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

PHONE = {"width": 360, "height": 740}
PICTURES = os.environ.get("UNPOISON_PICTURES")
"""A folder for screenshots, for whoever wants to look at them."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcessCollector]:
    with in_process_collector(tmp_path_factory.mktemp("page"), estimate_every=1) as server:
        yield server


class Seen:
    """A page with whatever it complained about."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.complaints: list[str] = []
        self.asked: set[str] = set()
        page.on("pageerror", lambda fault: self.complaints.append(str(fault)))
        page.on("console", self._console)
        page.on("request", lambda request: self.asked.add(request.url.split("/")[2]))

    def _console(self, message: object) -> None:
        text, kind = str(message.text), str(message.type)  # type: ignore[attr-defined]
        if kind == "error" and "Failed to load resource" not in text:
            self.complaints.append(text)


@pytest.fixture
def seen(browser: Browser, server: InProcessCollector) -> Iterator[Seen]:
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    view = Seen(context.new_page())
    yield view
    context.close()
    assert view.complaints == []
    assert view.asked <= {f"127.0.0.1:{server.port}"}, "something was asked from elsewhere"


def picture(page: Page, name: str) -> None:
    if PICTURES:
        page.screenshot(path=Path(PICTURES, f"{name}.png"), full_page=True)


def report_from_devices(
    server: InProcessCollector, campaign: RunningCampaign, users: int, seed: int, value: float
) -> None:
    """Many devices report over HTTP, a fifth of which attack."""
    rng = np.random.default_rng(seed)
    values = np.clip(rng.normal(value, 10, users), 0, 100)
    attackers = rng.random(users) < 0.2
    made = server.operator.post(f"{campaign.path}/invites", {"count": users})
    fleet = Fleet(campaign.plan, values, attackers, "uniform:3C/4,C", seed)
    fleet.report(server.url, campaign.id, made["invites"], lambda done: None)


def test_a_campaign_from_its_creation_to_a_changed_estimate(
    seen: Seen, server: InProcessCollector
) -> None:
    page = seen.page
    page.goto(f"{server.url}/#token={server.token}")
    page.wait_for_selector("#no-campaigns:visible, #campaign-table tbody tr")
    assert server.token not in page.url
    if not page.is_visible("#create-name"):
        page.click("#create > summary")
    page.fill("#create-name", "Rides <b>& more</b>")
    page.fill("#create-low", "0")
    page.fill("#create-high", "100")
    page.fill("#create-step", "1/2")
    page.fill("#create-unit", "km")
    page.fill("#create-epsilon", "1")
    preview = page.text_content("#group-preview") or ""
    assert "This makes 4 groups" in preview
    assert "Half of all users are in the first." in preview
    page.fill("#create-min-epsilon", "1/2")
    assert "Half of all users" not in (page.text_content("#group-preview") or "")
    page.fill("#create-min-users", "150")
    page.check("#create-open")
    picture(page, "create")
    page.click("#create-submit")
    page.wait_for_url("**/campaigns/*")
    page.wait_for_selector("#campaign-state[data-state=open]")
    assert page.inner_text("#campaign-name") == "Rides <b>& more</b>"
    campaign_id = page.url.rpartition("/")[2]
    assert "0 to 100 km in steps of 0.5" in (page.text_content("#plan-facts") or "")
    plan = Plan.from_dict(server.operator.get(f"/v1/campaigns/{campaign_id}")["plan"])
    assert (plan.step, plan.unit) == (0.5, "km")
    campaign = RunningCampaign(server, campaign_id, plan)

    page.click("#action-invites")
    page.fill("#invites-count", "1")
    page.click("#invites-confirm")
    page.wait_for_selector("#invites-text:visible")
    invite = page.input_value("#invites-text").strip()
    page.click("#invites-shown [data-cancel]")

    report_with_client_js(page, server, campaign, invite)
    page.goto(f"{server.url}/campaigns/{campaign_id}")
    page.wait_for_function("document.querySelector('#users-value').textContent.startsWith('1')")

    report_from_devices(server, campaign, 400, seed=1, value=30)
    first = estimate_shown(page, "")
    picture(page, "campaign")
    assert re.fullmatch(r"[\d.]+ to [\d.]+ km", page.inner_text("#worst-case-value").strip())
    assert "of each group attack" in page.inner_text("#worst-case-share")
    report_from_devices(server, campaign, 1200, seed=2, value=60)
    second = estimate_shown(page, first)
    assert first != second
    page.wait_for_selector("#histograms-list figure canvas")
    page.wait_for_selector("#history canvas")
    phone_and_dark(page)


def report_with_client_js(
    page: Page, server: InProcessCollector, campaign: RunningCampaign, invite: str
) -> None:
    page.goto(f"{server.url}/campaigns/{campaign.id}/report#invite={invite}")
    page.wait_for_selector("#report-number")
    assert invite not in page.url
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.post_data or ""))
    page.fill("#report-number", "41.625")
    picture(page, "report")
    page.click("#report-send")
    page.wait_for_selector("#receipt:visible")
    picture(page, "receipt")
    eventually(lambda: campaign.status()["submissions"] == 1)
    assert not any("41.625" in body for body in sent)


def estimate_shown(page: Page, before: str) -> str:
    page.wait_for_function(
        "before => { const shown = document.querySelector('#estimate-value').textContent.trim();"
        " return /[0-9]/.test(shown) && shown !== before; }",
        arg=before,
        timeout=1000 * HANG_SECONDS,
    )
    return page.inner_text("#estimate-value").strip()


def phone_and_dark(page: Page) -> None:
    page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    page.emulate_media(color_scheme="dark")
    page.wait_for_timeout(500)
    picture(page, "phone-dark")
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert wide <= PHONE["width"], "the page scrolls sideways on a phone"


def test_operator_actions_need_the_token(seen: Seen, server: InProcessCollector) -> None:
    campaign = server.create_campaign()
    page = seen.page
    page.goto(f"{server.url}/campaigns/{campaign.id}")
    page.wait_for_selector("#token:visible")
    picture(page, "no-token")
    assert not page.is_visible("#action-close")
    page.fill("#token", "wrong")
    page.press("#token", "Enter")
    page.wait_for_selector("#token-error:visible, #refused:visible")
    page.fill("#token", server.token)
    page.press("#token", "Enter")
    page.wait_for_selector("#action-close:visible")
    page.click("#action-close")
    page.click("#close-confirm")
    page.wait_for_selector("#campaign-state[data-state=closed]")
    eventually(lambda: campaign.status()["state"] == "closed")


def test_rejections_and_balance_are_shown(seen: Seen, server: InProcessCollector) -> None:
    campaign = server.create_campaign()
    for _ in range(6):
        device = campaign.enrol_device()
        assert campaign.submit(device.body()).status == 200
    assert campaign.submit(device.body([8] * device.reports)).code == "ticket-used"
    page = seen.page
    page.goto(f"{server.url}/campaigns/{campaign.id}#token={server.token}")
    page.wait_for_selector("#rejection-table tbody tr", timeout=1000 * HANG_SECONDS)
    rows = page.locator("#groups tbody tr")
    assert rows.count() == 3
    assert all("2" in rows.nth(at).inner_text() for at in range(3))


def test_everything_can_be_done_with_the_keyboard(seen: Seen, server: InProcessCollector) -> None:
    campaign = server.create_campaign(open=False)
    page = seen.page
    page.goto(f"{server.url}/campaigns/{campaign.id}#token={server.token}")
    page.wait_for_selector("#action-open:visible")
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == "action-open":
            break
    page.keyboard.press("Enter")
    page.wait_for_selector("#campaign-state[data-state=open]")


def test_the_page_of_an_unknown_campaign_says_so(seen: Seen, server: InProcessCollector) -> None:
    answer = seen.page.goto(f"{server.url}/campaigns/000000000000")
    assert answer is not None
    assert answer.status == 404
