"""Crashes of the server and its database: what was acknowledged is stored exactly once."""

from __future__ import annotations

import os
import re
import secrets
import signal
import sqlite3
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from random import Random
from threading import Event

import pytest
from sqlalchemy import event, select

from support.concurrent_devices import DeviceFleet
from support.forked_collectors import CollectorForker, ForkedCollector, ForkServer
from support.postgres import Cluster
from support.processes import HAS_PROC, children_of, is_running
from support.running_collectors import (
    InProcessCollector,
    Reply,
    RunningCampaign,
    RunningCollector,
    in_process_collector,
)
from support.waiting import HANG_SECONDS, eventually, meanwhile
from unpoison.collector.storage import database as database_module
from unpoison.collector.storage.schema import group_counters

TOKEN = "the-token-of-the-operator"
NO_ESTIMATES = 10**9
"""Users before the first estimate, where estimates would only take time."""
KILLS = {"sqlite": 20, "postgresql": 5}


@pytest.fixture
def random() -> Random:
    """Its seed is printed, so that a failure can be repeated: UNPOISON_TEST_SEED=…"""
    seed = int(os.environ.get("UNPOISON_TEST_SEED", secrets.randbits(32)))
    sys.stdout.write(f"UNPOISON_TEST_SEED={seed}\n")
    return Random(seed)


@pytest.fixture
def forker(tmp_path: Path, fork_server: ForkServer) -> Iterator[CollectorForker]:
    with CollectorForker(tmp_path, fork_server) as collector_forker:
        yield collector_forker


def check_later(reply: Reply) -> None:
    """A client is told to come back, and when."""
    assert (reply.status, reply.code) == (503, "unavailable")
    assert int(reply.headers["retry-after"]) >= 1


def check_down(campaign: RunningCampaign) -> None:
    """The collector lives, says that it cannot store anything, and takes nothing."""
    face = campaign.server
    assert face.request("GET", "/healthz").status == 200
    check_later(face.request("GET", "/readyz"))
    check_later(campaign.request_ticket(device=secrets.token_hex(32), invite=campaign.invite()))


def is_ready(face: RunningCollector) -> bool:
    return face.request("GET", "/readyz").status == 200


# The server is killed.


def test_kill_at_any_moment_loses_nothing_and_counts_nothing_twice(
    database: str, forker: CollectorForker, random: Random
) -> None:
    kills = KILLS["postgresql" if "://" in database else "sqlite"]
    server = forker.spawn(database, TOKEN)
    fleet = DeviceFleet(server.create_campaign(min_users=NO_ESTIMATES), random)
    unheard = 0
    fleet.send(fleet.mixed_requests(100))
    for _ in range(kills):
        requests = fleet.mixed_requests(100)
        fleet.send_until_stored(requests, database, random.randrange(len(requests)), server.kill)
        fleet.campaign.server = server = forker.spawn(database, TOKEN)
        unheard += len(fleet.assert_stored(database).cells) - len(fleet.counted)
    sys.stdout.write(f"{len(fleet.counted)} acknowledged; {unheard} stored and not heard of\n")
    assert len(fleet.counted) > 10 * kills, "there was no load"
    fleet.finish()
    stored_rows = fleet.assert_stored(database)
    assert len(stored_rows.cells) == len(stored_rows.groups) == len(fleet.devices)


def test_kill_during_the_first_start_leaves_a_database_that_the_next_one_can_use(
    forker: CollectorForker, tmp_path: Path, random: Random
) -> None:
    for number in range(5):
        database = str(tmp_path / f"reports-{number}.db")
        begun = forker.begin(database, TOKEN)
        # Any moment will do: whatever the start has done by then, the next one must cope with it.
        time.sleep(random.uniform(0.0, 0.5))
        begun.kill()
        server = forker.spawn(database, TOKEN)
        assert is_ready(server)
        server.kill()


@pytest.mark.server
def test_an_estimate_that_is_killed_can_be_asked_for_again(tmp_path: Path, random: Random) -> None:
    with in_process_collector(tmp_path) as server:
        fleet = DeviceFleet(server.create_campaign(), random, most=50)
        path = f"{fleet.campaign.path}/estimate"
        for _ in range(2):
            fleet.add_devices(25)
            fleet.finish()
            eventually(lambda: server.request("GET", path, token=server.token).status == 200)
            worker = server.collector.estimator.worker
            assert worker is not None
            worker.process.kill()
        assert server.request("GET", path, token=server.token).status == 200, "it is still known"


@pytest.mark.skipif(not HAS_PROC, reason="needs /proc")
def test_kill_leaves_no_estimate_running(
    forker: CollectorForker, tmp_path: Path, random: Random
) -> None:
    server = forker.spawn(str(tmp_path / "reports.db"), TOKEN)
    fleet = DeviceFleet(server.create_campaign(), random, most=50)
    fleet.add_devices(50)
    fleet.finish()
    assert server.request("GET", f"{fleet.campaign.path}/estimate", token=TOKEN).status == 200
    started = children_of(server.pid)
    assert started
    server.kill()
    eventually(lambda: not any(is_running(pid) for pid in started))


