"""Paths and methods that lead nowhere: out of the static files, to odd names, by other verbs."""

from __future__ import annotations

from typing import Any

import pytest

from support.raw_http import (
    PATIENT,
    campaign_fixture,
    described,
    exchanged,
    here_fixture,
    nothing_counted,
    refused,
    request,
    status_of,
)
from support.running_collectors import CampaignFace, Here

here = here_fixture(**PATIENT)
campaign = campaign_fixture()


@pytest.mark.parametrize("method", ["PUT", "PATCH", "TRACE", "OPTIONS", "HEAD", "DELETE"])
def test_other_methods_are_not_taken(here: Here, campaign: CampaignFace, method: str) -> None:
    pages = {"/": {"get"}, "/campaigns/{campaign}": {"get"}, "/static/page.css": {"get", "head"}}
    with nothing_counted(campaign):
        for path, known in {**described(), **pages}.items():
            if method.lower() in known:
                continue
            named = path.replace("{campaign}", campaign.id)
            reply = here.ask(method, named, headers={"X-Secret": "echo"}, token=here.token)
            assert reply.status == 405, (path, reply)
            assert {each.strip().lower() for each in reply.headers["allow"].split(",")} <= {*known}
            assert b"echo" not in reply.body
            if method != "HEAD":
                refused(reply, 405, "method-not-allowed")


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
def test_only_static_files_are_static_files(here: Here, path: str) -> None:
    refused(here.ask("GET", f"/static/{path}"), 404, "not-found")
    plain = request("GET", f"/static/{path}", "Connection: close")
    assert status_of(exchanged(here, plain)) == 404


def test_a_static_file_is_there(here: Here) -> None:
    reply = here.ask("GET", "/static/page.css")
    assert (reply.status, reply.headers["content-type"]) == (200, "text/css; charset=utf-8")


DEVICE = "ab" * 32
BODIES: dict[str, dict[str, Any]] = {
    "tickets": {"device": DEVICE},
    "reports": {"device": DEVICE, "ticket": "x", "values": [1]},
    "batch": {"submissions": []},
    "extend": {"closes_at": None},
    "invites": {"count": 1},
}


@pytest.mark.parametrize(
    "name",
    ["%00", "%00%00", "a%00b", "%ff", "%F0%9F%92%A9", "%0d%0aX:%20y", "..", "%2e%2e", "a" * 5000],
    ids=lambda name: name[:20],
)
def test_odd_names_are_no_campaigns(here: Here, campaign: CampaignFace, name: str) -> None:
    for path, methods in described().items():
        for method in methods:
            if "{campaign}" in path:
                named, body = path.replace("{campaign}", name), BODIES.get(path.rpartition("/")[2])
                reply = here.ask(method.upper(), named, body, token=here.token)
                refused(reply, 404, "not-found")
    reply = here.ask("GET", f"/campaigns/{name}")
    assert reply.status == 404
    assert "x" not in reply.headers
    kept = {key for key in here.collector.recent.known if key.startswith("campaign ")}
    assert kept <= {f"campaign {campaign.id}"}
    assert {rejected for rejected, _ in list(here.collector.rejected)} <= {campaign.id}
