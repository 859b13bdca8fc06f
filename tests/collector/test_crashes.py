"""Whatever happens to the server or its database: what was acknowledged is there exactly once."""

from __future__ import annotations

import os
import secrets
import signal
import sqlite3
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from random import Random

import pytest
from sqlalchemy import event, select

from support.concurrent_devices import Crew
from support.forked_collectors import Child, Nursery
from support.postgres import Cluster
from support.running_collectors import CampaignFace, Face, Here, Reply, collector_here, eventually
from unpoison.collector.storage import database as database_module
from unpoison.collector.storage.schema import seats

TOKEN = "the-token-of-the-operator"
NO_ESTIMATES = 10**9
"""Users before the first estimate, where estimates would only take time."""
KILLS = {"sqlite": 20, "postgresql": 5}
SHUTDOWN_SECONDS = 15.0


@pytest.fixture
def random() -> Random:
    """Its seed is printed, so that a failure can be repeated: UNPOISON_TEST_SEED=…"""
    seed = int(os.environ.get("UNPOISON_TEST_SEED", secrets.randbits(32)))
    sys.stdout.write(f"UNPOISON_TEST_SEED={seed}\n")
    return Random(seed)


@pytest.fixture
def nursery(tmp_path: Path) -> Iterator[Nursery]:
    with Nursery(tmp_path) as found:
        yield found


def check_later(reply: Reply) -> None:
    """A client is told to come back, and when."""
    assert (reply.status, reply.code) == (503, "unavailable")
    assert int(reply.headers["retry-after"]) >= 1


def check_down(campaign: CampaignFace) -> None:
    """The collector lives, says that it cannot store anything, and takes nothing."""
    face = campaign.face
    assert face.ask("GET", "/healthz").status == 200
    check_later(face.ask("GET", "/readyz"))
    check_later(campaign.enrol(device=secrets.token_hex(32), invite=campaign.invite()))


def is_ready(face: Face) -> bool:
    return face.ask("GET", "/readyz").status == 200


# The server is killed.


def test_kill_at_any_moment_loses_nothing_and_counts_nothing_twice(
    database: str, nursery: Nursery, random: Random
) -> None:
    kills = KILLS["postgresql" if "://" in database else "sqlite"]
    server = nursery.spawn(database, TOKEN)
    crew = Crew(server.campaign(min_users=NO_ESTIMATES), random)
    started, unheard = time.monotonic(), 0
    crew.ask(crew.volley())
    whole = time.monotonic() - started
    for _ in range(kills):
        with crew.at_work(crew.volley()):
            time.sleep(random.uniform(0, whole))
            server.kill()
        crew.campaign.face = server = nursery.spawn(database, TOKEN)
        unheard += len(crew.check(database).cells) - len(crew.counted)
    sys.stdout.write(f"{len(crew.counted)} acknowledged; {unheard} stored and not heard of\n")
    assert len(crew.counted) > 10 * kills, "there was no load"
    crew.finish()
    found = crew.check(database)
    assert len(found.cells) == len(found.groups) == len(crew.members)


def test_kill_during_the_first_start_leaves_a_database_that_the_next_one_can_use(
    nursery: Nursery, tmp_path: Path, random: Random
) -> None:
    for number in range(5):
        database = str(tmp_path / f"reports-{number}.db")
        begun = nursery.begin(database, TOKEN)
        time.sleep(random.uniform(0.0, 0.5))
        begun.kill()
        server = nursery.spawn(database, TOKEN)
        assert is_ready(server)
        server.kill()


def test_an_estimate_that_is_killed_can_be_asked_for_again(tmp_path: Path, random: Random) -> None:
    with collector_here(tmp_path) as here:
        crew = Crew(here.campaign(), random, most=50)
        path = f"{crew.campaign.path}/estimate"
        for _ in range(2):
            crew.volley(25)
            crew.finish()
            eventually(lambda: here.ask("GET", path, token=here.token).status == 200)
            pool = here.collector.analyst.pool
            assert pool is not None
            for process in pool._processes.values():
                process.kill()
        assert here.ask("GET", path, token=here.token).status == 200, "it is still known"


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_kill_leaves_no_estimate_running(nursery: Nursery, tmp_path: Path, random: Random) -> None:
    server = nursery.spawn(str(tmp_path / "reports.db"), TOKEN)
    crew = Crew(server.campaign(), random, most=50)
    crew.volley(50)
    crew.finish()
    assert server.ask("GET", f"{crew.campaign.path}/estimate", token=TOKEN).status == 200
    started = children(server.pid)
    assert started
    server.kill()
    eventually(lambda: not any(is_running(pid) for pid in started))


