"""A server of two processes: nothing is lost or counted twice, and it behaves as one."""

from __future__ import annotations

import json
import os
import re
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from support.command_line import Command
from support.concurrent_devices import DeviceFleet
from support.forked_collectors import CollectorForker, ForkedCollector, ForkServer
from support.processes import HAS_PROC, children_of, is_running
from support.running_collectors import Reply, RunningCampaign
from support.waiting import HANG_SECONDS, eventually
from unpoison.collector.settings import Settings
from unpoison.collector.supervisor import shared_listeners

pytestmark = pytest.mark.skipif(not HAS_PROC, reason="needs /proc")
TOKEN = "the-token-of-the-operator"
NO_ESTIMATES = 10**9
"""Users before the first estimate, where estimates would only take time."""
KILLS = 20
TWO = {"UNPOISON_COLLECTOR_WORKERS": "2", "UNPOISON_COLLECTOR_LOG_LEVEL": "error"}


@pytest.fixture
def forker(tmp_path: Path, fork_server: ForkServer) -> Iterator[CollectorForker]:
    with CollectorForker(tmp_path, fork_server) as collector_forker:
        yield collector_forker


def workers_of(server: ForkedCollector) -> list[int]:
    return sorted(children_of(server.pid))


def kill_worker(server: ForkedCollector, random: Random) -> None:
    """Kill one worker, and wait until another has taken its place and answers."""
    before = workers_of(server)
    victim = random.choice(before)
    os.kill(victim, signal.SIGKILL)
    eventually(lambda: len(set(workers_of(server)) - {victim}) == len(before))
    wait_until_ready(server)


def wait_until_ready(server: ForkedCollector) -> None:
    """Wait until each worker can store: connections are spread, so a few in a row are asked."""

    def is_ready() -> bool:
        return all(server.request("GET", "/readyz").status == 200 for _ in range(8))

    def answers() -> bool:
        try:
            return is_ready()
        except OSError:
            return False

    eventually(answers)


def test_twenty_killed_workers_lose_nothing_and_count_nothing_twice(
    database: str, forker: CollectorForker
) -> None:
    random = Random(16)
    server = forker.spawn(database, TOKEN, **TWO)
    fleet = DeviceFleet(server.create_campaign(min_users=NO_ESTIMATES), random)
    for _ in range(KILLS):
        requests = fleet.mixed_requests(40)
        stored = random.randrange(len(requests))
        fleet.send_until_stored(requests, database, stored, lambda: kill_worker(server, random))
        fleet.assert_stored(database)
    assert len(fleet.counted) > 5 * KILLS, "there was no load"
    fleet.finish()
    stored_rows = fleet.assert_stored(database)
    assert len(stored_rows.cells) == len(stored_rows.groups) == len(fleet.devices)


def test_workers_end_with_a_supervisor_that_is_killed(
    database: str, forker: CollectorForker
) -> None:
    random = Random(17)
    server = forker.spawn(database, TOKEN, **TWO)
    fleet = DeviceFleet(server.create_campaign(min_users=NO_ESTIMATES), random)
    for _ in range(3):
        workers = workers_of(server)
        assert len(workers) == 2
        requests = fleet.mixed_requests(60)
        fleet.send_until_stored(requests, database, random.randrange(len(requests)), server.kill)
        eventually(lambda gone=workers: not any(is_running(pid) for pid in gone))
        fleet.assert_stored(database)
        fleet.campaign.server = server = forker.spawn(database, TOKEN, **TWO)
    fleet.finish()
    assert len(fleet.assert_stored(database).cells) == len(fleet.devices)


