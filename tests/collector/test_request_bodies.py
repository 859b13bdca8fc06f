"""Request bodies that are too large, too deep or full of faults are refused at little cost."""

from __future__ import annotations

import json
import secrets
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError

from support.raw_http import (
    BUFFERS,
    CHUNKED,
    DEVICE_ROUTES,
    JSON,
    MEGABYTE,
    NO_RATE_LIMITS,
    assert_nothing_counted,
    assert_refused,
    campaign_fixture,
    connect,
    exchange,
    post_to_route,
    read_to_end,
    request_bytes,
    send_until_cut,
    server_fixture,
    status_of,
)
from support.running_collectors import (
    InProcessCollector,
    RunningCampaign,
    in_process_collector,
)
from support.waiting import eventually
from unpoison.collector.http import direct_route, request_body
from unpoison.collector.http.models import BatchBody, Body, SubmissionBody

server = server_fixture(**NO_RATE_LIMITS)
campaign = campaign_fixture()


def alive(server: InProcessCollector) -> bool:
    return server.request("GET", "/healthz").status == 200


@pytest.mark.parametrize("route", DEVICE_ROUTES)
@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"[" * 100_000, 400),
        (b"[" * 100_000 + b"]" * 100_000, 400),
        (b'{"a":' * 100_000, 422),
        (b'{"a":' * 90 + b"[" * 100_000, 400),
        (b'{"values":' + b"[" * 50_000 + b"]" * 50_000 + b"}", 400),
    ],
    ids=["open", "closed", "objects", "mixed", "values"],
)
def test_deep_json_is_refused(
    campaign: RunningCampaign, route: str, body: bytes, status: int
) -> None:
    with assert_nothing_counted(campaign):
        assert_refused(post_to_route(campaign, route, body), status, "invalid-request")


@pytest.mark.parametrize("body", [b"[" * 100_000, b'{"plan":' * 100_000, b"[" * 900 + b"]" * 900])
def test_deep_json_from_an_operator_is_refused_too(server: InProcessCollector, body: bytes) -> None:
    reply = server.post("/v1/campaigns", body, token=server.token)
    assert (reply.status, reply.code) in ((400, "invalid-request"), (422, "invalid-request"))
    nested = b'{"name": "Deep", "plan": {"epsilon": ' + b"[" * 900 + b"]" * 900 + b"}}"
    assert_refused(server.post("/v1/campaigns", nested, token=server.token), 422, "invalid-plan")


def flooded(server: InProcessCollector, head: bytes, part: bytes, total: int) -> tuple[int, bytes]:
    """Send parts until the collector cuts the connection; how much went out, and the answer."""
    with connect(server) as wire:
        wire.sendall(head)
        gone = 0
        while gone < total:
            done = send_until_cut(wire, part)
            gone += done
            if done < len(part):
                break
        return gone, read_to_end(wire)


@pytest.mark.parametrize(
    ("route", "limit"),
    [
        ("reports", MEGABYTE),
        ("tickets", MEGABYTE),
        ("reports/batch", request_body.MOST_BATCH_BYTES),
    ],
)
def test_100_megabytes_are_cut_off_early(
    server: InProcessCollector, campaign: RunningCampaign, route: str, limit: int
) -> None:
    path, total = f"{campaign.path}/{route}", 100 * MEGABYTE
    with assert_nothing_counted(campaign):
        promised = request_bytes("POST", path, JSON, f"Content-Length: {total}")
        gone, answer = flooded(server, promised, b"[" * MEGABYTE, total)
        assert (status_of(answer), gone < BUFFERS) == (413, True)
        chunk = b"%x\r\n%s\r\n" % (MEGABYTE, b"[" * MEGABYTE)
        gone, answer = flooded(server, request_bytes("POST", path, JSON, CHUNKED), chunk, total)
        assert (status_of(answer), gone < limit + BUFFERS) == (413, True)
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["code"] == "too-large"
    assert alive(server)


def test_a_large_body_is_refused_before_it_is_sent(
    server: InProcessCollector, campaign: RunningCampaign
) -> None:
    expect = "Expect: 100-continue"
    path = f"{campaign.path}/reports"
    large = request_bytes("POST", path, JSON, expect, f"Content-Length: {100 * MEGABYTE}")
    assert status_of(exchange(server, large)) == 413


def test_nobody_may_send_a_large_body_where_none_is_wanted(server: InProcessCollector) -> None:
    chunk = b"%x\r\n%s\r\n" % (MEGABYTE, b"[" * MEGABYTE)
    for method, path in (("GET", "/healthz"), ("POST", "/nothing"), ("PUT", "/"), ("GET", "/")):
        gone, _ = flooded(server, request_bytes(method, path, JSON, CHUNKED), chunk, 100 * MEGABYTE)
        assert gone < BUFFERS
    assert alive(server)


