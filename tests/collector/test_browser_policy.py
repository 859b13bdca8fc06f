"""Headers for browsers: cross-origin access, content security policy, no cookies."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest

from support.raw_http import (
    NO_RATE_LIMITS,
    assert_nothing_counted,
    assert_refused,
    campaign_fixture,
    server_fixture,
    stored_counts,
)
from support.running_collectors import (
    InProcessCollector,
    Reply,
    RunningCampaign,
    in_process_collector,
)

FRIEND = "https://pages.example"
STRANGERS = (
    "https://evil.example",
    "null",
    "http://pages.example",
    "https://pages.example:8443",
    "https://pages.example.evil.example",
    "https://evilpages.example",
    "https://sub.pages.example",
    "https://pages.example/",
    "*",
    "",
)
READABLE = {"allow-origin": FRIEND, "expose-headers": "Retry-After"}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'"
)

server = server_fixture(**NO_RATE_LIMITS)
campaign = campaign_fixture()


@pytest.fixture(scope="module")
def friendly(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcessCollector]:
    """A collector that one website's pages may report to."""
    folder = tmp_path_factory.mktemp("friendly")
    with in_process_collector(folder, allowed_origins=[FRIEND], **NO_RATE_LIMITS) as collector:
        yield collector


def allowed(reply: Reply) -> dict[str, str]:
    """All that an answer says to browsers about other origins."""
    names = (name for name in reply.headers if name.startswith("access-control-"))
    return {name.removeprefix("access-control-"): reply.headers[name] for name in names}


def preflight(
    server: InProcessCollector, path: str, origin: str, method: str, headers: str = ""
) -> Reply:
    preflight_headers = {"Origin": origin, "Access-Control-Request-Method": method}
    named = {"Access-Control-Request-Headers": headers} if headers else {}
    return server.request("OPTIONS", path, headers={**preflight_headers, **named})


def device_routes(campaign: RunningCampaign) -> list[tuple[str, str]]:
    posts = ("tickets", "reports", "reports/batch")
    return [("GET", campaign.path), *(("POST", f"{campaign.path}/{route}") for route in posts)]


def test_no_other_origin_is_allowed_by_default(
    server: InProcessCollector, campaign: RunningCampaign
) -> None:
    paths = ["/", "/v1/campaigns", "/static/page.css", "/client.js", "/nothing", "/openapi.json"]
    for origin in (FRIEND, *STRANGERS):
        for path in [*paths, campaign.path]:
            assert allowed(server.request("GET", path, headers={"Origin": origin})) == {}
        for method, path in device_routes(campaign):
            reply = preflight(server, path, origin, method, "content-type")
            assert_refused(reply, 405, "method-not-allowed")
            assert allowed(reply) == {}


def test_a_friend_may_use_the_routes_of_devices(friendly: InProcessCollector) -> None:
    campaign = friendly.create_campaign()
    origin = {"Origin": FRIEND}
    campaign_reply = friendly.request("GET", campaign.path, headers=origin)
    assert (campaign_reply.status, allowed(campaign_reply)) == (200, READABLE)
    assert "origin" in campaign_reply.headers["vary"].lower()
    device = campaign.enrol_device()
    reply = campaign.submit(device.body(), headers=origin)
    assert (reply.status, allowed(reply)) == (200, READABLE)
    reply = campaign.submit(device.body([]), headers=origin)
    assert_refused(reply, 422, "wrong-number-of-values")
    assert allowed(reply) == READABLE
    for method, path in device_routes(campaign):
        reply = preflight(friendly, path, FRIEND, method, "content-type")
        assert reply.status == 200
        assert allowed(reply)["allow-origin"] == FRIEND
        assert set(allowed(reply)["allow-methods"].split(", ")) == {"GET", "POST"}


@pytest.mark.parametrize("origin", STRANGERS)
def test_a_stranger_is_not_taken_for_a_friend(friendly: InProcessCollector, origin: str) -> None:
    campaign = friendly.create_campaign()
    for method, path in device_routes(campaign):
        reply = preflight(friendly, path, origin, method, "content-type")
        assert "allow-origin" not in allowed(reply)
        assert reply.status >= 400
        reply = friendly.request(method, path, headers={"Origin": origin})
        assert "allow-origin" not in allowed(reply)


@pytest.mark.parametrize(
    "headers", ["authorization", "Authorization", "content-type, AUTHORIZATION"]
)
def test_no_other_page_may_send_a_token(friendly: InProcessCollector, headers: str) -> None:
    campaign = friendly.create_campaign()
    for path in ("/v1/campaigns", f"{campaign.path}/close", campaign.path):
        for method in ("GET", "POST"):
            reply = preflight(friendly, path, FRIEND, method, headers)
            assert reply.status == 400
            assert "authorization" not in allowed(reply).get("allow-headers", "").lower()


@pytest.mark.parametrize("method", ["DELETE", "PUT", "PATCH"])
def test_no_other_page_may_use_other_methods(friendly: InProcessCollector, method: str) -> None:
    campaign = friendly.create_campaign()
    reply = preflight(friendly, campaign.path, FRIEND, method, "content-type")
    assert reply.status == 400
    assert method not in allowed(reply).get("allow-methods", "")


