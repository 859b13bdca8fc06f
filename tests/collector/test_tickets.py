"""Forged, altered, expired, reused and stolen tickets are refused."""

from __future__ import annotations

import secrets
import time
from pathlib import Path

import pytest

from support.raw_http import (
    NO_RATE_LIMITS,
    assert_nothing_counted,
    assert_refused,
    campaign_fixture,
    clock_fixture,
    key_file_of,
    server_fixture,
    stored_counts,
)
from support.running_collectors import (
    EnrolledDevice,
    InProcessCollector,
    RunningCampaign,
    SteppedClock,
    in_process_collector,
)
from unpoison.collector.campaigns.tickets import TicketSigner
from unpoison.collector.service.signing_keys import KeyFile
from unpoison.summary import Summary

DAY = 86400
TEXT_PARTS = ("campaign", "number", "group", "device", "expires_at", "signature")

server = server_fixture(**NO_RATE_LIMITS)
campaign = campaign_fixture()
clock = clock_fixture()


def flipped(text: str, place: int) -> str:
    """The text with the lowest bit of one character changed."""
    return text[:place] + chr(ord(text[place]) ^ 1) + text[place + 1 :]


def with_ticket(text: str, device: EnrolledDevice) -> dict[str, object]:
    return {**device.body(), "ticket": text}


@pytest.mark.parametrize(
    "text",
    [
        "x",
        ".",
        "." * 100,
        "a.b.c.d.e.f",
        "\x00",
        "…" * 300,
        "null",
        "' OR 1 = 1 --",
        "5eed" * 32,
        "Zm9yZ2Vk-_" * 20,
    ],
)
def test_random_text_is_no_ticket(campaign: RunningCampaign, text: str) -> None:
    device = campaign.enrol_device()
    with assert_nothing_counted(campaign):
        assert_refused(campaign.submit(with_ticket(text, device)), 403, "invalid-ticket")


@pytest.mark.parametrize("text", ["", "a" * 1025])
def test_a_ticket_has_a_length(campaign: RunningCampaign, text: str) -> None:
    device = campaign.enrol_device()
    with assert_nothing_counted(campaign):
        reply = campaign.submit(with_ticket(text, device))
    assert_refused(reply, 422, "invalid-request")
    assert reply.json["error"]["field"] == "ticket"


def test_a_ticket_signed_with_another_key_is_forged(
    server: InProcessCollector, campaign: RunningCampaign
) -> None:
    device = campaign.enrol_device()
    genuine = server.collector.signer.read(device.ticket["ticket"])
    forged = TicketSigner([secrets.token_hex(32)]).sign(genuine)
    with assert_nothing_counted(campaign):
        assert_refused(campaign.submit(with_ticket(forged, device)), 403, "invalid-ticket")


def test_the_signature_of_another_ticket_is_refused(campaign: RunningCampaign) -> None:
    one, other = campaign.enrol_device(), campaign.enrol_device()
    fields = one.ticket["ticket"].rpartition(".")[0]
    signature = other.ticket["ticket"].rpartition(".")[2]
    for text in (f"{fields}.{signature}", f"{fields}.", fields):
        with assert_nothing_counted(campaign):
            assert_refused(campaign.submit(with_ticket(text, one)), 403, "invalid-ticket")


@pytest.mark.parametrize("part", range(len(TEXT_PARTS)), ids=TEXT_PARTS)
def test_a_flipped_bit_in_any_part_is_noticed(campaign: RunningCampaign, part: int) -> None:
    device = campaign.enrol_device()
    parts = device.ticket["ticket"].split(".")
    assert len(parts) == len(TEXT_PARTS)
    parts[part] = flipped(parts[part], 0)
    with assert_nothing_counted(campaign):
        assert_refused(campaign.submit(with_ticket(".".join(parts), device)), 403, "invalid-ticket")