@pytest.mark.parametrize(
    ("route", "limit"), [("reports", MEGABYTE), ("reports/batch", request_body.MOST_BATCH_BYTES)]
)
def test_a_body_may_have_exactly_the_limit_and_no_more(
    server: InProcessCollector, campaign: RunningCampaign, route: str, limit: int
) -> None:
    with assert_nothing_counted(campaign):
        assert_refused(post_to_route(campaign, route, b" " * limit), 400, "invalid-request")
        path = f"{campaign.path}/{route}"
        more = request_bytes(
            "POST", path, JSON, f"Content-Length: {limit + 1}", body=b" " * (limit + 1)
        )
        assert status_of(exchange(server, more)) == 413


def faulty(kind: str) -> bytes:
    """Three megabytes with as many faults as they can have."""
    device = secrets.token_hex(32)
    if kind == "values":
        one = {"ticket": "x", "device": device, "values": [""] * 60_000}
        return json.dumps({"submissions": [one] * 12}).encode()
    if kind == "keys":
        return json.dumps({f"{number:x}": 1 for number in range(200_000)}).encode()
    many = {f"{number:x}": 1 for number in range(200_000)}
    return json.dumps({"submissions": [many]}).encode()


@pytest.fixture
def errors_made(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Every error that the collector makes out of a body's faults."""
    made: list[object] = []

    class Recorded(RequestValidationError):
        def __init__(self, errors: Sequence[Any]) -> None:
            made.extend(errors)
            super().__init__(errors)

    monkeypatch.setattr(direct_route, "RequestValidationError", Recorded)
    return made


@pytest.mark.parametrize("kind", ["values", "keys", "nested keys"])
def test_a_million_faults_cost_no_more_than_one(
    campaign: RunningCampaign, kind: str, errors_made: list[object]
) -> None:
    body = faulty(kind)
    assert len(body) > 2 * MEGABYTE
    with assert_nothing_counted(campaign):
        reply = post_to_route(campaign, "reports/batch", body)
    assert_refused(reply, 422, "invalid-request")
    assert len(reply.body) < 500
    # Too many keys are refused unread; lists stop at their first fault.
    assert len(errors_made) == (1 if kind == "values" else 0)


def test_lists_stop_at_their_first_fault() -> None:
    device = secrets.token_hex(32)
    bodies: list[tuple[type[Body], dict[str, Any]]] = [
        (SubmissionBody, {"ticket": "x", "device": device, "values": [""] * 1000}),
        (BatchBody, {"submissions": [{}] * 1000}),
    ]
    for model, body in bodies:
        with pytest.raises(ValidationError) as caught:
            model.model_validate_json(json.dumps(body))
        assert caught.value.error_count() <= 3


def test_a_full_batch_has_no_more_keys_than_are_allowed(campaign: RunningCampaign) -> None:
    one = {"ticket": "x", "device": secrets.token_hex(32), "values": [1]}
    body = json.dumps({"submissions": [one] * 10_000}).encode()
    with assert_nothing_counted(campaign):
        results = post_to_route(campaign, "reports/batch", body).json["results"]
        more = json.dumps({"submissions": [one] * 10_001}).encode()
        assert_refused(post_to_route(campaign, "reports/batch", more), 422, "invalid-request")
    assert len(results) == 10_000
    assert {result["error"]["code"] for result in results} == {"invalid-ticket"}


def half_sent(server: InProcessCollector, path: str, size: int) -> socket.socket:
    """A connection with a body that has not ended."""
    wire = connect(server)
    promised = request_bytes("POST", path, JSON, f"Content-Length: {size + 1}")
    wire.sendall(promised + b" " * size)
    return wire


def test_large_bodies_share_a_memory_bound_and_small_ones_always_fit(
    server: InProcessCollector, campaign: RunningCampaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_body, "MOST_BYTES_IN_FLIGHT", 4 * MEGABYTE)
    device, path = campaign.enrol_device(), f"{campaign.path}/reports/batch"
    large = json.dumps({"submissions": []}).encode() + b" " * (2 * MEGABYTE)
    assert server.post(path, large).json == {"results": []}
    with half_sent(server, path, 3 * MEGABYTE):
        eventually(lambda: server.guard.body_memory.in_flight == 3 * MEGABYTE)
        reply = server.post(path, large)
        assert_refused(reply, 503, "unavailable")
        assert int(reply.headers["retry-after"]) > 0
        assert campaign.submit(device.body()).status == 200
        assert server.guard.body_memory.in_flight == 3 * MEGABYTE
    eventually(lambda: server.guard.body_memory.in_flight == 0)
    assert server.post(path, large).json == {"results": []}


@pytest.mark.server
def test_too_many_requests_at_once_are_told_to_come_back(tmp_path: Path) -> None:
    with in_process_collector(tmp_path, connections=3, **NO_RATE_LIMITS) as server:
        campaign = server.create_campaign()
        device, path = campaign.enrol_device(), f"{campaign.path}/reports"
        wires = [half_sent(server, path, 10) for _ in range(3)]
        eventually(lambda: server.guard.body_memory.in_flight == 30)
        with assert_nothing_counted(campaign):
            reply = campaign.submit(device.body())
            assert_refused(reply, 503, "unavailable")
            assert int(reply.headers["retry-after"]) > 0
        for wire in wires:
            wire.close()
        eventually(lambda: server.guard.body_memory.in_flight == 0)
        assert campaign.submit(device.body()).status == 200
