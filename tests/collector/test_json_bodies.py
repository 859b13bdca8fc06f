"""Bodies of another media type, invalid JSON and ambiguous JSON are refused, uncounted."""

from __future__ import annotations

import json
from typing import Any

import pytest

from support.raw_http import (
    DEVICE_ROUTES,
    NO_RATE_LIMITS,
    assert_nothing_counted,
    assert_refused,
    campaign_fixture,
    exchange,
    post_to_route,
    request_bytes,
    server_fixture,
    status_of,
    stored_counts,
)
from support.running_collectors import InProcessCollector, RunningCampaign

server = server_fixture(**NO_RATE_LIMITS)
campaign = campaign_fixture()


OTHER_TYPES = (
    "text/plain",
    "text/json",
    "text/plain; application/json",
    "application/jsonp",
    "application/json-patch+json",
    "application/json, text/plain",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=application/json",
    "application",
    ";",
    "",
)


@pytest.mark.parametrize("kind", OTHER_TYPES)
def test_other_content_types_are_refused(
    server: InProcessCollector, campaign: RunningCampaign, kind: str
) -> None:
    device = campaign.enrol_device()
    body = json.dumps(device.body()).encode()
    with assert_nothing_counted(campaign):
        reply = post_to_route(campaign, "reports", body, Content_Type=kind)
        assert_refused(reply, 415, "unsupported-media-type")
        headers = {"Content-Type": kind}
        path = f"{campaign.path}/invites"
        reply = server.post(path, {"count": 1}, headers=headers, token=server.token)
        assert_refused(reply, 415, "unsupported-media-type")
    assert campaign.submit(device.body()).status == 200


def test_a_body_without_a_content_type_is_refused(
    server: InProcessCollector, campaign: RunningCampaign
) -> None:
    body = json.dumps(campaign.enrol_device().body()).encode()
    with assert_nothing_counted(campaign):
        bare = request_bytes(
            "POST", f"{campaign.path}/reports", f"Content-Length: {len(body)}", body=body
        )
        assert status_of(exchange(server, bare)) == 415


@pytest.mark.parametrize(
    "kind",
    [
        "application/json; charset=utf-8",
        "application/json;charset=UTF-8",
        "APPLICATION/JSON",
        " application/json ; charset=latin-1",
        'application/json; charset="utf-8"; q=1',
    ],
)
def test_parameters_of_the_content_type_are_fine(campaign: RunningCampaign, kind: str) -> None:
    device = campaign.enrol_device()
    body = json.dumps(device.body()).encode()
    assert post_to_route(campaign, "reports", body, Content_Type=kind).status == 200
    operator = campaign.server.post(
        f"{campaign.path}/invites",
        {"count": 1},
        headers={"Content-Type": kind},
        token=campaign.server.token,
    )
    assert operator.status == 201


NO_JSON = (
    b"",
    b" ",
    b"null ,",
    b"{",
    b"{}{}",
    b"\x00",
    b"\xff\xfe{\x00}\x00",
    b'{"ticket": "\xff"}',
    b'{"ticket": "\xc0\xaf"}',
    b'{"ticket": "\xed\xa0\x80"}',
    b'{"ticket": "\\ud800"}',
    b'{"ticket": "\\udc00\\ud800"}',
    b'{"ticket": "\\u00"}',
    b'{"ticket": "\n"}',
    b"{'ticket': 1}",
    b"{ticket: 1}",
    b'{"values": [1,]}',
    b"ticket=1&values=2",
    b"<xml/>",
)


@pytest.mark.parametrize("route", DEVICE_ROUTES)
@pytest.mark.parametrize("body", NO_JSON)
def test_what_is_no_json_is_refused(campaign: RunningCampaign, route: str, body: bytes) -> None:
    with assert_nothing_counted(campaign):
        assert_refused(post_to_route(campaign, route, body), 400, "invalid-request")


@pytest.mark.parametrize("body", [b"{", b"\xff", b'{"name": "\xff"}', b"{}{}", b"\xff\xfe\x00"])
def test_what_is_no_json_is_refused_from_operators_too(
    server: InProcessCollector, body: bytes
) -> None:
    assert_refused(server.post("/v1/campaigns", body, token=server.token), 400, "invalid-request")


@pytest.mark.parametrize(
    "body",
    [
        b'{"name": "\\ud800", "plan": {}}',
        b'{"name": "Fine", "plan": {}, "\\ud800": 1}',
        b'{"name": "Fine", "plan": {"\\ud800": 1}}',
        b'{"name": "Fine", "plan": {"mechanism": "\\ud800", "epsilon": 1}}',
        b'{"name": "Fine", "plan": {"mechanism": "k-rr", "epsilon": 1,'
        b' "categories": ["a", "\\ud800"]}}',
        b'{"name": "Two\\nlines", "plan": {}}',
        b'{"name": "\\u0000", "plan": {}}',
        b'{"name": "", "plan": {}}',
    ],
)
def test_half_characters_and_control_characters_are_in_no_name(
    server: InProcessCollector, body: bytes
) -> None:
    reply = server.post("/v1/campaigns", body, token=server.token)
    assert (reply.status, reply.code) in ((422, "invalid-request"), (422, "invalid-plan"))


@pytest.mark.parametrize("route", DEVICE_ROUTES)
@pytest.mark.parametrize("body", [[], [[]], [{}], None, 1, "text", True])
def test_a_body_is_an_object(campaign: RunningCampaign, route: str, body: Any) -> None:
    with assert_nothing_counted(campaign):
        assert_refused(
            post_to_route(campaign, route, json.dumps(body).encode()), 422, "invalid-request"
        )


def test_unknown_keys_are_refused_and_not_repeated(campaign: RunningCampaign) -> None:
    device = campaign.enrol_device()
    with assert_nothing_counted(campaign):
        for key in ("group", "value", "__proto__", "epsilon", "Ticket", "918273645"):
            reply = campaign.submit({**device.body(), key: 1})
            assert_refused(reply, 422, "invalid-request")
            assert key not in reply.body.decode()
    assert campaign.submit(device.body()).status == 200


def test_of_a_key_that_comes_twice_the_last_counts_everywhere(campaign: RunningCampaign) -> None:
    device = campaign.enrol_device()
    twice = json.dumps(device.body()).replace('"values"', '"values": [1], "values"').encode()
    before = stored_counts(campaign)
    assert post_to_route(campaign, "reports", twice).status == 200
    assert stored_counts(campaign).submissions == before.submissions + 1
    assert campaign.submit(device.body()).status == 200
    assert stored_counts(campaign).submissions == before.submissions + 1
