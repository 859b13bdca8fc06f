"""Clients that do not read: they are cut off in time, and health checks are answered meanwhile."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from support.raw_http import (
    NO_RATE_LIMITS,
    assert_refused,
    connect,
    read_to_end,
    request_bytes,
    status_of,
)
from support.running_collectors import InProcessCollector, in_process_collector
from support.waiting import HANG_SECONDS, eventually
from unpoison.collector.http import connection_slots, write_deadline
from unpoison.collector.http.connection_slots import ConnectionSlots
from unpoison.system import open_files

PATIENCE = 0.5
LARGE = "/static/vendor/uPlot/uPlot.esm.js"
PIPELINED = 1000
"""Requests for a large file: their answers are more than all buffers of a connection hold."""
CONNECTIONS = 8


def unread_wire(
    server: InProcessCollector, path: str = LARGE, count: int = PIPELINED, buffer: int = 4096
) -> socket.socket:
    """A connection with requests whose answers nobody reads, with a small buffer for them."""
    wire = socket.socket()
    wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    wire.settimeout(HANG_SECONDS)
    wire.connect(("127.0.0.1", server.port))
    wire.sendall(request_bytes("GET", path) * count)
    return wire


@contextmanager
def unread_wires(server: InProcessCollector, count: int) -> Iterator[list[socket.socket]]:
    with ExitStack() as stack:
        yield [stack.enter_context(unread_wire(server)) for _ in range(count)]


def answered(server: InProcessCollector, path: str) -> int:
    return server.request("GET", path, token=server.token).status


@pytest.mark.server
def test_clients_that_do_not_read_are_cut_off(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """They hold all connections; without a time limit nobody else would ever be served."""
    few = {"connections": CONNECTIONS, "request_seconds": PATIENCE}
    with (
        in_process_collector(tmp_path, **few, **NO_RATE_LIMITS) as server,
        unread_wires(server, CONNECTIONS),
    ):
        eventually(lambda: answered(server, "/v1/campaigns") == 503)
        eventually(lambda: answered(server, "/v1/campaigns") == 200)
        eventually(lambda: server.guard.requests == 0)
    assert not caplog.records


@pytest.mark.server
def test_a_closed_connection_does_not_wait_for_its_reader(tmp_path: Path) -> None:
    """Closing sends what is left first: small answers, and a refusal that nobody reads."""
    few = {"connections": 1, "request_seconds": PATIENCE}
    with (
        in_process_collector(tmp_path, **few, **NO_RATE_LIMITS) as server,
        unread_wire(server, "/healthz", 20 * PIPELINED),
    ):
        eventually(lambda: answered(server, "/v1/campaigns") == 503)
        eventually(lambda: answered(server, "/v1/campaigns") == 200)


@pytest.mark.server
@pytest.mark.parametrize("path", connection_slots.HEALTH_PATHS)
def test_health_is_told_while_all_connections_are_taken(tmp_path: Path, path: str) -> None:
    few = {"connections": CONNECTIONS, "request_seconds": HANG_SECONDS}
    with (
        in_process_collector(tmp_path, **few, **NO_RATE_LIMITS) as server,
        unread_wires(server, CONNECTIONS),
    ):
        eventually(lambda: answered(server, "/v1/campaigns") == 503)
        assert_refused(server.request("GET", "/v1/campaigns"), 503, "unavailable")
        assert [answered(server, path) for _ in range(20)] == [200] * 20


@pytest.mark.server
def test_health_is_told_while_idle_connections_fill_the_reserve(tmp_path: Path) -> None:
    few = {"connections": CONNECTIONS, "request_seconds": HANG_SECONDS}
    idle = CONNECTIONS + 3 * connection_slots.LEAST_RESERVE
    with in_process_collector(tmp_path, **few, **NO_RATE_LIMITS) as server, ExitStack() as stack:
        for _ in range(idle):
            stack.enter_context(connect(server))
        assert [answered(server, "/healthz") for _ in range(20)] == [200] * 20
        assert_refused(server.request("GET", "/v1/campaigns"), 503, "unavailable")


@pytest.mark.server
def test_a_slow_but_steady_reader_gets_the_whole_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(write_deadline, "MIN_BYTES_PER_SECOND", 1)
    with (
        in_process_collector(tmp_path, request_seconds=PATIENCE, **NO_RATE_LIMITS) as server,
        unread_wire(server, LARGE, 30, buffer=2**16) as wire,
    ):
        started, received = time.monotonic(), 0
        while time.monotonic() < started + 4 * PATIENCE:
            received += len(wire.recv(2**16))
            time.sleep(0.1 * PATIENCE)
        wire.sendall(request_bytes("GET", "/healthz", "Connection: close"))
        rest = read_to_end(wire)
        assert received
        assert rest.endswith(b'{"status":"ok"}')
        assert status_of(rest[rest.rindex(b"HTTP/1.1 ") :]) == 200


class Buffer(asyncio.Transport):
    """A transport that a test drains by hand."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size, self.aborted = size, False

    def get_write_buffer_size(self) -> int:
        return self.size

    def abort(self) -> None:
        self.aborted = True


@pytest.mark.parametrize(("read", "aborted"), [(0, True), (1000, True), (2**14, False)])
def test_the_least_rate_is_demanded_of_each_period(read: int, aborted: bool) -> None:
    loop, buffer = asyncio.new_event_loop(), Buffer(2**20)
    deadline = write_deadline.WriteDeadline(loop, buffer, seconds=1.0)
    deadline.watch()
    buffer.size -= read
    deadline._end_period()
    assert buffer.aborted is aborted
    assert (deadline.timer is None) is aborted
    loop.close()


def test_an_ordinary_slot_that_is_freed_goes_to_the_reserve() -> None:
    slots = ConnectionSlots(most=1, reserve=2)
    first, second = Buffer(0), Buffer(0)
    slots.add(first)
    slots.add(second)
    assert (slots.is_reserved(first), slots.is_reserved(second)) == (False, True)
    slots.remove(first)
    assert not slots.is_reserved(second)
    slots.remove(second)
    assert not slots.ordinary
    assert not slots.reserved


@pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="there is no limit on open files")
@pytest.mark.parametrize(
    ("soft", "hard", "allowed"), [(256, 4096, 1000), (256, 512, 512), (2000, 4096, 1000)]
)
def test_the_limit_on_open_files_is_raised_as_far_as_it_may(
    monkeypatch: pytest.MonkeyPatch, soft: int, hard: int, allowed: int
) -> None:
    import resource

    limits = [(soft, hard)]
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits[-1])
    monkeypatch.setattr(resource, "setrlimit", lambda _, pair: limits.append(pair))
    assert open_files.allow_open_files(1000) == allowed
    assert limits[-1] == ((soft, hard) if soft >= 1000 else (allowed, hard))