# The database goes away and comes back.


def send_some(fleet: DeviceFleet) -> None:
    with fleet.sending(fleet.mixed_requests(30)):
        pass


def test_postgresql_crashes_under_load_and_comes_back(
    postgres: Cluster, forker: CollectorForker, random: Random
) -> None:
    with postgres.database() as database:
        server = forker.spawn(database, TOKEN)
        fleet = DeviceFleet(server.create_campaign(min_users=NO_ESTIMATES), random)
        fleet.campaign.invite()
        with meanwhile(lambda: send_some(fleet)):
            for crash in range(1, 4):
                eventually(lambda least=30 * crash: len(fleet.counted) >= least)
                postgres.stop("immediate")
                check_down(fleet.campaign)
                check_later(fleet.campaign.submit(fleet.counted[0].submission))
                check_later(server.request("GET", f"{fleet.campaign.path}/summary", token=TOKEN))
                postgres.start()
                eventually(lambda: is_ready(server))
        fleet.finish()
        assert len(fleet.assert_stored(database).cells) == len(fleet.devices)


def test_a_restart_of_postgresql_between_requests_is_not_noticed(
    postgres: Cluster, tmp_path: Path
) -> None:
    keys = str(tmp_path / "tickets.keys")
    with (
        postgres.database() as database,
        in_process_collector(tmp_path, database=database, key_file=keys) as server,
    ):
        campaign = server.create_campaign()
        for _ in range(3):
            device = campaign.enrol_device()
            postgres.stop()
            postgres.start()
            assert campaign.submit(device.body()).status == 200


def test_a_lock_of_a_lost_client_is_released_after_a_time_out(
    postgres: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_module, "LOCK_SECONDS", 0.3)
    monkeypatch.setattr(database_module, "IDLE_SECONDS", 1.5)
    keys = str(tmp_path / "tickets.keys")
    with (
        postgres.database() as database,
        in_process_collector(tmp_path, database=database, key_file=keys) as server,
    ):
        campaign = server.create_campaign()
        device = campaign.enrol_device()
        vanished = server.collector.database.engine.connect()
        vanished.execute(select(group_counters).with_for_update())
        check_later(campaign.submit(device.body()))
        eventually(lambda: campaign.submit(device.body()).status == 200)
        vanished.invalidate()
        vanished.close()
        eventually(lambda: campaign.status()["submissions"] == 1)


@contextmanager
def locked(server: InProcessCollector) -> Iterator[None]:
    """Somebody else writes, and does not end."""
    with closing(sqlite3.connect(str(server.collector.database.url.database))) as other:
        other.execute("BEGIN EXCLUSIVE")
        yield
        other.execute("ROLLBACK")


@pytest.mark.server
def test_requests_are_refused_while_sqlite_is_locked_and_taken_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_module, "BUSY_SECONDS", 0.2)
    with in_process_collector(tmp_path) as server:
        campaign = server.create_campaign()
        device = campaign.enrol_device()
        with locked(server):
            check_down(campaign)
            check_later(campaign.submit(device.body()))
            batch = server.post(f"{campaign.path}/reports/batch", {"submissions": [device.body()]})
            check_later(batch)
        eventually(lambda: is_ready(server))
        assert campaign.submit(device.body()).status == 200
        assert campaign.submit(device.body()).status == 200
        assert campaign.enrol_device().ticket["groups"]
        eventually(lambda: campaign.status()["submissions"] == 1)


def write_begun(server: InProcessCollector) -> Event:
    """Set as soon as the collector asks for SQLite's lock to write."""
    begun = Event()

    def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        if statement == "BEGIN IMMEDIATE":
            begun.set()

    event.listen(server.collector.database.engine, "before_cursor_execute", note)
    return begun


@pytest.mark.server
def test_a_short_lock_of_sqlite_only_delays_requests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_module, "BUSY_SECONDS", HANG_SECONDS)
    with in_process_collector(tmp_path) as server, ThreadPoolExecutor(1) as thread:
        campaign = server.create_campaign()
        device = campaign.enrol_device()
        with locked(server):
            begun = write_begun(server)
            waiting = thread.submit(campaign.submit, device.body())
            assert begun.wait(HANG_SECONDS)
            # Long enough for a refusal to arrive, if there were one.
            time.sleep(0.1)
            assert not waiting.done()
        assert waiting.result().status == 200


# The disk is full.


