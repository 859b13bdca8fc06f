"""What tests of abuse share: what a campaign has counted, and bytes as they go over the wire."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from support.running_collectors import CampaignFace, Here, Reply, collector_here
from unpoison.collector.campaigns import status as history
from unpoison.collector.campaigns.campaigns import Campaigns
from unpoison.collector.campaigns.tallies import Tallies
from unpoison.collector.campaigns.temporary import scratch_database
from unpoison.collector.http.application import application_of, routes_of
from unpoison.collector.service.collector import Collector
from unpoison.collector.settings import Settings

PATIENT: dict[str, Any] = {
    "guesses_per_minute": 1_000_000,
    "enrolments_per_hour": 1_000_000,
    "batch_delay": 0,
}
"""Settings of a collector that does not mind how often it is asked, and answers at once."""
JSON = "Content-Type: application/json"
CHUNKED = "Transfer-Encoding: chunked"
MEGABYTE = 2**20
BUFFERS = 16 * MEGABYTE
"""What the two ends of a connection may hold on their own, generously."""


def here_fixture(**settings: Any) -> Callable[[pytest.TempPathFactory], Iterator[Here]]:
    """A collector for all tests of a module."""

    @pytest.fixture(scope="module")
    def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Here]:
        with collector_here(tmp_path_factory.mktemp("collector"), **settings) as found:
            yield found

    return here


def campaign_fixture(**keys: Any) -> Callable[[Here], CampaignFace]:
    """A campaign for all tests of a module."""

    @pytest.fixture(scope="module")
    def campaign(here: Here) -> CampaignFace:
        return here.campaign(**keys)

    return campaign


class Counts(NamedTuple):
    """What a campaign's rows say at this moment, past all that is kept in memory."""

    enrolled: int
    used: int
    submissions: int
    reports: int


def counts(campaign: CampaignFace) -> Counts:
    face = campaign.face
    assert isinstance(face, Here)
    with face.collector.database.reading() as connection:
        found = Campaigns.find(connection, campaign.id)
        assert found is not None
        told = history.status(connection, found)
        reports = int(Tallies.summary(connection, found).counts.sum())
    assert told["reports"] == reports
    return Counts(told["enrolled"], told["invites"]["used"], told["submissions"], reports)


@contextmanager
def nothing_counted(campaign: CampaignFace) -> Iterator[None]:
    """Whatever is done in between changes no count."""
    before = counts(campaign)
    yield
    assert counts(campaign) == before


def refused(reply: Reply, status: int, code: str) -> None:
    """It is the one refusal that was expected, in the one shape."""
    assert (reply.status, reply.code) == (status, code), reply
    assert reply.headers["content-type"] == "application/json"


def request(method: str, path: str, *headers: str, body: bytes = b"") -> bytes:
    """A request's bytes."""
    lines = [f"{method} {path} HTTP/1.1", "Host: collector", *headers, "", ""]
    return "\r\n".join(lines).encode("latin-1") + body


def connect(here: Here, seconds: float = 10.0) -> socket.socket:
    return socket.create_connection(("127.0.0.1", here.port), timeout=seconds)


def exchanged(here: Here, data: bytes, seconds: float = 10.0) -> bytes:
    """All that comes back for some bytes until the collector closes the connection."""
    with connect(here, seconds) as wire:
        sent(wire, data)
        return rest(wire)


def sent(wire: socket.socket, data: bytes) -> int:
    """Send until the other side has had enough; how many bytes went out."""
    done = 0
    try:
        while done < len(data):
            done += wire.send(data[done : done + 2**16])
    except (BrokenPipeError, ConnectionResetError):
        pass
    return done


def rest(wire: socket.socket) -> bytes:
    """Read until the connection ends."""
    found = b""
    try:
        while part := wire.recv(2**16):
            found += part
    except ConnectionResetError:
        pass
    return found


def status_of(answer: bytes) -> int:
    """The status of an answer's bytes; 0 where there is none."""
    return int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/1.1 ") else 0


def described() -> dict[str, Any]:
    """The paths in the description of a collector, which never runs."""
    with scratch_database() as database:
        application = application_of(Collector(Settings.load(), database, ["a key"]))
    found: dict[str, Any] = routes_of(application).openapi()["paths"]
    return found


def keys_of(folder: Path) -> Path:
    """Where a collector in a folder has its keys."""
    return folder / "reports.db.keys"
