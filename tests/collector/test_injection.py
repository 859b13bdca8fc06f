"""SQL, HTML and template syntax in every text field is stored verbatim and never executed."""

from __future__ import annotations

import html
import json
import secrets
import zipfile
from collections.abc import Iterator
from io import BytesIO
from urllib.parse import quote

import pytest
from sqlalchemy import inspect

from support.raw_http import (
    NO_RATE_LIMITS,
    assert_nothing_counted,
    assert_refused,
    campaign_fixture,
    server_fixture,
)
from support.running_collectors import InProcessCollector, Reply, RunningCampaign
from unpoison.collector.storage.schema import metadata

SQL = (
    "'; DROP TABLE campaigns; --",
    "' OR '1' = '1",
    '"; DELETE FROM submissions; --',
    "\\'); DROP TABLE tickets; --",
    "1; ATTACH DATABASE 'evil.db' AS evil; --",
    "%' UNION SELECT token_hash FROM operators --",
    ":campaign ?1 $1 %(id)s {0}",
)
HTML = (
    "<script>alert(1)</script>",
    "</title><script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "<svg/onload=alert(1)>",
    "javascript:alert(1)",
    "&lt;b&gt; & <b>",
    "{{ 7 * 7 }}{% include 'base.html' %}",
    "${7*7} #{7*7} <%= 7*7 %>",
    "\u202edesrever \u2028 \ufeff",
    "🦝 é ß \U0001f9ea",
)
TEXTS = (*SQL, *HTML)
NAMED = {text: f"text {number}" for number, text in enumerate(TEXTS)}

server = server_fixture(**NO_RATE_LIMITS)
campaign = campaign_fixture()
texts = pytest.mark.parametrize("text", TEXTS, ids=NAMED.values())


@pytest.fixture(autouse=True)
def _tables_stay(server: InProcessCollector) -> Iterator[None]:
    """Whatever a test sends, all tables are still there after it, and the operator is known."""
    yield
    tables = set(inspect(server.collector.database.engine).get_table_names())
    assert tables == {*metadata.tables, "alembic_version"}
    assert server.request("GET", "/v1/campaigns", token=server.token).status == 200


def is_plain_json(reply: Reply) -> None:
    """A browser takes it for JSON and nothing else."""
    assert reply.headers["content-type"] == "application/json"
    assert reply.headers["x-content-type-options"] == "nosniff"
    assert reply.headers["content-security-policy"].startswith("default-src 'none'")


@texts
def test_a_name_is_told_as_it_was_given(server: InProcessCollector, text: str) -> None:
    campaign = server.create_campaign(name=text)
    paths = ["/v1/campaigns", campaign.path, f"{campaign.path}/status"]
    replies = [server.request("GET", path, token=server.token) for path in paths]
    for reply in replies:
        assert reply.status == 200
        is_plain_json(reply)
    listed, one, status = (reply.json for reply in replies)
    mine = [entry["name"] for entry in listed["campaigns"] if entry["id"] == campaign.id]
    assert mine == [one["name"]] == [status["name"]] == [text]


@texts
def test_a_name_is_text_on_its_pages(server: InProcessCollector, text: str) -> None:
    campaign = server.create_campaign(name=text)
    for page in (f"/campaigns/{campaign.id}", f"/campaigns/{campaign.id}/report"):
        reply = server.request("GET", page)
        shown = reply.body.decode()
        title = shown.partition("<title>")[2].partition("</title>")[0]
        assert (reply.status, reply.headers["content-type"]) == (200, "text/html; charset=utf-8")
        assert html.unescape(title) == text
        assert not set("<>\"'") & set(title)
        assert "alert(1)</script>" not in shown
        assert "onerror=alert(1)>" not in shown


