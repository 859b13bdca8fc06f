"""Connections that are slow, endless, pipelined or no HTTP at all: each is cut or answered."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import Iterable, Iterator
from itertools import chain, cycle, repeat
from pathlib import Path
from typing import Any

import pytest

from support.raw_http import (
    BUFFERS,
    CHUNKED,
    JSON,
    MEGABYTE,
    NO_RATE_LIMITS,
    assert_nothing_counted,
    assert_refused,
    campaign_fixture,
    connect,
    exchange,
    read_to_end,
    request_bytes,
    send_until_cut,
    server_fixture,
    status_of,
    stored_counts,
)
from support.running_collectors import (
    InProcessCollector,
    Reply,
    RunningCampaign,
    in_process_collector,
)
from support.waiting import HANG_SECONDS

PATIENCE = 0.5

server = server_fixture(request_seconds=PATIENCE, **NO_RATE_LIMITS)
campaign = campaign_fixture()


def parsed(answer: bytes) -> Reply:
    """An answer's bytes as a reply."""
    head, _, body = answer.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")[1:]
    pairs = [line.split(": ", 1) for line in lines]
    return Reply(status_of(answer), {name.lower(): text for name, text in pairs}, body)


def dribble(wire: socket.socket, data: Iterable[int], started: float) -> None:
    """Send a byte every 50 ms; the connection must be cut in the end, but not at once.

    `started` is a moment before the collector began to wait: if this thread is held up, the
    collector seems to have waited longer, never shorter.
    """
    wire.settimeout(0.05)
    for byte in data:
        assert time.monotonic() < started + HANG_SECONDS, "the connection was never cut"
        try:
            wire.send(bytes([byte]))
            wire.recv(1, socket.MSG_PEEK)
            break
        except TimeoutError:
            continue
        except OSError:
            break
    wire.settimeout(HANG_SECONDS)
    assert was_patient(started)


def was_patient(started: float) -> bool:
    """Whether the collector has waited; how long a busy machine took beyond that is no matter."""
    return time.monotonic() - started > 0.5 * PATIENCE


def endless(head: bytes) -> Iterator[int]:
    """The bytes of a head that never ends."""
    return chain(head, repeat(ord("a")))


def test_a_head_must_come_in_time_however_steadily_it_comes(server: InProcessCollector) -> None:
    started = time.monotonic()
    with connect(server) as wire:
        dribble(wire, endless(b"GET /healthz HTTP/1.1\r\nHost: collector\r\nX: "), started)
        assert_refused(parsed(read_to_end(wire)), 408, "too-slow")


def test_the_next_head_on_a_connection_must_come_in_time_too(server: InProcessCollector) -> None:
    with connect(server) as wire:
        wire.sendall(request_bytes("GET", "/healthz"))
        assert status_of(wire.recv(2**16)) == 200
        started = time.monotonic()
        dribble(wire, endless(b"GET /healthz HTTP/1.1\r\nX: "), started)


def test_a_connection_that_says_nothing_is_closed(server: InProcessCollector) -> None:
    started = time.monotonic()
    with connect(server) as wire:
        assert wire.recv(1) == b""
    assert was_patient(started)


@pytest.mark.parametrize("length", ["Content-Length: 1000000", CHUNKED])
def test_a_body_must_come_in_time_however_steadily_it_comes(
    server: InProcessCollector, campaign: RunningCampaign, length: str
) -> None:
    part = b"1\r\n \r\n" if length == CHUNKED else b" "
    with assert_nothing_counted(campaign), connect(server) as wire:
        started = time.monotonic()
        wire.sendall(request_bytes("POST", f"{campaign.path}/reports", JSON, length))
        dribble(wire, cycle(part), started)
        assert_refused(parsed(read_to_end(wire)), 408, "too-slow")


def test_a_promised_body_must_come(server: InProcessCollector, campaign: RunningCampaign) -> None:
    started = time.monotonic()
    promise = request_bytes("POST", f"{campaign.path}/reports", JSON, "Content-Length: 10")
    with assert_nothing_counted(campaign):
        assert_refused(parsed(exchange(server, promise)), 408, "too-slow")
    assert was_patient(started)


def test_a_body_after_its_answer_must_end_in_time(server: InProcessCollector) -> None:
    started = time.monotonic()
    with connect(server) as wire:
        wire.sendall(request_bytes("GET", "/healthz", "Content-Length: 1000000"))
        assert status_of(wire.recv(2**16)) == 200
        dribble(wire, cycle(b" "), started)


def is_open(wire: socket.socket) -> bool:
    """Whether the other side has neither said anything nor closed the connection."""
    wire.setblocking(False)
    try:
        wire.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return True
    return False


@pytest.mark.server
def test_slow_senders_do_not_slow_others(tmp_path: Path) -> None:
    """A request is answered while the slow ones are still waited for."""
    patient = {**NO_RATE_LIMITS, "request_seconds": 2 * HANG_SECONDS}
    with in_process_collector(tmp_path, **patient) as server:
        wires = [connect(server) for _ in range(100)]
        try:
            for wire in wires:
                wire.send(b"POST /v1/campaigns HTTP/1.1\r\n")
            assert server.request("GET", "/healthz").status == 200
            assert all(is_open(wire) for wire in wires)
        finally:
            for wire in wires:
                wire.close()