def test_a_flipped_bit_anywhere_is_noticed(campaign: RunningCampaign) -> None:
    """But for the last character: two of its bits are beyond the signature's end."""
    device = campaign.enrol_device()
    text = device.ticket["ticket"]
    forged = [with_ticket(flipped(text, place), device) for place in range(len(text) - 1)]
    with assert_nothing_counted(campaign):
        path = f"{campaign.path}/reports/batch"
        results = campaign.server.post(path, {"submissions": forged}).json["results"]
    assert len(results) == len(forged) > 100
    assert {result["error"]["code"] for result in results} == {"invalid-ticket"}


def test_a_ticket_cannot_be_moved_to_another_group(campaign: RunningCampaign) -> None:
    device = campaign.enrol_device()
    for group in {0, 1, 2} - {device.group}:
        parts = device.ticket["ticket"].split(".")
        assert parts[2] == str(device.group)
        parts[2] = str(group)
        body = {**device.body([7] * 2**group), "ticket": ".".join(parts)}
        with assert_nothing_counted(campaign):
            assert_refused(campaign.submit(body), 403, "invalid-ticket")


def test_a_ticket_cannot_be_moved_to_another_campaign(
    server: InProcessCollector, campaign: RunningCampaign
) -> None:
    other = server.create_campaign()
    device = campaign.enrol_device()
    parts = device.ticket["ticket"].split(".")
    assert parts[0] == campaign.id
    with assert_nothing_counted(campaign), assert_nothing_counted(other):
        assert_refused(other.submit(device.body()), 403, "invalid-ticket")
        moved = ".".join([other.id, *parts[1:]])
        assert_refused(other.submit(with_ticket(moved, device)), 403, "invalid-ticket")


def test_a_device_cannot_use_its_ticket_of_another_campaign(server: InProcessCollector) -> None:
    """The same secret in both, and so the same mark in both tickets."""
    one, other = server.create_campaign(), server.create_campaign()
    secret = secrets.token_hex(32)
    first = EnrolledDevice(secret, one.request_ticket(device=secret, invite=one.invite()).json)
    second = EnrolledDevice(secret, other.request_ticket(device=secret, invite=other.invite()).json)
    with assert_nothing_counted(one), assert_nothing_counted(other):
        assert_refused(one.submit(second.body()), 403, "invalid-ticket")
        assert_refused(other.submit(first.body()), 403, "invalid-ticket")


def test_a_ticket_cannot_be_used_by_another_device(campaign: RunningCampaign) -> None:
    one, other = campaign.enrol_device(), campaign.enrol_device()
    with assert_nothing_counted(campaign):
        stolen = {**one.body(), "device": other.secret}
        assert_refused(campaign.submit(stolen), 403, "invalid-ticket")
        unknown = {**one.body(), "device": secrets.token_hex(32)}
        assert_refused(campaign.submit(unknown), 403, "invalid-ticket")
    assert campaign.submit(one.body()).status == 200


def test_an_expired_ticket_is_refused_until_it_is_asked_for_again(
    campaign: RunningCampaign, clock: SteppedClock
) -> None:
    device = campaign.enrol_device()
    clock.step = 8 * DAY
    with assert_nothing_counted(campaign):
        assert_refused(campaign.submit(device.body()), 403, "ticket-expired")
        again = campaign.request_ticket(device=device.secret, invite=device.invite).json
    assert again["ticket"] != device.ticket["ticket"]
    assert again["groups"] == device.ticket["groups"]
    assert campaign.submit(with_ticket(again["ticket"], device)).status == 200


def test_what_was_counted_in_time_is_answered_alike_after_the_ticket_has_expired(
    campaign: RunningCampaign, clock: SteppedClock
) -> None:
    device = campaign.enrol_device()
    assert campaign.submit(device.body()).status == 200
    clock.step = 8 * DAY
    with assert_nothing_counted(campaign):
        assert campaign.submit(device.body()).json == {"status": "accepted"}
        assert_refused(campaign.submit(device.body([8] * device.reports)), 409, "ticket-used")


def test_the_same_submission_again_is_answered_alike_and_counted_once(
    campaign: RunningCampaign,
) -> None:
    device = campaign.enrol_device()
    first = campaign.submit(device.body())
    assert (first.status, first.json) == (200, {"status": "accepted"})
    with assert_nothing_counted(campaign):
        for _ in range(3):
            again = campaign.submit(device.body())
            assert (again.status, again.body) == (first.status, first.body)


