"""Readiness: `/readyz` fails where a write of the size of a batch would."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event, text

from support.forked_collectors import CollectorForker, ForkServer
from support.running_collectors import InProcessCollector, in_process_collector
from support.waiting import eventually
from unpoison.collector.storage import write_probe
from unpoison.collector.storage.database import Database
from unpoison.collector.storage.writer import PROBE_SECONDS

TOKEN = "the-token-of-the-operator"
DISK_BYTES = 4 * 2**20
"""Size of the small file system, which an empty database and its log take half of."""


@pytest.fixture
def server(database: str, tmp_path: Path) -> Iterator[InProcessCollector]:
    keys = str(tmp_path / "tickets.keys")
    with in_process_collector(tmp_path, database=database, key_file=keys) as collector:
        collector.clock.stopped_at = 0.0
        yield collector


def is_ready(server: Any) -> bool:
    reply = server.request("GET", "/readyz")
    assert reply.status in (200, 503)
    return bool(reply.status == 200)


def rows(database: Database) -> int:
    with database.reading() as connection:
        return int(connection.execute(text("SELECT count(*) FROM write_probes")).scalar_one())


def test_a_probe_is_made_at_most_once_in_some_seconds_and_leaves_nothing(
    server: InProcessCollector, monkeypatch: pytest.MonkeyPatch
) -> None:
    probes = []
    fill = write_probe.WriteProbe.fill

    def counted(probe: write_probe.WriteProbe, connection: Any) -> None:
        probes.append(connection)
        fill(probe, connection)

    monkeypatch.setattr(write_probe.WriteProbe, "fill", counted)
    for _ in range(5):
        assert is_ready(server)
    assert len(probes) == 1
    server.clock.stopped_at = PROBE_SECONDS
    assert is_ready(server)
    assert len(probes) == 2
    assert rows(server.collector.database) == 0


@pytest.mark.server
def test_a_database_with_room_for_a_submission_but_not_for_a_batch_is_not_ready(
    tmp_path: Path,
) -> None:
    with in_process_collector(tmp_path) as server:
        most = [10**6]
        event.listen(server.collector.database.engine, "checkout", limiter(most))
        campaign = server.create_campaign()
        devices = [campaign.enrol_device() for _ in range(3)]
        with sqlite3.connect(tmp_path / "reports.db") as file:
            (pages,) = file.execute("PRAGMA page_count").fetchone()
        file.close()
        most[0] = pages + 20
        assert not is_ready(server)
        assert campaign.submit(devices[0].body()).status == 200, "there is room for one"
        assert not is_ready(server), "a small write does not end it"
        most[0] = 10**6
        assert is_ready(server)


def limiter(most: list[int]) -> Any:
    def limit(connection: sqlite3.Connection, *_: object) -> None:
        connection.execute(f"PRAGMA max_page_count = {most[0]}")

    return limit


def fill(file: Path) -> None:
    """Write to a file until there is no room left."""
    with file.open("wb", buffering=0) as ballast, suppress(OSError):
        while True:
            ballast.write(bytes(4096))


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """A file system of a few MB, which only root can make."""
    folder.mkdir()
    options = ["-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(folder)]
    made = subprocess.run(["mount", *options], capture_output=True, check=False)
    if made.returncode != 0:
        pytest.skip("no file system can be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="needs root on Linux")
def test_a_full_disk_is_not_ready_until_there_is_room(
    tmp_path: Path, fork_server: ForkServer
) -> None:
    with small_disk(tmp_path / "disk") as disk, CollectorForker(tmp_path, fork_server) as forker:
        server = forker.spawn(str(disk / "reports.db"), TOKEN)
        campaign = server.create_campaign()
        campaign.invite()
        assert is_ready(server)
        ballast = disk / "ballast"
        fill(ballast)
        # The first probe is believed for some seconds.
        eventually(lambda: not is_ready(server))
        assert server.request("GET", "/healthz").status == 200
        ballast.unlink()
        eventually(lambda: is_ready(server))
        assert campaign.submit(campaign.enrol_device().body()).status == 200
        server.kill()