def test_credentials_are_never_allowed(friendly: InProcessCollector) -> None:
    campaign = friendly.create_campaign()
    for method, path in device_routes(campaign):
        for reply in (
            preflight(friendly, path, FRIEND, method, "content-type"),
            friendly.request(method, path, headers={"Origin": FRIEND, "Cookie": "a=b"}),
        ):
            assert "allow-credentials" not in allowed(reply)
            assert allowed(reply).get("allow-origin") != "*"


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"]
)
def test_a_simple_request_from_another_page_does_nothing(
    friendly: InProcessCollector, kind: str
) -> None:
    """Browsers send these three kinds without asking first."""
    campaign = friendly.create_campaign()
    device = campaign.enrol_device()
    for origin in (FRIEND, "https://evil.example"):
        headers = {"Origin": origin, "Content-Type": kind}
        with assert_nothing_counted(campaign):
            reply = campaign.submit(json.dumps(device.body()).encode(), headers=headers)
            assert_refused(reply, 415, "unsupported-media-type")
            assert allowed(reply).get("allow-origin") == (FRIEND if origin == FRIEND else None)
    assert stored_counts(campaign).submissions == 0


def answers(server: InProcessCollector, campaign: RunningCampaign) -> dict[str, Reply]:
    """One answer of every kind."""
    device = campaign.enrol_device()
    text = {"Content-Type": "text/plain"}
    return {
        "page": server.request("GET", "/"),
        "campaign page": server.request("GET", f"/campaigns/{campaign.id}"),
        "report page": server.request("GET", f"/campaigns/{campaign.id}/report"),
        "no page": server.request("GET", "/campaigns/none"),
        "static": server.request("GET", "/static/page.css"),
        "no static": server.request("GET", "/static/none.css"),
        "client": server.request("GET", "/client.js"),
        "tokens": server.request("GET", "/privacy-pass.js"),
        "description": server.request("GET", "/openapi.json"),
        "health": server.request("GET", "/healthz"),
        "metrics": server.request("GET", "/metrics"),
        "campaign": server.request("GET", campaign.path),
        "list": server.request("GET", "/v1/campaigns", token=server.token),
        "summary": server.request("GET", f"{campaign.path}/summary", token=server.token),
        "export": server.request("GET", f"{campaign.path}/export", token=server.token),
        "accepted": campaign.submit(device.body()),
        "refused": campaign.submit(device.body([])),
        "no json": campaign.submit(b"{"),
        "unauthorized": server.request("GET", "/v1/campaigns"),
        "not found": server.request("GET", "/nothing"),
        "wrong method": server.request("PUT", "/v1/campaigns"),
        "wrong type": campaign.submit(device.body(), headers=text),
        "too large": server.request("POST", "/", headers={"Content-Length": "9999999"}),
        "no request": server.request("FETCH", "/"),
        "head": server.request("HEAD", "/static/page.css"),
    }


def test_every_answer_has_the_headers_that_keep_browsers_safe(
    server: InProcessCollector, campaign: RunningCampaign
) -> None:
    for kind, reply in answers(server, campaign).items():
        headers = reply.headers
        assert headers["content-security-policy"] == POLICY, kind
        assert headers["x-content-type-options"] == "nosniff", kind
        assert headers["referrer-policy"] == "no-referrer", kind
        assert headers["cross-origin-opener-policy"] == "same-origin", kind
        files = ("static", "client", "tokens", "head", "no static")
        kept = "no-cache" if kind in files else "no-store"
        assert headers["cache-control"] == kept, kind
        assert "server" not in headers, kind
        assert "x-powered-by" not in headers, kind


def test_a_fault_within_has_them_too(
    server: InProcessCollector, campaign: RunningCampaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError("the secret reason")

    monkeypatch.setattr(server.collector, "summary", fails)
    reply = server.request("GET", f"{campaign.path}/summary", token=server.token)
    assert_refused(reply, 500, "internal")
    assert reply.headers["content-security-policy"] == POLICY
    assert b"secret" not in reply.body


def test_nothing_sets_a_cookie(server: InProcessCollector, friendly: InProcessCollector) -> None:
    for face in (server, friendly):
        for kind, reply in answers(face, face.create_campaign()).items():
            assert "set-cookie" not in reply.headers, kind


def test_downloads_are_downloads(server: InProcessCollector, campaign: RunningCampaign) -> None:
    for kind in ("summary", "export"):
        reply = server.request("GET", f"{campaign.path}/{kind}", token=server.token)
        disposition = reply.headers["content-disposition"]
        assert re.fullmatch(r'attachment; filename="[0-9a-z]{12}\.(summary|zip)"', disposition)


@pytest.mark.parametrize("page", ["/", "/campaigns/{id}", "/campaigns/{id}/report"])
def test_pages_keep_to_their_own_policy(
    server: InProcessCollector, campaign: RunningCampaign, page: str
) -> None:
    """No script, style or handler within the page, and nothing from elsewhere."""
    shown = server.request("GET", page.format(id=campaign.id)).body.decode()
    assert "<script" in shown
    assert not re.findall(r"<script(?![^>]*\bsrc=\"/)", shown)
    assert not re.findall(r"<style|\sstyle=|\son[a-z]+=", shown)
    assert not re.findall(r"(?:src|href|action)=\"(?!/|#)", shown)
