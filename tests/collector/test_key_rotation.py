"""Keys of running servers: rotated without a restart, compared, and never replaced in silence."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from support.command_line import Command
from support.postgres import Cluster
from support.running_collectors import (
    InProcessCollector,
    RunningCampaign,
    in_process_collector,
)
from support.waiting import eventually
from unpoison.collector.service import housekeeping, key_watch
from unpoison.collector.service.signing_keys import KeyFile
from unpoison.errors import InvalidFile

HOUR = 3600
TOKEN = "the-token-of-the-operator"


@pytest.fixture(autouse=True)
def quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(housekeeping, "REREAD_SECONDS", 0.05)


@pytest.fixture
def log(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> Iterator[pytest.LogCaptureFixture]:
    """What servers of this process log."""
    monkeypatch.setattr(logging.getLogger("unpoison.collector"), "propagate", True)
    with caplog.at_level(logging.INFO, "unpoison.collector"):
        yield caplog


@contextmanager
def pair_of(
    postgres: Cluster, folder: Path, *key_files: Path
) -> Iterator[tuple[InProcessCollector, InProcessCollector]]:
    """Two servers on one database, with one key file or with one each."""
    with postgres.database() as database, ExitStack() as stack:
        first, second = (
            stack.enter_context(
                in_process_collector(
                    folder, database=database, key_file=str(keys), operator_token=TOKEN
                )
            )
            for keys in (key_files[0], key_files[-1])
        )
        first.token = second.token = TOKEN
        yield first, second


def readiness(server: InProcessCollector) -> tuple[int, str]:
    reply = server.request("GET", "/readyz")
    return reply.status, reply.json.get("keys", "")


def test_two_servers_rotate_without_a_restart_and_believe_each_other_throughout(
    postgres: Cluster, tmp_path: Path
) -> None:
    keys = KeyFile(tmp_path / "tickets.keys")
    with pair_of(postgres, tmp_path, keys.path) as (first, second):
        faces = here, there = _faces(first, second)
        old = here.enrol_device()
        keys.rotate(signs_from=int(time.time()) + HOUR)
        for server in (first, second):
            eventually(lambda at=server: len(at.collector.keys.keys) == 2)
        for face, other in (faces, faces[::-1]):
            assert other.submit(face.enrol_device().body()).status == 200
        # One server's clock comes to the moment first: the other must believe it already.
        first.clock.step = HOUR + 60
        eventually(lambda: _sign_differently(first, second))
        assert there.submit(here.enrol_device().body()).status == 200
        assert here.submit(there.enrol_device().body()).status == 200
        second.clock.step = HOUR + 60
        eventually(lambda: not _sign_differently(first, second))
        assert here.submit(there.enrol_device().body()).status == 200
        assert there.submit(old.body()).status == 200, "the old key is still believed"
        assert [readiness(server) for server in (first, second)] == [(200, "same")] * 2


def _faces(
    first: InProcessCollector, second: InProcessCollector
) -> tuple[RunningCampaign, RunningCampaign]:
    """One campaign as each of two servers shows it."""
    here = first.create_campaign()
    return here, RunningCampaign(second, here.id, here.plan, here.unused_invites)


def _sign_differently(first: InProcessCollector, second: InProcessCollector) -> bool:
    """Whether the two servers sign with different keys."""
    return signing_secret(first) != signing_secret(second)


def signing_secret(server: InProcessCollector) -> bytes:
    return server.collector.signer.signer.secret_key


def test_a_key_that_has_not_arrived_is_announced_and_then_refused(
    postgres: Cluster, tmp_path: Path, log: pytest.LogCaptureFixture
) -> None:
    ours, theirs = (KeyFile(tmp_path / name) for name in ("ours.keys", "theirs.keys"))
    ours.load_or_make()
    theirs.path.write_bytes(ours.path.read_bytes())
    with pair_of(postgres, tmp_path, ours.path, theirs.path) as (first, second):
        assert [readiness(server) for server in (first, second)] == [(200, "same")] * 2
        ours.rotate(signs_from=int(time.time()) + HOUR)
        eventually(lambda: readiness(second) == (200, "expected"))
        second.clock.step = 2 * HOUR
        eventually(lambda: readiness(second)[0] == 503)
        assert readiness(first) == (200, "same")
        theirs.path.write_bytes(ours.path.read_bytes())
        eventually(lambda: readiness(second) == (200, "same"))
    assert {key_watch.EVENTS[state][1] for state in ("expected", "different")} <= set(log.messages)
    assert not any(key.secret in line for key in ours.load() for line in log.messages)


def test_a_key_file_of_another_server_is_refused_at_the_start_and_noticed_later(
    postgres: Cluster, tmp_path: Path
) -> None:
    ours, theirs = (KeyFile(tmp_path / name) for name in ("ours.keys", "theirs.keys"))
    theirs.load_or_make()
    with (
        pytest.raises(InvalidFile, match="lacks the key"),
        pair_of(postgres, tmp_path, ours.path, theirs.path),
    ):
        pass
    with pair_of(postgres, tmp_path, ours.path) as (first, _):
        before = ours.path.read_bytes()
        ours.path.write_bytes(theirs.path.read_bytes())
        eventually(lambda: readiness(first)[0] == 503)
        ours.path.write_bytes(before)
        eventually(lambda: readiness(first) == (200, "same"))


@pytest.mark.server
def test_a_file_that_vanishes_under_a_server_is_noticed_and_its_keys_stay_in_use(
    tmp_path: Path, log: pytest.LogCaptureFixture
) -> None:
    with in_process_collector(tmp_path) as server:
        campaign = server.create_campaign()
        device = campaign.enrol_device()
        (tmp_path / "reports.db.keys").unlink()
        eventually(lambda: readiness(server) == (200, "unreadable"))
        assert campaign.submit(device.body()).status == 200
    assert key_watch.EVENTS["unreadable"][1] in log.messages


@pytest.mark.server
def test_a_lost_key_file_is_not_replaced_unless_that_is_asked_for(
    tmp_path: Path, unpoison: Command
) -> None:
    database, keys = str(tmp_path / "reports.db"), tmp_path / "reports.db.keys"
    with in_process_collector(tmp_path) as server:
        campaign = server.create_campaign()
        device = campaign.enrol_device()
    keys.unlink()
    for words in ([], ["--check"], ["--rotate-key"]):
        refused = unpoison.refused("serve", "--database", database, "--port", "0", *words)
        assert str(keys) in refused
        assert not keys.exists()
    assert "--new-keys" in unpoison.refused("serve", "--database", database, "--check")
    unpoison.done("serve", "--database", database, "--new-keys")
    with in_process_collector(tmp_path) as server:
        campaign = RunningCampaign(server, campaign.id, campaign.plan)
        assert campaign.submit(device.body()).code == "invalid-ticket"
        again = campaign.request_ticket(device=device.secret, invite=device.invite).json
        assert again["groups"] == device.ticket["groups"]
        assert campaign.submit({**device.body(), "ticket": again["ticket"]}).status == 200


@pytest.mark.server
def test_keys_of_an_earlier_version_are_read(tmp_path: Path) -> None:
    old, new = "ab" * 32, "cd" * 32
    (tmp_path / "reports.db.keys").write_text(f'{{"keys": ["{old}", "{new}"]}}')
    with in_process_collector(tmp_path) as server:
        campaign = server.create_campaign()
        assert campaign.submit(campaign.enrol_device().body()).status == 200
        assert signing_secret(server) == new.encode()