def children(pid: int) -> list[int]:
    found = []
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = file.read_text()
        except OSError:
            continue
        if int(text.rpartition(")")[2].split()[1]) == pid:
            found.append(int(file.parent.name))
    return found


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


# The database goes away and comes back.


@contextmanager
def coming_and_going(crew: Crew) -> Iterator[None]:
    """Devices enrol and report as long as this lasts."""
    done = threading.Event()

    def work() -> None:
        while not done.is_set():
            with crew.at_work(crew.volley(30)):
                pass

    with ThreadPoolExecutor(1) as thread:
        working = thread.submit(work)
        try:
            yield
        finally:
            done.set()
        working.result()


def test_postgresql_crashes_under_load_and_comes_back(
    postgres: Cluster, nursery: Nursery, random: Random
) -> None:
    with postgres.database() as database:
        server = nursery.spawn(database, TOKEN)
        crew = Crew(server.campaign(min_users=NO_ESTIMATES), random)
        crew.campaign.invite()
        with coming_and_going(crew):
            for crash in range(1, 4):
                eventually(lambda least=30 * crash: len(crew.counted) >= least)
                postgres.stop("immediate")
                check_down(crew.campaign)
                check_later(crew.campaign.submit(crew.counted[0].submission))
                check_later(server.ask("GET", f"{crew.campaign.path}/summary", token=TOKEN))
                postgres.start()
                eventually(lambda: is_ready(server))
        crew.finish()
        assert len(crew.check(database).cells) == len(crew.members)


def test_nobody_notices_that_postgresql_was_restarted_in_between(
    postgres: Cluster, tmp_path: Path
) -> None:
    keys = str(tmp_path / "tickets.keys")
    with (
        postgres.database() as database,
        collector_here(tmp_path, database=database, key_file=keys) as here,
    ):
        campaign = here.campaign()
        for _ in range(3):
            device = campaign.enrolled()
            postgres.stop()
            postgres.start()
            assert campaign.submit(device.body()).status == 200


def test_a_lock_that_nobody_gives_back_is_not_waited_for_for_ever(
    postgres: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_module, "LOCK_SECONDS", 0.3)
    monkeypatch.setattr(database_module, "IDLE_SECONDS", 1.5)
    keys = str(tmp_path / "tickets.keys")
    with (
        postgres.database() as database,
        collector_here(tmp_path, database=database, key_file=keys) as here,
    ):
        campaign = here.campaign()
        device = campaign.enrolled()
        vanished = here.collector.database.engine.connect()
        vanished.execute(select(seats).with_for_update())
        check_later(campaign.submit(device.body()))
        eventually(lambda: campaign.submit(device.body()).status == 200)
        vanished.invalidate()
        vanished.close()
        eventually(lambda: campaign.status()["submissions"] == 1)


@contextmanager
def locked(here: Here) -> Iterator[None]:
    """Somebody else writes, and does not end."""
    with closing(sqlite3.connect(str(here.collector.database.url.database))) as other:
        other.execute("BEGIN EXCLUSIVE")
        yield
        other.execute("ROLLBACK")


def test_sqlite_is_locked_for_too_long_and_let_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_module, "BUSY_SECONDS", 0.2)
    with collector_here(tmp_path) as here:
        campaign = here.campaign()
        device = campaign.enrolled()
        with locked(here):
            check_down(campaign)
            check_later(campaign.submit(device.body()))
            batch = here.post(f"{campaign.path}/reports/batch", {"submissions": [device.body()]})
            check_later(batch)
        eventually(lambda: is_ready(here))
        assert campaign.submit(device.body()).status == 200
        assert campaign.submit(device.body()).status == 200
        assert campaign.enrolled().ticket["groups"]
        eventually(lambda: campaign.status()["submissions"] == 1)


def test_sqlite_is_locked_for_a_moment_and_nobody_notices(tmp_path: Path) -> None:
    with collector_here(tmp_path) as here, ThreadPoolExecutor(1) as thread:
        campaign = here.campaign()
        device = campaign.enrolled()
        with locked(here):
            waiting = thread.submit(campaign.submit, device.body())
            time.sleep(0.5)
            assert not waiting.done()
        assert waiting.result().status == 200