def test_a_used_ticket_takes_no_other_values(campaign: RunningCampaign) -> None:
    device = next(
        enrolled for enrolled in iter(campaign.enrol_device, None) if enrolled.reports == 4
    )
    values = [1, 2, 3, 4]
    assert campaign.submit(device.body(values)).status == 200
    with assert_nothing_counted(campaign):
        assert_refused(campaign.submit(device.body([1, 2, 3, 5])), 409, "ticket-used")
        assert_refused(campaign.submit(device.body(values[::-1])), 409, "ticket-used")
        other = {**device.body(values), "device": secrets.token_hex(32)}
        assert_refused(campaign.submit(other), 403, "invalid-ticket")


def test_one_batch_may_use_a_ticket_once(campaign: RunningCampaign) -> None:
    device = campaign.enrol_device()
    before = stored_counts(campaign)
    submissions = [device.body(), device.body(), device.body([8] * device.reports)]
    reply = campaign.server.post(f"{campaign.path}/reports/batch", {"submissions": submissions})
    *accepted, last = reply.json["results"]
    assert accepted == [{"status": "accepted"}] * 2
    assert (last["status"], last["error"]["code"]) == ("refused", "ticket-used")
    after = stored_counts(campaign)
    assert after.submissions == before.submissions + 1
    assert after.reports == before.reports + device.reports


def test_a_closed_campaign_knows_what_it_counted_and_takes_nothing_new(
    server: InProcessCollector,
) -> None:
    campaign = server.create_campaign()
    counted, late = campaign.enrol_device(), campaign.enrol_device()
    assert campaign.submit(counted.body()).status == 200
    server.operator.post(f"{campaign.path}/close")
    with assert_nothing_counted(campaign):
        assert campaign.submit(counted.body()).status == 200
        other = counted.body([8] * counted.reports)
        assert_refused(campaign.submit(other), 409, "ticket-used")
        assert_refused(campaign.submit(late.body()), 409, "campaign-not-open")
    summary = Summary.from_bytes(server.operator.download(f"{campaign.path}/summary"))
    assert summary.total_users == 1


def moved(campaign: RunningCampaign, server: InProcessCollector) -> RunningCampaign:
    """The campaign as another server of the same folder has it."""
    return RunningCampaign(server, campaign.id, campaign.plan)


@pytest.mark.server
def test_old_tickets_are_believed_after_a_rotation_but_not_once_their_key_is_forgotten(
    tmp_path: Path,
) -> None:
    keys = KeyFile(key_file_of(tmp_path))
    with in_process_collector(tmp_path) as first:
        campaign = first.create_campaign()
        early, late = campaign.enrol_device(), campaign.enrol_device()
    old = keys.load()
    assert keys.rotate(signs_from=int(time.time()))[:-1] == old
    with in_process_collector(tmp_path) as second:
        campaign = moved(campaign, second)
        assert campaign.submit(early.body()).status == 200
        again = campaign.request_ticket(device=late.secret, invite=late.invite).json
        fields, signature = late.ticket["ticket"].rpartition(".")[::2]
        assert again["ticket"].startswith(f"{fields}.")
        assert not again["ticket"].endswith(signature)
    assert len(keys.forget(now=int(time.time()))) == 1
    with in_process_collector(tmp_path) as third:
        campaign = moved(campaign, third)
        with assert_nothing_counted(campaign):
            assert_refused(campaign.submit(late.body()), 403, "invalid-ticket")
            assert_refused(campaign.submit(early.body()), 403, "invalid-ticket")
        assert campaign.submit(with_ticket(again["ticket"], late)).status == 200
        assert stored_counts(campaign).submissions == 2


@pytest.mark.server
def test_a_ticket_outlives_its_server(tmp_path: Path) -> None:
    with in_process_collector(tmp_path) as first:
        campaign = first.create_campaign()
        device = campaign.enrol_device()
    with in_process_collector(tmp_path) as second:
        campaign = moved(campaign, second)
        again = campaign.request_ticket(device=device.secret, invite=device.invite).json
        assert again == device.ticket
        assert campaign.submit(device.body()).status == 200
