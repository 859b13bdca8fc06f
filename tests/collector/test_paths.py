"""Unknown paths, path traversal and wrong methods."""

from __future__ import annotations

from typing import Any

import pytest

from support.raw_http import (
    NO_RATE_LIMITS,
    assert_nothing_counted,
    assert_refused,
    campaign_fixture,
    exchange,
    openapi_paths,
    request_bytes,
    server_fixture,
    status_of,
)
from support.running_collectors import InProcessCollector, RunningCampaign

server = server_fixture(**NO_RATE_LIMITS)
campaign = campaign_fixture()


@pytest.mark.parametrize("method", ["PUT", "PATCH", "TRACE", "OPTIONS", "HEAD", "DELETE"])
def test_other_methods_are_not_taken(
    server: InProcessCollector, campaign: RunningCampaign, method: str
) -> None:
    pages = {"/": {"get"}, "/campaigns/{campaign}": {"get"}, "/static/page.css": {"get", "head"}}
    with assert_nothing_counted(campaign):
        for path, known in {**openapi_paths(), **pages}.items():
            if method.lower() in known:
                continue
            named = path.replace("{campaign}", campaign.id)
            reply = server.request(method, named, headers={"X-Secret": "echo"}, token=server.token)
            assert reply.status == 405, (path, reply)
            assert {verb.strip().lower() for verb in reply.headers["allow"].split(",")} <= {*known}
            assert b"echo" not in reply.body
            if method != "HEAD":
                assert_refused(reply, 405, "method-not-allowed")


OUTSIDE = (
    "..",
    "../templates/base.html",
    "%2e%2e/templates/base.html",
    "%2e%2e%2ftemplates%2fbase.html",
    "..%2f..%2fhttp%2fpages.py",
    "..%5c..%5chttp%5cpages.py",
    "..\\..\\http\\pages.py",
    "%252e%252e/templates/base.html",
    "%c0%ae%c0%ae/templates/base.html",
    "vendor/../../templates/base.html",
    "vendor/..%00/page.css",
    "/etc/passwd",
    "%2fetc%2fpasswd",
    "../../../../../../../../../../../../etc/passwd",
    "%2e%2e/" * 12 + "etc/passwd",
    "page.css%00",
    "page.css%00.html",
    "%00",
    "",
    ".",
    "vendor",
    "a" * 300,
    "a/" * 3000,
)


@pytest.mark.parametrize("path", OUTSIDE, ids=lambda path: path[:30])
def test_only_static_files_are_static_files(server: InProcessCollector, path: str) -> None:
    assert_refused(server.request("GET", f"/static/{path}"), 404, "not-found")
    plain = request_bytes("GET", f"/static/{path}", "Connection: close")
    assert status_of(exchange(server, plain)) == 404


def test_a_static_file_is_there(server: InProcessCollector) -> None:
    reply = server.request("GET", "/static/page.css")
    assert (reply.status, reply.headers["content-type"]) == (200, "text/css; charset=utf-8")


DEVICE = "ab" * 32
BODIES: dict[str, dict[str, Any]] = {
    "tickets": {"device": DEVICE},
    "reports": {"device": DEVICE, "ticket": "x", "values": [1]},
    "batch": {"submissions": []},
    "extend": {"closes_at": None},
    "alarms": {"doubt": True},
    "invites": {"count": 1},
}


@pytest.mark.parametrize(
    "name",
    ["%00", "%00%00", "a%00b", "%ff", "%F0%9F%92%A9", "%0d%0aX:%20y", "..", "%2e%2e", "a" * 5000],
    ids=lambda name: name[:20],
)
def test_odd_names_are_no_campaigns(
    server: InProcessCollector, campaign: RunningCampaign, name: str
) -> None:
    for path, methods in openapi_paths().items():
        for method in methods:
            if "{campaign}" in path:
                named, body = path.replace("{campaign}", name), BODIES.get(path.rpartition("/")[2])
                reply = server.request(method.upper(), named, body, token=server.token)
                assert_refused(reply, 404, "not-found")
    reply = server.request("GET", f"/campaigns/{name}")
    assert reply.status == 404
    assert "x" not in reply.headers
    kept = {key for key in server.collector.read_cache.entries if key.startswith("campaign ")}
    assert kept <= {f"campaign {campaign.id}"}
    assert {rejected for rejected, _ in list(server.collector.rejections.unwritten)} <= {
        campaign.id
    }
