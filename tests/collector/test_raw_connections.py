"""Whatever else can come over a connection: slowly, without end, as no HTTP, or to odd paths."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest

from support.raw_http import (
    BUFFERS,
    CHUNKED,
    JSON,
    MEGABYTE,
    PATIENT,
    campaign_fixture,
    connect,
    counts,
    exchanged,
    here_fixture,
    nothing_counted,
    refused,
    request,
    rest,
    sent,
    status_of,
)
from support.running_collectors import CampaignFace, Here, Reply

PATIENCE = 0.5

here = here_fixture(request_seconds=PATIENCE, **PATIENT)
campaign = campaign_fixture()


def parsed(answer: bytes) -> Reply:
    """An answer's bytes as a reply."""
    head, _, body = answer.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")[1:]
    pairs = [line.split(": ", 1) for line in lines]
    return Reply(status_of(answer), {name.lower(): text for name, text in pairs}, body)


def dribbled(wire: socket.socket, data: bytes) -> float:
    """Send a byte every 50 ms until the connection is cut; how long that took."""
    started = time.monotonic()
    wire.settimeout(0.05)
    for byte in data:
        try:
            wire.send(bytes([byte]))
            wire.recv(1, socket.MSG_PEEK)
            break
        except TimeoutError:
            continue
        except OSError:
            break
    else:
        pytest.fail("the connection was never cut")
    wire.settimeout(5)
    return time.monotonic() - started


def cut_in_time(seconds: float) -> bool:
    """Not at once, and not much later than it should be."""
    return 0.5 * PATIENCE < seconds < PATIENCE + 2


def test_a_head_must_come_in_time_however_steadily_it_comes(here: Here) -> None:
    with connect(here) as wire:
        seconds = dribbled(wire, b"GET /healthz HTTP/1.1\r\nHost: collector\r\nX: " + b"a" * 200)
        assert cut_in_time(seconds)
        refused(parsed(rest(wire)), 408, "too-slow")


def test_the_next_head_on_a_connection_must_come_in_time_too(here: Here) -> None:
    with connect(here) as wire:
        wire.sendall(request("GET", "/healthz"))
        assert status_of(wire.recv(2**16)) == 200
        assert cut_in_time(dribbled(wire, b"GET /healthz HTTP/1.1\r\nX: " + b"a" * 200))


def test_a_connection_that_says_nothing_is_closed(here: Here) -> None:
    started = time.monotonic()
    with connect(here) as wire:
        assert wire.recv(1) == b""
    assert cut_in_time(time.monotonic() - started)


@pytest.mark.parametrize("length", ["Content-Length: 1000", CHUNKED])
def test_a_body_must_come_in_time_however_steadily_it_comes(
    here: Here, campaign: CampaignFace, length: str
) -> None:
    part = b"1\r\n \r\n" if length == CHUNKED else b" "
    with nothing_counted(campaign), connect(here) as wire:
        wire.sendall(request("POST", f"{campaign.path}/reports", JSON, length))
        assert cut_in_time(dribbled(wire, part * 200))
        refused(parsed(rest(wire)), 408, "too-slow")


def test_a_promised_body_must_come(here: Here, campaign: CampaignFace) -> None:
    started = time.monotonic()
    promise = request("POST", f"{campaign.path}/reports", JSON, "Content-Length: 10")
    with nothing_counted(campaign):
        refused(parsed(exchanged(here, promise)), 408, "too-slow")
    assert cut_in_time(time.monotonic() - started)


def test_a_body_after_its_answer_must_end_in_time(here: Here) -> None:
    with connect(here) as wire:
        wire.sendall(request("GET", "/healthz", "Content-Length: 1000"))
        assert status_of(wire.recv(2**16)) == 200
        assert cut_in_time(dribbled(wire, b" " * 200))


def test_slow_senders_do_not_slow_others(here: Here) -> None:
    wires = [connect(here) for _ in range(100)]
    try:
        for wire in wires:
            wire.send(b"POST /v1/campaigns HTTP/1.1\r\n")
        started = time.monotonic()
        assert here.ask("GET", "/healthz").status == 200
        assert time.monotonic() - started < PATIENCE
    finally:
        for wire in wires:
            wire.close()


