"""A database restored from a backup: tickets issued since need their row and invite again."""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from support.database_audit import read_campaign_rows
from support.running_collectors import (
    EnrolledDevice,
    InProcessCollector,
    RunningCampaign,
    in_process_collector,
)
from unpoison.client import Device, Ledger, Policy, Transport

pytestmark = pytest.mark.server
TOKEN = "the-token-of-the-operator"


def back_up(folder: Path) -> None:
    """Copy the database of a running server, as the runbook says."""
    with (
        closing(sqlite3.connect(folder / "reports.db")) as source,
        closing(sqlite3.connect(folder / "backup.db")) as target,
    ):
        source.backup(target)


@contextmanager
def running(folder: Path) -> Iterator[InProcessCollector]:
    with in_process_collector(folder, operator_token=TOKEN) as server:
        server.token = TOKEN
        yield server


@contextmanager
def restored(folder: Path, campaign: RunningCampaign) -> Iterator[RunningCampaign]:
    """The campaign at a server with the backed-up database and the present key file."""
    for file in folder.glob("reports.db-*"):
        file.unlink()
    (folder / "backup.db").replace(folder / "reports.db")
    with running(folder) as server:
        yield RunningCampaign(server, campaign.id, campaign.plan, campaign.unused_invites)


def ask_again(campaign: RunningCampaign, device: EnrolledDevice, **fields: str) -> EnrolledDevice:
    """The device after it has asked for its ticket with its invite once more."""
    reply = campaign.request_ticket(device=device.secret, invite=device.invite, **fields)
    assert reply.status == 200, reply
    return EnrolledDevice(device.secret, reply.json, device.invite)


def test_tickets_issued_since_the_backup_need_their_row(tmp_path: Path) -> None:
    with running(tmp_path) as server:
        campaign = server.create_campaign()
        old_used, old = campaign.enrol_device(), campaign.enrol_device()
        assert campaign.submit(old_used.body()).status == 200
        back_up(tmp_path)
        late_used, late = campaign.enrol_device(), campaign.enrol_device()
        assert campaign.submit(late_used.body()).status == 200
    with restored(tmp_path, campaign) as campaign:
        assert campaign.submit(old_used.body()).status == 200
        assert campaign.submit(old.body()).status == 200
        batch = {"submissions": [late.body(), late_used.body()]}
        results = campaign.server.post(f"{campaign.path}/reports/batch", batch).json["results"]
        assert [result["error"]["code"] for result in results] == ["invalid-ticket"] * 2
        for device in (late, late_used):
            assert campaign.submit(device.body()).code == "invalid-ticket"
            again = ask_again(campaign, device, ticket=device.ticket["ticket"])
            assert again.ticket["groups"] == device.ticket["groups"]
            assert campaign.submit(again.body()).status == 200
            assert campaign.submit(device.body()).status == 200, "it is the same submission"
        rows = read_campaign_rows(str(tmp_path / "reports.db"), campaign.id)
        assert len(rows.groups) == len(rows.cells) == 4
        assert sorted(rows.invites) == sorted(rows.groups)


def test_an_invite_spent_since_the_backup_serves_one_device(tmp_path: Path) -> None:
    with running(tmp_path) as server:
        campaign = server.create_campaign()
        campaign.enrol_device()
        back_up(tmp_path)
        first, second = campaign.enrol_device(), campaign.enrol_device()
    with restored(tmp_path, campaign) as campaign:
        ask_again(campaign, first)
        stranger = {"device": secrets.token_hex(32), "ticket": first.ticket["ticket"]}
        assert campaign.request_ticket(**stranger, invite=first.invite).code == "invite-used"
        # Whoever comes first with an invite has it, with a ticket of its own; the other has none.
        taken = campaign.request_ticket(**stranger, invite=second.invite).json["ticket"]
        assert taken.split(".")[1] not in {
            d.ticket["ticket"].split(".")[1] for d in (first, second)
        }
        lost = {"invite": second.invite, "ticket": second.ticket["ticket"]}
        assert campaign.request_ticket(device=second.secret, **lost).code == "invite-used"
        assert campaign.submit(second.body()).code == "invalid-ticket"


def test_a_device_that_has_a_row_keeps_its_group_whatever_ticket_it_shows(tmp_path: Path) -> None:
    with running(tmp_path) as server:
        campaign = server.create_campaign()
        campaign.unused_invites.append(campaign.invite())
        back_up(tmp_path)
        device = campaign.enrol_device()
    with restored(tmp_path, campaign) as campaign:
        campaign.enrol_device()
        fresh = ask_again(campaign, device)
        again = ask_again(campaign, device, ticket=device.ticket["ticket"])
        assert again.ticket == fresh.ticket


def test_the_python_client_sends_what_it_drew_before_the_restore(tmp_path: Path) -> None:
    policy, ledgers = Policy(low=0, high=100), [Ledger(None) for _ in range(7)]
    with running(tmp_path) as server:
        campaign = server.create_campaign()
        invites = [campaign.invite() for _ in ledgers]
        back_up(tmp_path)
        address, entries = server.url, []
        for ledger, invite in zip(ledgers, invites, strict=True):
            with Device(address, policy, ledger) as device:
                entries.append(device.draw(device.enrol(campaign.id, invite), 40.0))
    with restored(tmp_path, campaign) as campaign, Transport(campaign.server.url) as transport:
        # In another order than before: their turn would put them into other groups.
        for i in (3, 6, 0, 2, 5, 1, 4):
            device = Device(address, policy, ledgers[i], transport)
            receipt = device.send(entries[i], invites[i])
            assert receipt.groups == entries[i].draw.groups
        rows = read_campaign_rows(str(tmp_path / "reports.db"), campaign.id)
        assert sorted(rows.cells.values()) == sorted(entry.draw.cells for entry in entries)
    for ledger in ledgers:
        ledger.close()