# The disk is full.


def test_a_full_database_takes_nothing_in_part_and_goes_on_when_there_is_room(
    tmp_path: Path, random: Random
) -> None:
    with collector_here(tmp_path) as here:
        crew = Crew(here.campaign(min_users=NO_ESTIMATES), random, most=1000)
        crew.volley(1000)
        crew.ask([crew.enrolment(each) for each in crew.members[:800]])
        most = _limit_pages(here)
        most[0] = 1
        with crew.at_work([crew.single(each) for each in crew.waiting]):
            pass
        assert crew.statuses[503] > 0, "there was room for all"
        found = crew.check(str(tmp_path / "reports.db"))
        assert len(found.cells) == len(crew.counted), "what was refused is not stored"
        most[0] = 10**6
        crew.finish()
        assert len(crew.check(str(tmp_path / "reports.db")).cells) == 1000


def _limit_pages(here: Here) -> list[int]:
    """The most pages that the database may have, to be set; never fewer than it has."""
    most = [10**6]

    def limit(connection: sqlite3.Connection, *_: object) -> None:
        connection.execute(f"PRAGMA max_page_count = {most[0]}")

    event.listen(here.collector.database.engine, "checkout", limit)
    return most


@pytest.mark.skipif(sys.platform != "linux", reason="needs limits that can be moved")
def test_a_full_disk_takes_nothing_in_part_and_goes_on_when_there_is_room(
    nursery: Nursery, tmp_path: Path, random: Random
) -> None:
    database = str(tmp_path / "reports.db")
    server = nursery.spawn(database, TOKEN)
    crew = Crew(server.campaign(min_users=NO_ESTIMATES), random)
    crew.volley(1000)
    crew.ask([crew.enrolment(each) for each in crew.members[:600]])
    _limit_files(server, max(file.stat().st_size for file in tmp_path.glob("reports.db*")) + 2**14)
    with crew.at_work(crew.volley(0)):
        pass
    assert crew.statuses[503] > 0, "there was room for all"
    assert server.ask("GET", "/healthz").status == 200
    crew.check(database)
    _limit_files(server, None)
    crew.finish()
    assert len(crew.check(database).cells) == 1000


def _limit_files(server: Child, size: int | None) -> None:
    """No file may become larger than that: a write beyond fails, as on a full disk."""
    import resource

    most = resource.RLIM_INFINITY if size is None else size
    resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))


# The server is asked to stop.


def stopped(server: Child) -> None:
    started = time.monotonic()
    assert server.end(signal.SIGTERM) == 0
    assert time.monotonic() - started < SHUTDOWN_SECONDS


def test_a_stop_under_load_keeps_what_was_acknowledged(
    database: str, nursery: Nursery, random: Random
) -> None:
    server = nursery.spawn(database, TOKEN)
    crew = Crew(server.campaign(min_users=NO_ESTIMATES), random)
    for _ in range(2):
        with crew.at_work(crew.volley()):
            time.sleep(0.3)
            stopped(server)
        crew.check(database)
        assert not Path(f"{database}-wal").exists(), "the database was not closed"
        crew.campaign.face = server = nursery.spawn(database, TOKEN)
    assert len(crew.counted) > 20, "there was no load"
    crew.finish()
    assert len(crew.check(database).cells) == len(crew.members)


def test_a_stop_answers_what_is_under_way(nursery: Nursery, tmp_path: Path) -> None:
    slow = {"UNPOISON_COLLECTOR_BATCH_DELAY": "1"}
    server = nursery.spawn(str(tmp_path / "reports.db"), TOKEN, **slow)
    campaign = server.campaign()
    device = campaign.enrolled()
    with ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(campaign.submit, device.body())
        time.sleep(0.3)
        stopped(server)
        assert waiting.result().status == 200


def test_a_stop_does_not_wait_for_a_database_that_does_not_answer(
    nursery: Nursery, tmp_path: Path
) -> None:
    database = str(tmp_path / "reports.db")
    server = nursery.spawn(database, TOKEN)
    campaign = server.campaign()
    device = campaign.enrolled()
    with closing(sqlite3.connect(database)) as other, ThreadPoolExecutor(1) as thread:
        other.execute("BEGIN EXCLUSIVE")
        waiting = thread.submit(campaign.submit, device.body())
        time.sleep(0.5)
        stopped(server)
        check_later(waiting.result())