@texts
def test_categories_are_told_as_they_were_given(server: InProcessCollector, text: str) -> None:
    plan = {"mechanism": "k-rr-integer", "epsilon": 1.0, "categories": ["tea", text]}
    campaign = server.create_campaign(plan)
    reply = server.request("GET", campaign.path)
    is_plain_json(reply)
    assert reply.json["plan"]["categories"] == ["tea", text]
    archive = BytesIO(server.operator.download(f"{campaign.path}/export"))
    with zipfile.ZipFile(archive) as files:
        assert json.loads(files.read("plan.json"))["categories"] == ["tea", text]
    page = server.request("GET", f"/campaigns/{campaign.id}").body.decode()
    assert text not in page


@texts
def test_a_text_in_the_path_is_no_campaign(server: InProcessCollector, text: str) -> None:
    path = f"/v1/campaigns/{quote(text, safe='')}"
    for reply in (
        server.request("GET", path),
        server.request("GET", f"{path}/status", token=server.token),
        server.request("DELETE", path, token=server.token),
        server.post(f"{path}/close", None, token=server.token),
        server.post(f"{path}/tickets", {"device": "ab" * 32}),
    ):
        assert_refused(reply, 404, "not-found")
        is_plain_json(reply)
        assert text not in reply.json["error"]["message"]
    page = server.request("GET", f"/campaigns/{quote(text, safe='')}")
    shown = page.body.decode()
    attribute = shown.partition('data-campaign="')[2].partition('"')[0]
    assert page.status == 404
    assert html.unescape(attribute) in ("", text)
    assert text not in shown or not set("<>\"'") & set(text)


@texts
def test_invites_and_tickets_and_devices_are_only_compared(
    campaign: RunningCampaign, text: str
) -> None:
    device = campaign.enrol_device()
    with assert_nothing_counted(campaign):
        for reply, status, code in (
            (
                campaign.request_ticket(device=secrets.token_hex(32), invite=text),
                403,
                "invalid-invite",
            ),
            (
                campaign.request_ticket(device=text, invite=campaign.invite()),
                422,
                "invalid-request",
            ),
            (campaign.submit({**device.body(), "ticket": text}), 403, "invalid-ticket"),
            (campaign.submit({**device.body(), "device": text}), 422, "invalid-request"),
            (campaign.submit({**device.body(), "values": [text]}), 422, "invalid-request"),
        ):
            assert_refused(reply, status, code)
            is_plain_json(reply)
            assert text not in reply.json["error"]["message"]


@texts
def test_a_token_is_only_compared(server: InProcessCollector, text: str) -> None:
    token = text.encode().decode("latin-1").replace("\x85", "")
    headers = {"Authorization": f"Bearer {token}"}
    assert_refused(server.request("GET", "/v1/campaigns", headers=headers), 401, "unauthorized")


def test_a_question_is_answered_as_json(
    server: InProcessCollector, campaign: RunningCampaign
) -> None:
    """What is asked for is named in the refusal: as JSON text, which no browser runs."""
    device = campaign.enrol_device()
    assert campaign.submit(device.body()).status == 200
    for text in TEXTS:
        for name in ("method", "statistic", "post_processing"):
            path = f"{campaign.path}/estimate?{name}={quote(text, safe='')}"
            reply = server.request("GET", path, token=server.token)
            assert_refused(reply, 422, "invalid-request")
            is_plain_json(reply)


@texts
def test_other_fields_take_no_text(server: InProcessCollector, text: str) -> None:
    body = {"name": "Fine", "plan": {"mechanism": "k-rr", "epsilon": 1.0, "categories": ["a", "b"]}}
    before = len(server.operator.get("/v1/campaigns")["campaigns"])
    for change in (
        {"access": text},
        {"min_users": text},
        {"closes_at": text},
        {"open": text},
        {"plan": text},
        {"plan": {**body["plan"], "mechanism": text}},  # type: ignore[dict-item]
        {"plan": {**body["plan"], text: 1}},  # type: ignore[dict-item]
        {text: 1},
    ):
        reply = server.post("/v1/campaigns", {**body, **change}, token=server.token)
        assert (reply.status, reply.code) in ((422, "invalid-request"), (422, "invalid-plan"))
        is_plain_json(reply)
    assert len(server.operator.get("/v1/campaigns")["campaigns"]) == before
