"""The page's form for campaigns by token in Chromium: the issuer's fields, and what they refuse."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from support.page_view import page_of, picture
from support.running_collectors import InProcessCollector, RunningCampaign, in_process_collector
from support.token_holders import ISSUER_NAME, challenge_of, key_holder
from unpoison import Plan
from unpoison.privacy_pass import campaign_challenge, from_base64url

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

ISSUER = key_holder("the issuer")
ISSUER_FIELDS = ("#create-issuer-name", "#create-issuer-key", "#create-origins")
ORIGINS = ("collector.example", "backup.example:8443")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcessCollector]:
    with in_process_collector(tmp_path_factory.mktemp("form"), estimate_every=3600) as server:
        yield server


@pytest.fixture
def page(browser: Browser, server: InProcessCollector) -> Iterator[Page]:
    with page_of(browser) as page:
        page.goto(f"{server.url}/#token={server.token}")
        page.wait_for_selector("#no-campaigns:visible, #campaign-table tbody tr")
        if not page.is_visible("#create-name"):
            page.click("#create > summary")
        page.fill("#create-name", "Rides")
        page.fill("#create-high", "100")
        yield page


def choose(page: Page, access: str) -> None:
    page.check(f"[name=access][value={access}]")


def shown_error(page: Page, field: str) -> str:
    """The error beside a field, which has the focus."""
    error = page.locator(f"[data-field='{field}'] .field-error")
    error.wait_for()
    assert page.evaluate("document.activeElement.closest('[data-field]').dataset.field") == field
    return error.inner_text()


def test_a_campaign_by_token_is_created_and_takes_the_issuers_tokens(
    page: Page, server: InProcessCollector
) -> None:
    choose(page, "token")
    page.fill("#create-issuer-name", ISSUER_NAME)
    page.fill("#create-issuer-key", ISSUER.key.pem)
    page.fill("#create-origins", ", ".join(ORIGINS))
    page.check("#create-open")
    picture(page, "create-token")
    page.click("#create-submit")
    page.wait_for_selector("#campaign-state[data-state=open]")
    assert page.inner_text("#campaign-access") == "Devices with a token"
    created = server.operator.get(f"/v1/campaigns/{page.url.rpartition('/')[2]}")
    assert from_base64url(created["token_key"]) == ISSUER.key.der
    campaign = RunningCampaign(server, created["id"], Plan.from_dict(created["plan"]))
    assert challenge_of(campaign) == campaign_challenge(campaign.id, ISSUER_NAME, ORIGINS)
    enrolment = {"device": secrets.token_hex(32), "token": ISSUER.token_for(campaign)}
    assert campaign.request_ticket(**enrolment).status == 200


def test_the_issuers_fields_are_those_of_campaigns_by_token_alone(
    page: Page, server: InProcessCollector
) -> None:
    for access, visible in (("token", True), ("open", False), ("token", True), ("invite", False)):
        choose(page, access)
        assert [page.is_visible(field) for field in ISSUER_FIELDS] == [visible] * 3
    choose(page, "token")
    page.fill("#create-issuer-name", ISSUER_NAME)
    page.fill("#create-issuer-key", ISSUER.key.pem)
    choose(page, "invite")
    page.click("#create-submit")
    page.wait_for_selector("#campaign-state[data-state=draft]")
    created = server.operator.get(f"/v1/campaigns/{page.url.rpartition('/')[2]}")
    assert created["access"] == "invite"


def test_errors_stand_beside_the_field_that_they_are_about(page: Page) -> None:
    choose(page, "token")
    page.click("#create-submit")
    assert "Enter the issuer's host" in shown_error(page, "issuer.name")
    page.fill("#create-issuer-name", f"https://{ISSUER_NAME}")
    page.click("#create-submit")
    assert "Paste the issuer's public key" in shown_error(page, "issuer.key")
    page.fill("#create-issuer-key", "no key")
    page.click("#create-submit")
    assert "must be a host name in lower case" in shown_error(page, "issuer.name")
    page.fill("#create-issuer-name", ISSUER_NAME)
    page.click("#create-submit")
    assert "must be a public key in PEM" in shown_error(page, "issuer.key")
    page.fill("#create-issuer-key", ISSUER.key.pem)
    page.fill("#create-origins", "collector.example Not.A.Host")
    page.click("#create-submit")
    assert "must be a host name in lower case" in shown_error(page, "issuer.origins")
    picture(page, "create-token-error")
    page.fill("#create-origins", "a" * 261)
    page.click("#create-submit")
    assert "at most 260 characters" in shown_error(page, "issuer.origins")