def test_a_stop_keeps_what_was_acknowledged_and_leaves_no_worker(
    database: str, forker: CollectorForker
) -> None:
    server = forker.spawn(database, TOKEN, **TWO)
    workers = workers_of(server)
    fleet = DeviceFleet(server.create_campaign(min_users=NO_ESTIMATES), Random(18))
    requests = fleet.mixed_requests(200)

    def stop() -> None:
        assert server.end(signal.SIGTERM) == 0

    fleet.send_until_stored(requests, database, 50, stop)
    assert not any(is_running(pid) for pid in workers)
    assert not Path(f"{database}-wal").exists(), "the database was not closed"
    fleet.assert_stored(database)


def each_worker(server: ForkedCollector, path: str, requests: int = 16) -> list[bytes]:
    """The same question on new connections, which the system spreads over the workers."""
    return [server.request("GET", path, token=TOKEN).body for _ in range(requests)]


def test_an_operator_sees_a_change_at_every_worker_at_once(
    database: str, forker: CollectorForker
) -> None:
    server = forker.spawn(database, TOKEN, **TWO)
    campaign = server.create_campaign(min_users=NO_ESTIMATES)
    for state in ("closed", "open", "closed"):
        each_worker(server, campaign.path)
        action = {"open": "open", "closed": "close"}[state]
        assert server.post(f"{campaign.path}/{action}", {}, token=TOKEN).status == 200
        for answer in each_worker(server, campaign.path):
            assert f'"state":"{state}"'.encode() in answer.replace(b" ", b"")


def test_metrics_of_all_workers_are_told_by_any(database: str, forker: CollectorForker) -> None:
    server = forker.spawn(database, TOKEN, **TWO)
    campaign = server.create_campaign(min_users=NO_ESTIMATES)
    for _ in range(10):
        assert campaign.submit(campaign.enrol_device().body()).status == 200

    def accepted(text: bytes) -> dict[str, float]:
        pattern = r'^unpoison_submissions_accepted_total\{worker="(\d)"\} (\S+)$'
        return {w: float(n) for w, n in re.findall(pattern, text.decode(), re.MULTILINE)}

    def all_told() -> bool:
        return all(
            len(accepted(text)) == 2 and sum(accepted(text).values()) == 10
            for text in each_worker(server, "/metrics", 6)
        )

    eventually(all_told)


def test_a_forwarded_request_is_counted_once(forker: CollectorForker, tmp_path: Path) -> None:
    """The worker that answers forwards it, and the one that writes commits it."""
    server = forker.spawn(str(tmp_path / "reports.db"), TOKEN, **TWO)
    campaign = server.create_campaign(min_users=NO_ESTIMATES)
    for _ in range(5):
        assert campaign.submit(campaign.enrol_device().body()).status == 200

    def committed() -> float:
        text = server.request("GET", "/metrics", token=TOKEN).body.decode()
        pattern = r"^unpoison_batch_requests_sum\{[^}]*\} (\S+)$"
        return sum(float(number) for number in re.findall(pattern, text, re.MULTILINE))

    # Five enrolments and five submissions; the writer's figures are published each second.
    eventually(lambda: committed() >= 10)
    assert committed() == 10


def guess(server: ForkedCollector) -> int:
    return server.request("GET", "/v1/campaigns", token=secrets.token_hex(32)).status


def test_workers_share_rate_limits(database: str, forker: CollectorForker) -> None:
    limits = {
        "UNPOISON_COLLECTOR_ENROLMENTS_PER_HOUR": "7",
        "UNPOISON_COLLECTOR_GUESSES_PER_MINUTE": "9",
    }
    server = forker.spawn(database, TOKEN, **TWO, **limits)
    campaign = server.create_campaign(access="open", min_users=NO_ESTIMATES)
    enrolled = [enrol(campaign).status for _ in range(20)]
    assert enrolled.count(200) == 7
    assert set(enrolled) == {200, 429}
    guesses = [guess(server) for _ in range(20)]
    # A bucket of nine a minute may give one more token while the test runs.
    assert 9 <= guesses.count(401) <= 11
    assert set(guesses) == {401, 429}


