"""Raw bytes to a collector in this process, and checks that they changed nothing it stores."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from support.running_collectors import (
    InProcessCollector,
    Reply,
    RunningCampaign,
    SteppedClock,
    in_process_collector,
)
from support.waiting import HANG_SECONDS
from unpoison.collector.campaigns import status as campaign_status
from unpoison.collector.campaigns.campaigns import Campaigns
from unpoison.collector.campaigns.tallies import Tallies
from unpoison.collector.http.application import application_of, routes_of
from unpoison.collector.service.collector import Collector
from unpoison.collector.settings import Settings
from unpoison.collector.storage.temporary_database import temporary_database

NO_RATE_LIMITS: dict[str, Any] = {
    "guesses_per_minute": 1_000_000,
    "enrolments_per_hour": 1_000_000,
    "batch_delay": 0,
}
"""Settings whose limits no test reaches, and under which answers do not wait for a batch."""
JSON = "Content-Type: application/json"
CHUNKED = "Transfer-Encoding: chunked"
MEGABYTE = 2**20
DEVICE_ROUTES = ("tickets", "reports", "reports/batch")
"""What devices post to, below the path of a campaign."""
BUFFERS = 16 * MEGABYTE
"""More than the socket buffers at both ends of a connection can hold together."""


def server_fixture(
    **settings: Any,
) -> Callable[[pytest.TempPathFactory], Iterator[InProcessCollector]]:
    """Fixture `server`: one collector for all tests of a module."""

    @pytest.fixture(scope="module")
    def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcessCollector]:
        with in_process_collector(tmp_path_factory.mktemp("collector"), **settings) as running:
            yield running

    return server


def campaign_fixture(**keys: Any) -> Callable[[InProcessCollector], RunningCampaign]:
    """Fixture `campaign`: one campaign of `server` for all tests of a module."""

    @pytest.fixture(scope="module")
    def campaign(server: InProcessCollector) -> RunningCampaign:
        return server.create_campaign(**keys)

    return campaign


def clock_fixture() -> Callable[[InProcessCollector], Iterator[SteppedClock]]:
    """Fixture `clock`: the clock of `server`, set right again after each test."""

    @pytest.fixture
    def clock(server: InProcessCollector) -> Iterator[SteppedClock]:
        yield server.clock
        server.clock.step = 0

    return clock


class StoredCounts(NamedTuple):
    """What a campaign's rows add up to, read from the database and not from any cache."""

    enrolled: int
    used: int
    submissions: int
    reports: int


def stored_counts(campaign: RunningCampaign) -> StoredCounts:
    server = campaign.server
    assert isinstance(server, InProcessCollector)
    with server.collector.database.reading() as connection:
        row = Campaigns.find(connection, campaign.id)
        assert row is not None
        status = campaign_status.status(connection, row)
        reports = int(Tallies.summary(connection, row).counts.sum())
    assert status["reports"] == reports
    used = status["invites"]["used"]
    return StoredCounts(status["enrolled"], used, status["submissions"], reports)


@contextmanager
def assert_nothing_counted(campaign: RunningCampaign) -> Iterator[None]:
    """Check that the block changes none of the stored counts."""
    before = stored_counts(campaign)
    yield
    assert stored_counts(campaign) == before


def assert_refused(reply: Reply, status: int, code: str) -> None:
    """Check that a reply is this refusal, as JSON of the one shape that all refusals have."""
    assert (reply.status, reply.code) == (status, code), reply
    assert reply.headers["content-type"] == "application/json"


def post_to_route(campaign: RunningCampaign, route: str, body: bytes, **headers: str) -> Reply:
    """Post bytes to a route of a campaign; `Content_Type` stands for the header Content-Type."""
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    return campaign.server.post(f"{campaign.path}/{route}", body, headers=named)


def request_bytes(method: str, path: str, *headers: str, body: bytes = b"") -> bytes:
    """The bytes of a request."""
    lines = [f"{method} {path} HTTP/1.1", "Host: collector", *headers, "", ""]
    return "\r\n".join(lines).encode("latin-1") + body


def connect(server: InProcessCollector, seconds: float = HANG_SECONDS) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=seconds)


def exchange(server: InProcessCollector, data: bytes, seconds: float = HANG_SECONDS) -> bytes:
    """Send bytes, and return all that comes back until the collector closes the connection."""
    with connect(server, seconds) as wire:
        send_until_cut(wire, data)
        return read_to_end(wire)


def send_until_cut(wire: socket.socket, data: bytes) -> int:
    """Send until the other side cuts the connection; return how many bytes went out."""
    count = 0
    try:
        while count < len(data):
            count += wire.send(data[count : count + 2**16])
    except (BrokenPipeError, ConnectionResetError):
        pass
    return count


def read_to_end(wire: socket.socket) -> bytes:
    """Read until the connection ends."""
    received = b""
    try:
        while piece := wire.recv(2**16):
            received += piece
    except ConnectionResetError:
        pass
    return received


def status_of(answer: bytes) -> int:
    """The status in the bytes of an answer; 0 if there is no answer."""
    return int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/1.1 ") else 0


@cache
def openapi_paths() -> dict[str, Any]:
    """The paths in the OpenAPI description; no collector has to run for it."""
    with temporary_database() as database:
        application = application_of(Collector(Settings.load(), database, ["a key"]))
    paths: dict[str, Any] = routes_of(application).openapi()["paths"]
    return paths


def key_file_of(folder: Path) -> Path:
    """The key file of a collector whose database is in a folder."""
    return folder / "reports.db.keys"
