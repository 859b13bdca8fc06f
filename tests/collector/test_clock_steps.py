"""Steps of the wall clock, back and forward, under a running collector."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from support.concurrent_devices import DeviceFleet
from support.database_audit import read_campaign_rows
from support.running_collectors import InProcessCollector, RunningCampaign, in_process_collector
from support.waiting import eventually
from unpoison.collector.clock import iso

DAY = 86400
LIFETIME = 7 * DAY
STEPS = (-400 * DAY, -3600, -1, 0, 1, 3600, 6 * DAY)
"""All within a ticket's lifetime, or before it was issued."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[InProcessCollector]:
    with in_process_collector(tmp_path, guesses_per_minute=60) as collector:
        yield collector


@pytest.mark.parametrize("step", STEPS)
def test_reports_are_stored_at_once_whatever_the_clock_says(
    server: InProcessCollector, step: int
) -> None:
    campaign = server.create_campaign()
    first, second = campaign.enrol_device(), campaign.enrol_device()
    server.clock.step = step
    # A request that waited for the clock would end in a time-out of this client.
    assert campaign.submit(first.body()).status == 200
    server.clock.step = 0
    assert campaign.submit(second.body()).status == 200
    assert campaign.submit(first.body()).status == 200
    stored_rows = read_campaign_rows(str(server.collector.database.url.database), campaign.id)
    stored_rows.assert_consistent()
    assert len(stored_rows.cells) == 2


def test_a_ticket_is_valid_for_as_long_as_the_wall_clock_says(server: InProcessCollector) -> None:
    campaign = server.create_campaign()
    devices = [campaign.enrol_device() for _ in range(4)]
    server.clock.step = LIFETIME - 60
    assert campaign.submit(devices[0].body()).status == 200
    server.clock.step = LIFETIME + 60
    assert campaign.submit(devices[1].body()).code == "ticket-expired"
    server.clock.step = -30 * DAY
    assert campaign.submit(devices[1].body()).status == 200
    server.clock.step = 0
    assert campaign.submit(devices[2].body()).status == 200
    server.clock.step = LIFETIME + 60
    assert campaign.submit(devices[3].body()).code == "ticket-expired"


def asked_again(campaign: RunningCampaign, device: Any) -> dict[str, Any]:
    reply = campaign.request_ticket(device=device.secret, invite=device.invite)
    assert reply.status == 200
    ticket: dict[str, Any] = reply.json
    return ticket


def test_a_device_that_asks_again_gets_its_seat_at_any_time(server: InProcessCollector) -> None:
    campaign = server.create_campaign()
    device = campaign.enrol_device()
    for step in STEPS:
        server.clock.step = step
        assert asked_again(campaign, device) == device.ticket
    server.clock.step = LIFETIME + 60
    renewed = asked_again(campaign, device)
    assert renewed["groups"] == device.ticket["groups"]
    assert renewed["expires_at"] > device.ticket["expires_at"]
    body = {**device.body(), "ticket": renewed["ticket"]}
    assert campaign.submit(body).status == 200
    server.clock.step = 0
    assert campaign.submit(device.body()).status == 200, "the same submission, with both tickets"
    eventually(lambda: campaign.status()["submissions"] == 1)
    assert campaign.status()["enrolled"] == 1


def test_an_invite_is_valid_for_as_long_as_the_wall_clock_says(server: InProcessCollector) -> None:
    campaign = server.create_campaign()
    made = server.operator.post(f"{campaign.path}/invites", {"count": 1, "days": 1})
    wish = {"device": secrets.token_hex(32), "invite": made["invites"][0]}
    server.clock.step = DAY + 60
    assert campaign.request_ticket(**wish).code == "invalid-invite"
    server.clock.step = -DAY
    assert campaign.request_ticket(**wish).status == 200
    server.clock.step = DAY + 60
    assert campaign.request_ticket(**wish).status == 200, "who came in time keeps the ticket"


def test_a_campaign_that_has_reached_its_end_stays_closed(server: InProcessCollector) -> None:
    campaign = server.create_campaign(closes_at=iso(server.clock.now() + 3600))
    device = campaign.enrol_device()
    server.clock.step = 3700
    assert campaign.submit(device.body()).code == "campaign-not-open"
    assert (
        campaign.request_ticket(device=device.secret, invite=device.invite).code
        == "campaign-not-open"
    )
    eventually(lambda: campaign.status()["state"] == "closed")
    for step in (0, -DAY):
        server.clock.step = step
        assert campaign.submit(device.body()).code == "campaign-not-open"
        assert campaign.request_ticket(device=device.secret, invite=device.invite).status == 409
    assert server.operator.post(f"{campaign.path}/open")["state"] == "open"
    assert campaign.submit(device.body()).status == 200


@pytest.mark.parametrize("step", [-400 * DAY, 400 * DAY])
def test_rate_limits_ignore_the_wall_clock(server: InProcessCollector, step: int) -> None:
    campaign = server.create_campaign()

    def guess() -> int:
        return campaign.request_ticket(device=secrets.token_hex(32), invite="a guess").status

    server.clock.stopped_at = 1000.0
    statuses = [guess() for _ in range(70)]
    assert statuses == [403] * 60 + [429] * 10
    server.clock.step = step
    assert {guess() for _ in range(20)} == {429}
    server.clock.stopped_at += 1.0
    assert guess() == 403


def test_estimates_and_activity_go_on_after_a_step_back(server: InProcessCollector) -> None:
    fleet = DeviceFleet(server.create_campaign(), Random(1), most=72)
    campaign = fleet.campaign
    for step in (0, -DAY, DAY):
        server.clock.step = step
        fleet.add_devices(24)
        fleet.finish()
        reply = server.request("GET", f"{campaign.path}/estimate", token=server.token)
        assert reply.status == 200
    server.clock.step = 0
    eventually(lambda: len(campaign.status()["estimates"]) == 3)
    status = campaign.status()
    assert sum(minute["submissions"] for minute in status["activity"]) == 72
    assert [estimate["users"] for estimate in status["estimates"]] == [24, 48, 72]
    times = [minute["at"] for minute in status["activity"]]
    assert times == sorted(times)