def enrol(campaign: RunningCampaign) -> Reply:
    body = {"device": secrets.token_hex(32)}
    return campaign.server.post(f"{campaign.path}/tickets", body)


def test_an_sqlite_file_has_one_writer_that_answers_nobody(
    forker: CollectorForker, tmp_path: Path
) -> None:
    """All requests reach the one worker that answers; none waits at a socket without one."""
    server = forker.spawn(str(tmp_path / "reports.db"), TOKEN, **TWO)
    for _ in range(40):
        assert server.request("GET", "/healthz").status == 200


def test_a_second_server_is_refused_while_the_workers_run(
    forker: CollectorForker, tmp_path: Path
) -> None:
    database = str(tmp_path / "reports.db")
    server = forker.spawn(database, TOKEN, **TWO)
    second = subprocess.run(
        [sys.executable, "-m", "unpoison", "serve", "--database", database, "--port", "0"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert second.returncode == 2
    assert f"process {server.pid}" in second.stderr


def test_a_port_that_another_server_shares_is_not_joined() -> None:
    from unpoison.errors import InvalidParameter

    first = shared_listeners(Settings.load(port=0), 2)
    try:
        port = first[0].getsockname()[1]
        with pytest.raises(InvalidParameter, match="must be free"):
            shared_listeners(Settings.load(port=port), 2)
    finally:
        for listener in first:
            listener.close()


@pytest.mark.parametrize("number", ["0", "65", "two"])
def test_workers_must_be_a_number_that_makes_sense(unpoison: Command, number: str) -> None:
    assert "workers" in unpoison.refused("serve", "--workers", number, "--port", "0")


SUPERVISOR = """
import os, signal, sys, threading, time
from pathlib import Path
from unpoison.collector.logs import set_up_logs
from unpoison.collector.service.worker_role import WorkerRole
from unpoison.collector.supervisor import Supervisor

set_up_logs("error")

class Waiting:
    role = WorkerRole(0, Path(sys.argv[1]))

    def run(self):
        print(os.getpid(), flush=True)
        threading.Event().wait()

"""
"""A supervisor of one worker that only waits; its folder is the first argument."""

SIGNAL_AT_THE_FORK = """
fork = os.fork

def fork_after_a_signal():
    os.kill(os.getpid(), signal.SIGTERM)
    pid = fork()
    if pid == 0:
        # The supervisor's signal is there before the worker has handlers of its own.
        time.sleep(0.2)
    return pid

os.fork = fork_after_a_signal
"""


def supervisor(folder: Path, preparation: str = "") -> subprocess.Popen[str]:
    script = f"{SUPERVISOR}{preparation}Supervisor([Waiting()]).run()"
    command = [sys.executable, "-c", script, str(folder)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_a_stop_that_comes_while_a_worker_is_forked_reaches_it(tmp_path: Path) -> None:
    with supervisor(tmp_path, SIGNAL_AT_THE_FORK) as running:
        try:
            assert running.wait(HANG_SECONDS) == 0
        finally:
            running.kill()


def test_the_folder_of_a_supervisor_that_is_killed_goes_with_its_workers(tmp_path: Path) -> None:
    folder = tmp_path / "workers"
    folder.mkdir()
    with supervisor(folder) as running:
        assert running.stdout is not None
        worker = int(running.stdout.readline())
        running.kill()
    eventually(lambda: not is_running(worker))
    assert not folder.exists()


def test_the_log_says_which_worker_ended_and_how(tmp_path: Path) -> None:
    with supervisor(tmp_path) as running:
        assert running.stdout is not None
        os.kill(int(running.stdout.readline()), signal.SIGKILL)
        assert running.stdout.readline(), "no other was started"
        running.terminate()
        _, log = running.communicate(timeout=HANG_SECONDS)
    (line,) = log.splitlines()
    assert [json.loads(line)[name] for name in ("worker", "code")] == [0, -signal.SIGKILL]
