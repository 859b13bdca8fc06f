"""The operator's page in a browser as tests look at it, with whatever it complained about."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from support.running_collectors import RunningCampaign, RunningCollector
from support.waiting import HANG_SECONDS

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

PICTURES = os.environ.get("UNPOISON_PICTURES")
"""A folder for screenshots, for whoever wants to look at them."""


@contextmanager
def page_of(browser: Browser, **options: Any) -> Iterator[Page]:
    """A page whose scripts must run without an error."""
    context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
    page = context.new_page()
    faults: list[str] = []
    page.on("pageerror", lambda fault: faults.append(str(fault)))
    yield page
    context.close()
    assert faults == []


def open_campaign(page: Page, server: RunningCollector, campaign: RunningCampaign) -> None:
    """Go to a campaign's page, and wait until its estimate is shown."""
    page.goto(f"{server.url}/campaigns/{campaign.id}#token={server.token}")
    page.wait_for_selector("#verdict-box:visible", timeout=1000 * HANG_SECONDS)


def picture(page: Page, name: str) -> None:
    """A screenshot of the whole page, if somebody wants to look at it."""
    if PICTURES:
        # Charts are drawn after the numbers.
        page.wait_for_timeout(700)
        page.screenshot(path=Path(PICTURES, f"{name}.png"), full_page=True)
