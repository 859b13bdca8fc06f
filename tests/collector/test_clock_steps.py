"""The wall clock is set back and forward under a running collector."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from support.concurrent_devices import Crew
from support.database_audit import books
from support.running_collectors import CampaignFace, Here, collector_here, eventually
from unpoison.collector.clock import iso

DAY = 86400
LIFETIME = 7 * DAY
STEPS = (-400 * DAY, -3600, -1, 0, 1, 3600, 6 * DAY)
"""All within a ticket's lifetime, or before it was issued."""


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Here]:
    with collector_here(tmp_path, guesses_per_minute=60) as found:
        yield found


@pytest.mark.parametrize("step", STEPS)
def test_reports_are_stored_at_once_whatever_the_clock_says(here: Here, step: int) -> None:
    campaign = here.campaign()
    first, second = campaign.enrolled(), campaign.enrolled()
    here.clock.step = step
    started = time.monotonic()
    assert campaign.submit(first.body()).status == 200
    here.clock.step = 0
    assert campaign.submit(second.body()).status == 200
    assert campaign.submit(first.body()).status == 200
    assert time.monotonic() - started < 5
    found = books(str(here.collector.database.url.database), campaign.id)
    found.check()
    assert len(found.cells) == 2


def test_a_ticket_is_valid_for_as_long_as_the_wall_clock_says(here: Here) -> None:
    campaign = here.campaign()
    devices = [campaign.enrolled() for _ in range(4)]
    here.clock.step = LIFETIME - 60
    assert campaign.submit(devices[0].body()).status == 200
    here.clock.step = LIFETIME + 60
    assert campaign.submit(devices[1].body()).code == "ticket-expired"
    here.clock.step = -30 * DAY
    assert campaign.submit(devices[1].body()).status == 200
    here.clock.step = 0
    assert campaign.submit(devices[2].body()).status == 200
    here.clock.step = LIFETIME + 60
    assert campaign.submit(devices[3].body()).code == "ticket-expired"


def asked_again(campaign: CampaignFace, device: Any) -> dict[str, Any]:
    reply = campaign.enrol(device=device.device, invite=device.invite)
    assert reply.status == 200
    found: dict[str, Any] = reply.json
    return found


def test_a_device_that_asks_again_gets_its_seat_at_any_time(here: Here) -> None:
    campaign = here.campaign()
    device = campaign.enrolled()
    for step in STEPS:
        here.clock.step = step
        assert asked_again(campaign, device) == device.ticket
    here.clock.step = LIFETIME + 60
    renewed = asked_again(campaign, device)
    assert renewed["groups"] == device.ticket["groups"]
    assert renewed["expires_at"] > device.ticket["expires_at"]
    body = {**device.body(), "ticket": renewed["ticket"]}
    assert campaign.submit(body).status == 200
    here.clock.step = 0
    assert campaign.submit(device.body()).status == 200, "the same submission, with both tickets"
    eventually(lambda: campaign.status()["submissions"] == 1)
    assert campaign.status()["enrolled"] == 1


def test_an_invite_is_valid_for_as_long_as_the_wall_clock_says(here: Here) -> None:
    campaign = here.campaign()
    made = here.operator.post(f"{campaign.path}/invites", {"count": 1, "days": 1})
    wish = {"device": secrets.token_hex(32), "invite": made["invites"][0]}
    here.clock.step = DAY + 60
    assert campaign.enrol(**wish).code == "invalid-invite"
    here.clock.step = -DAY
    assert campaign.enrol(**wish).status == 200
    here.clock.step = DAY + 60
    assert campaign.enrol(**wish).status == 200, "who came in time keeps the seat"


def test_a_campaign_that_has_reached_its_end_stays_closed(here: Here) -> None:
    campaign = here.campaign(closes_at=iso(here.clock.now() + 3600))
    device = campaign.enrolled()
    here.clock.step = 3700
    assert campaign.submit(device.body()).code == "campaign-not-open"
    assert campaign.enrol(device=device.device, invite=device.invite).code == "campaign-not-open"
    eventually(lambda: campaign.status()["state"] == "closed")
    for step in (0, -DAY):
        here.clock.step = step
        assert campaign.submit(device.body()).code == "campaign-not-open"
        assert campaign.enrol(device=device.device, invite=device.invite).status == 409
    assert here.operator.post(f"{campaign.path}/open")["state"] == "open"
    assert campaign.submit(device.body()).status == 200


@pytest.mark.parametrize("step", [-400 * DAY, 400 * DAY])
def test_limits_do_not_look_at_the_wall_clock(here: Here, step: int) -> None:
    campaign = here.campaign()

    def guess() -> int:
        return campaign.enrol(device=secrets.token_hex(32), invite="a guess").status

    statuses = [guess() for _ in range(70)]
    assert set(statuses) == {403, 429}
    here.clock.step = step
    assert 429 in {guess() for _ in range(20)}
    eventually(lambda: guess() == 403, 5)


def test_estimates_and_activity_go_on_after_a_step_back(here: Here) -> None:
    crew = Crew(here.campaign(), Random(1), most=72)
    campaign = crew.campaign
    for step in (0, -DAY, DAY):
        here.clock.step = step
        crew.volley(24)
        crew.finish()
        reply = here.ask("GET", f"{campaign.path}/estimate", token=here.token)
        assert reply.status == 200
    here.clock.step = 0
    eventually(lambda: len(campaign.status()["estimates"]) == 3)
    status = campaign.status()
    assert sum(each["submissions"] for each in status["activity"]) == 72
    assert [each["users"] for each in status["estimates"]] == [24, 48, 72]
    times = [each["at"] for each in status["activity"]]
    assert times == sorted(times)