@pytest.mark.server
def test_a_full_database_takes_nothing_in_part_and_goes_on_when_there_is_room(
    tmp_path: Path, random: Random
) -> None:
    with in_process_collector(tmp_path) as server:
        fleet = DeviceFleet(server.create_campaign(min_users=NO_ESTIMATES), random, most=1000)
        fleet.add_devices(1000)
        fleet.send([fleet.enrolment(device) for device in fleet.devices[:800]])
        most = _limit_pages(server)
        most[0] = 1
        with fleet.sending([fleet.single(device) for device in fleet.waiting]):
            pass
        assert fleet.statuses[503] > 0, "there was room for all"
        stored_rows = fleet.assert_stored(str(tmp_path / "reports.db"))
        assert len(stored_rows.cells) == len(fleet.counted), "what was refused is not stored"
        most[0] = 10**6
        fleet.finish()
        assert len(fleet.assert_stored(str(tmp_path / "reports.db")).cells) == 1000


def _limit_pages(server: InProcessCollector) -> list[int]:
    """The most pages that the database may have, to be set; never fewer than it has."""
    most = [10**6]

    def limit(connection: sqlite3.Connection, *_: object) -> None:
        connection.execute(f"PRAGMA max_page_count = {most[0]}")

    event.listen(server.collector.database.engine, "checkout", limit)
    return most


@pytest.mark.skipif(sys.platform != "linux", reason="needs limits that can be moved")
def test_a_full_disk_takes_nothing_in_part_and_goes_on_when_there_is_room(
    forker: CollectorForker, tmp_path: Path, random: Random
) -> None:
    database = str(tmp_path / "reports.db")
    server = forker.spawn(database, TOKEN)
    fleet = DeviceFleet(server.create_campaign(min_users=NO_ESTIMATES), random)
    fleet.add_devices(1000)
    fleet.send([fleet.enrolment(device) for device in fleet.devices[:600]])
    _limit_files(server, max(file.stat().st_size for file in tmp_path.glob("reports.db*")) + 2**14)
    with fleet.sending(fleet.mixed_requests(0)):
        pass
    assert fleet.statuses[503] > 0, "there was room for all"
    assert server.request("GET", "/healthz").status == 200
    fleet.assert_stored(database)
    _limit_files(server, None)
    fleet.finish()
    assert len(fleet.assert_stored(database).cells) == 1000


def _limit_files(server: ForkedCollector, size: int | None) -> None:
    """No file may become larger than that: a write beyond fails, as on a full disk."""
    import resource

    most = resource.RLIM_INFINITY if size is None else size
    resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))


# The server is asked to stop.


def assert_stops(server: ForkedCollector) -> None:
    assert server.end(signal.SIGTERM) == 0


def requests_waiting(server: ForkedCollector) -> bool:
    """Whether requests wait to be stored, by the collector's own gauge."""
    metrics = server.request("GET", "/metrics").body.decode()
    (waiting,) = re.findall(r"^unpoison_queue_waiting ([0-9.e+]+)$", metrics, re.MULTILINE)
    return float(waiting) > 0


def test_a_stop_under_load_keeps_what_was_acknowledged(
    database: str, forker: CollectorForker, random: Random
) -> None:
    server = forker.spawn(database, TOKEN)
    fleet = DeviceFleet(server.create_campaign(min_users=NO_ESTIMATES), random)
    for _ in range(2):
        requests = fleet.mixed_requests()
        fleet.send_until_stored(requests, database, 100, partial(assert_stops, server))
        assert not Path(f"{database}-wal").exists(), "the database was not closed"
        fleet.assert_stored(database)
        fleet.campaign.server = server = forker.spawn(database, TOKEN)
    assert len(fleet.counted) > 20, "there was no load"
    fleet.finish()
    assert len(fleet.assert_stored(database).cells) == len(fleet.devices)


def test_a_stop_answers_what_is_under_way(forker: CollectorForker, tmp_path: Path) -> None:
    slow = {"UNPOISON_COLLECTOR_BATCH_DELAY": "1"}
    server = forker.spawn(str(tmp_path / "reports.db"), TOKEN, **slow)
    campaign = server.create_campaign()
    device = campaign.enrol_device()
    with ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(campaign.submit, device.body())
        eventually(lambda: waiting.done() or requests_waiting(server))
        assert_stops(server)
        assert waiting.result().status == 200


def test_a_stop_does_not_wait_for_a_database_that_does_not_answer(
    forker: CollectorForker, tmp_path: Path
) -> None:
    database = str(tmp_path / "reports.db")
    server = forker.spawn(database, TOKEN)
    campaign = server.create_campaign()
    device = campaign.enrol_device()
    with closing(sqlite3.connect(database)) as other, ThreadPoolExecutor(1) as thread:
        other.execute("BEGIN EXCLUSIVE")
        waiting = thread.submit(campaign.submit, device.body())
        eventually(lambda: waiting.done() or requests_waiting(server))
        assert_stops(server)
        check_later(waiting.result())