@pytest.mark.parametrize("size", [100_000, 200_000, 10 * MEGABYTE])
def test_a_head_has_a_size(here: Here, size: int) -> None:
    long = "a" * size
    many = ["X: a"] * (size // 4)
    for head in (
        request("GET", "/healthz", f"X: {long}"),
        request("GET", "/healthz", f"{long}: X"),
        request("GET", f"/{long}"),
        request("GET", f"/healthz?{long}"),
        request("GET", "/healthz", *many),
    ):
        with connect(here) as wire:
            gone = sent(wire, head)
            assert status_of(rest(wire)) in (0, 400)
            assert gone < BUFFERS
    assert here.ask("GET", "/healthz").status == 200


def test_a_head_of_some_size_is_fine(here: Here) -> None:
    many = {f"X-{number}": "a" * 50 for number in range(500)}
    assert here.ask("GET", "/healthz", headers=many).status == 200


@pytest.mark.parametrize(
    "begun",
    [b"1\r\n \r\n0\r\nX: ", b"1\r\n \r\n0\r\n", b"1;", b"1;x=", b"00000000"],
    ids=["trailer", "trailers", "extension", "extension value", "zeros"],
)
def test_what_is_around_a_body_has_a_size_too(
    here: Here, campaign: CampaignFace, begun: bytes
) -> None:
    endless = b"X: a\r\n" if begun.endswith(b"\n") else b"0" if begun.endswith(b"0") else b"a"
    with nothing_counted(campaign), connect(here) as wire:
        wire.sendall(request("POST", f"{campaign.path}/reports", JSON, CHUNKED) + begun)
        gone = sent(wire, endless * (50 * MEGABYTE // len(endless)))
        assert gone < BUFFERS
        assert status_of(rest(wire)) in (0, 400, 408)
    assert here.ask("GET", "/healthz").status == 200


def test_while_a_request_is_being_answered_no_more_than_a_head_is_taken_in(
    here: Here, campaign: CampaignFace, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def slow(name: str) -> dict[str, Any]:
        await asyncio.sleep(1)
        return {}

    monkeypatch.setattr(here.collector, "status", slow)
    token = f"Authorization: Bearer {here.token}"
    with connect(here) as wire:
        wire.sendall(request("GET", f"{campaign.path}/status", token))
        gone = sent(wire, b"GET / HTTP/1.1\r\nX: " + b"a" * (50 * MEGABYTE))
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
def test_what_is_no_http_is_told_so(here: Here, data: bytes) -> None:
    reply = parsed(exchanged(here, data))
    refused(reply, 400, "invalid-request")
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


def test_pipelined_requests_are_answered_each_and_in_order(here: Here) -> None:
    paths = [("/healthz", 200), ("/nothing", 404), ("/v1/campaigns", 401)] * 20
    data = b"".join(request("GET", path) for path, _ in paths)
    last = request("GET", "/healthz", "Connection: close")
    found = [status for status, _ in answers(exchanged(here, data + last))]
    assert found == [*(status for _, status in paths), 200]


def test_a_pipelined_submission_counts_once(here: Here, campaign: CampaignFace) -> None:
    device, before = campaign.enrolled(), counts(campaign)
    body = json.dumps(device.body()).encode()
    one = request(
        "POST", f"{campaign.path}/reports", JSON, f"Content-Length: {len(body)}", body=body
    )
    last = request("GET", "/healthz", "Connection: close")
    found = list(answers(exchanged(here, one * 10 + last)))
    assert found[:10] == [(200, b'{"status":"accepted"}')] * 10
    assert counts(campaign).submissions == before.submissions + 1


def test_an_upgrade_is_not_taken(here: Here) -> None:
    for kind in ("websocket", "h2c", "TLS/1.3"):
        headers = [f"Upgrade: {kind}", "Connection: Upgrade", "Sec-WebSocket-Version: 13"]
        with connect(here) as wire:
            wire.sendall(request("GET", "/healthz", *headers))
            assert status_of(wire.recv(2**16)) == 200