@pytest.mark.parametrize("size", [100_000, 200_000, 10 * MEGABYTE])
def test_a_head_that_is_too_large_is_cut_off(server: InProcessCollector, size: int) -> None:
    long = "a" * size
    many = ["X: a"] * (size // 4)
    for head in (
        request_bytes("GET", "/healthz", f"X: {long}"),
        request_bytes("GET", "/healthz", f"{long}: X"),
        request_bytes("GET", f"/{long}"),
        request_bytes("GET", f"/healthz?{long}"),
        request_bytes("GET", "/healthz", *many),
    ):
        with connect(server) as wire:
            gone = send_until_cut(wire, head)
            assert status_of(read_to_end(wire)) in (0, 400)
            assert gone < BUFFERS
    assert server.request("GET", "/healthz").status == 200


def test_a_head_of_moderate_size_is_accepted(server: InProcessCollector) -> None:
    many = {f"X-{number}": "a" * 50 for number in range(500)}
    assert server.request("GET", "/healthz", headers=many).status == 200


@pytest.mark.parametrize(
    "begun",
    [b"1\r\n \r\n0\r\nX: ", b"1\r\n \r\n0\r\n", b"1;", b"1;x=", b"00000000"],
    ids=["trailer", "trailers", "extension", "extension value", "zeros"],
)
def test_trailers_and_chunk_extensions_that_are_too_large_are_cut_off(
    server: InProcessCollector, campaign: RunningCampaign, begun: bytes
) -> None:
    endless = b"X: a\r\n" if begun.endswith(b"\n") else b"0" if begun.endswith(b"0") else b"a"
    with assert_nothing_counted(campaign), connect(server) as wire:
        wire.sendall(request_bytes("POST", f"{campaign.path}/reports", JSON, CHUNKED) + begun)
        gone = send_until_cut(wire, endless * (50 * MEGABYTE // len(endless)))
        assert gone < BUFFERS
        assert status_of(read_to_end(wire)) in (0, 400, 408)
    assert server.request("GET", "/healthz").status == 200


def test_while_a_request_is_being_answered_no_more_than_a_head_is_taken_in(
    server: InProcessCollector, campaign: RunningCampaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def slow(name: str) -> dict[str, Any]:
        await asyncio.sleep(1)
        return {}

    monkeypatch.setattr(server.collector, "status", slow)
    token = f"Authorization: Bearer {server.token}"
    with connect(server) as wire:
        wire.sendall(request_bytes("GET", f"{campaign.path}/status", token))
        gone = send_until_cut(wire, b"GET / HTTP/1.1\r\nX: " + b"a" * (50 * MEGABYTE))
        assert gone < BUFFERS


GARBAGE = (
    b"\r\n\r\nhello\r\n\r\n",
    b"\x00" * 1000,
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\xaa" * 100,
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"GET\r\n\r\n",
    b"GET / HTTP/9.9\r\n\r\n",
    b"GET / HTTQ/1.1\r\n\r\n",
    b"FETCH / HTTP/1.1\r\nHost: x\r\n\r\n",
    b"CONNECT collector:80 HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET /\xff\xfe HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost x\r\n\r\n",
    b"GET / HTTP/1.1\r\nHo st: x\r\n\r\n",
    b"GET / HTTP/1.1\r\nX: \x00\r\n\r\n",
    b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
    b"POST / HTTP/1.1\r\nContent-Length: 1e3\r\n\r\n",
    b"POST / HTTP/1.1\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n",
    b"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n12",
    b"POST / HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n",
    b"POST / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\nabc",
    b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked, identity\r\n\r\nabc",
    b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
    b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n",
    b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
)


@pytest.mark.parametrize("data", GARBAGE, ids=range(len(GARBAGE)))
def test_bytes_that_are_no_http_are_refused(server: InProcessCollector, data: bytes) -> None:
    reply = parsed(exchange(server, data))
    assert_refused(reply, 400, "invalid-request")
    assert reply.headers["connection"] == "close"
    assert reply.headers["x-content-type-options"] == "nosniff"


def answers(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The answers in a row of them, each with its status and body."""
    while data:
        head, _, data = data.partition(b"\r\n\r\n")
        reply = parsed(head + b"\r\n\r\n")
        length = int(reply.headers["content-length"])
        yield reply.status, data[:length]
        data = data[length:]


def test_pipelined_requests_are_answered_each_and_in_order(server: InProcessCollector) -> None:
    paths = [("/healthz", 200), ("/nothing", 404), ("/v1/campaigns", 401)] * 20
    data = b"".join(request_bytes("GET", path) for path, _ in paths)
    last = request_bytes("GET", "/healthz", "Connection: close")
    statuses = [status for status, _ in answers(exchange(server, data + last))]
    assert statuses == [*(status for _, status in paths), 200]


def test_a_pipelined_submission_counts_once(
    server: InProcessCollector, campaign: RunningCampaign
) -> None:
    device, before = campaign.enrol_device(), stored_counts(campaign)
    body = json.dumps(device.body()).encode()
    one = request_bytes(
        "POST", f"{campaign.path}/reports", JSON, f"Content-Length: {len(body)}", body=body
    )
    last = request_bytes("GET", "/healthz", "Connection: close")
    replies = list(answers(exchange(server, one * 10 + last)))
    assert replies[:10] == [(200, b'{"status":"accepted"}')] * 10
    assert stored_counts(campaign).submissions == before.submissions + 1


def test_upgrades_are_ignored(server: InProcessCollector) -> None:
    for kind in ("websocket", "h2c", "TLS/1.3"):
        headers = [f"Upgrade: {kind}", "Connection: Upgrade", "Sec-WebSocket-Version: 13"]
        with connect(server) as wire:
            wire.sendall(request_bytes("GET", "/healthz", *headers))
            assert status_of(wire.recv(2**16)) == 200
