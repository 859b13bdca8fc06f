"""Tickets that are forged, changed, too old, used before, or of others: none of them counts."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.raw_http import (
    PATIENT,
    campaign_fixture,
    counts,
    here_fixture,
    keys_of,
    nothing_counted,
    refused,
)
from support.running_collectors import CampaignFace, Here, Pass, SteppedClock, collector_here
from unpoison.collector.campaigns.tickets import TicketSigner
from unpoison.collector.service.keys import KeyFile

DAY = 86400
TEXT_PARTS = ("campaign", "number", "group", "device", "expires_at", "signature")

here = here_fixture(**PATIENT)
campaign = campaign_fixture()


@pytest.fixture
def clock(here: Here) -> Iterator[SteppedClock]:
    yield here.clock
    here.clock.step = 0


def flipped(text: str, place: int) -> str:
    """The text with the lowest bit of one character changed."""
    return text[:place] + chr(ord(text[place]) ^ 1) + text[place + 1 :]


def with_ticket(text: str, device: Pass) -> dict[str, object]:
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
def test_random_text_is_no_ticket(campaign: CampaignFace, text: str) -> None:
    device = campaign.enrolled()
    with nothing_counted(campaign):
        refused(campaign.submit(with_ticket(text, device)), 403, "invalid-ticket")


@pytest.mark.parametrize("text", ["", "a" * 1025])
def test_a_ticket_has_a_length(campaign: CampaignFace, text: str) -> None:
    device = campaign.enrolled()
    with nothing_counted(campaign):
        reply = campaign.submit(with_ticket(text, device))
    refused(reply, 422, "invalid-request")
    assert reply.json["error"]["field"] == "ticket"


def test_a_ticket_signed_with_another_key_is_forged(here: Here, campaign: CampaignFace) -> None:
    device = campaign.enrolled()
    genuine = here.collector.signer.read(device.ticket["ticket"])
    forged = TicketSigner([secrets.token_hex(32)]).sign(genuine)
    with nothing_counted(campaign):
        refused(campaign.submit(with_ticket(forged, device)), 403, "invalid-ticket")


def test_a_signature_of_one_ticket_does_not_fit_another(campaign: CampaignFace) -> None:
    one, other = campaign.enrolled(), campaign.enrolled()
    fields = one.ticket["ticket"].rpartition(".")[0]
    signature = other.ticket["ticket"].rpartition(".")[2]
    for text in (f"{fields}.{signature}", f"{fields}.", fields):
        with nothing_counted(campaign):
            refused(campaign.submit(with_ticket(text, one)), 403, "invalid-ticket")


@pytest.mark.parametrize("part", range(len(TEXT_PARTS)), ids=TEXT_PARTS)
def test_a_flipped_bit_in_any_part_is_noticed(campaign: CampaignFace, part: int) -> None:
    device = campaign.enrolled()
    parts = device.ticket["ticket"].split(".")
    assert len(parts) == len(TEXT_PARTS)
    parts[part] = flipped(parts[part], 0)
    with nothing_counted(campaign):
        refused(campaign.submit(with_ticket(".".join(parts), device)), 403, "invalid-ticket")


def test_a_flipped_bit_anywhere_is_noticed(campaign: CampaignFace) -> None:
    """But for the last character: two of its bits are beyond the signature's end."""
    device = campaign.enrolled()
    text = device.ticket["ticket"]
    forged = [with_ticket(flipped(text, place), device) for place in range(len(text) - 1)]
    with nothing_counted(campaign):
        path = f"{campaign.path}/reports/batch"
        results = campaign.face.post(path, {"submissions": forged}).json["results"]
    assert len(results) == len(forged) > 100
    assert {each["error"]["code"] for each in results} == {"invalid-ticket"}


def test_a_ticket_cannot_be_moved_to_another_group(campaign: CampaignFace) -> None:
    device = campaign.enrolled()
    for group in {0, 1, 2} - {device.group}:
        parts = device.ticket["ticket"].split(".")
        assert parts[2] == str(device.group)
        parts[2] = str(group)
        body = {**device.body([7] * 2**group), "ticket": ".".join(parts)}
        with nothing_counted(campaign):
            refused(campaign.submit(body), 403, "invalid-ticket")


def test_a_ticket_cannot_be_moved_to_another_campaign(here: Here, campaign: CampaignFace) -> None:
    other = here.campaign()
    device = campaign.enrolled()
    parts = device.ticket["ticket"].split(".")
    assert parts[0] == campaign.id
    with nothing_counted(campaign), nothing_counted(other):
        refused(other.submit(device.body()), 403, "invalid-ticket")
        moved = ".".join([other.id, *parts[1:]])
        refused(other.submit(with_ticket(moved, device)), 403, "invalid-ticket")


def test_a_device_cannot_use_its_ticket_of_another_campaign(here: Here) -> None:
    """The same secret in both, and so the same mark in both tickets."""
    one, other = here.campaign(), here.campaign()
    secret = secrets.token_hex(32)
    first = Pass(secret, one.enrol(device=secret, invite=one.invite()).json)
    second = Pass(secret, other.enrol(device=secret, invite=other.invite()).json)
    with nothing_counted(one), nothing_counted(other):
        refused(one.submit(second.body()), 403, "invalid-ticket")
        refused(other.submit(first.body()), 403, "invalid-ticket")


def test_a_ticket_cannot_be_used_by_another_device(campaign: CampaignFace) -> None:
    one, other = campaign.enrolled(), campaign.enrolled()
    with nothing_counted(campaign):
        stolen = {**one.body(), "device": other.device}
        refused(campaign.submit(stolen), 403, "invalid-ticket")
        unknown = {**one.body(), "device": secrets.token_hex(32)}
        refused(campaign.submit(unknown), 403, "invalid-ticket")
    assert campaign.submit(one.body()).status == 200


def test_an_expired_ticket_is_refused_until_it_is_asked_for_again(
    campaign: CampaignFace, clock: SteppedClock
) -> None:
    device = campaign.enrolled()
    clock.step = 8 * DAY
    with nothing_counted(campaign):
        refused(campaign.submit(device.body()), 403, "ticket-expired")
        again = campaign.enrol(device=device.device, invite=device.invite).json
    assert again["ticket"] != device.ticket["ticket"]
    assert again["groups"] == device.ticket["groups"]
    assert campaign.submit(with_ticket(again["ticket"], device)).status == 200


def test_what_was_counted_in_time_is_answered_alike_after_the_ticket_has_expired(
    campaign: CampaignFace, clock: SteppedClock
) -> None:
    device = campaign.enrolled()
    assert campaign.submit(device.body()).status == 200
    clock.step = 8 * DAY
    with nothing_counted(campaign):
        assert campaign.submit(device.body()).json == {"status": "accepted"}
        refused(campaign.submit(device.body([8] * device.reports)), 409, "ticket-used")


def test_the_same_submission_again_is_answered_alike_and_counted_once(
    campaign: CampaignFace,
) -> None:
    device = campaign.enrolled()
    first = campaign.submit(device.body())
    assert (first.status, first.json) == (200, {"status": "accepted"})
    with nothing_counted(campaign):
        for _ in range(3):
            again = campaign.submit(device.body())
            assert (again.status, again.body) == (first.status, first.body)


def test_a_used_ticket_takes_no_other_values(campaign: CampaignFace) -> None:
    device = next(each for each in iter(campaign.enrolled, None) if each.reports == 4)
    values = [1, 2, 3, 4]
    assert campaign.submit(device.body(values)).status == 200
    with nothing_counted(campaign):
        refused(campaign.submit(device.body([1, 2, 3, 5])), 409, "ticket-used")
        refused(campaign.submit(device.body(values[::-1])), 409, "ticket-used")
        other = {**device.body(values), "device": secrets.token_hex(32)}
        refused(campaign.submit(other), 403, "invalid-ticket")


def test_one_batch_may_use_a_ticket_once(campaign: CampaignFace) -> None:
    device = campaign.enrolled()
    before = counts(campaign)
    given = [device.body(), device.body(), device.body([8] * device.reports)]
    reply = campaign.face.post(f"{campaign.path}/reports/batch", {"submissions": given})
    *accepted, last = reply.json["results"]
    assert accepted == [{"status": "accepted"}] * 2
    assert (last["status"], last["error"]["code"]) == ("refused", "ticket-used")
    after = counts(campaign)
    assert after.submissions == before.submissions + 1
    assert after.reports == before.reports + device.reports


def test_a_closed_campaign_knows_what_it_counted_and_takes_nothing_new(here: Here) -> None:
    campaign = here.campaign()
    counted, late = campaign.enrolled(), campaign.enrolled()
    assert campaign.submit(counted.body()).status == 200
    here.operator.post(f"{campaign.path}/close")
    with nothing_counted(campaign):
        assert campaign.submit(counted.body()).status == 200
        other = counted.body([8] * counted.reports)
        refused(campaign.submit(other), 409, "ticket-used")
        refused(campaign.submit(late.body()), 409, "campaign-not-open")


def moved(campaign: CampaignFace, here: Here) -> CampaignFace:
    """The campaign as another server of the same folder has it."""
    return CampaignFace(here, campaign.id, campaign.plan)


def test_old_tickets_are_believed_after_a_rotation_but_not_once_their_key_is_forgotten(
    tmp_path: Path,
) -> None:
    keys = KeyFile(keys_of(tmp_path))
    with collector_here(tmp_path) as first:
        campaign = first.campaign()
        early, late = campaign.enrolled(), campaign.enrolled()
    old = keys.load()
    assert keys.rotate()[:-1] == old
    with collector_here(tmp_path) as second:
        campaign = moved(campaign, second)
        assert campaign.submit(early.body()).status == 200
        again = campaign.enrol(device=late.device, invite=late.invite).json
        fields, signature = late.ticket["ticket"].rpartition(".")[::2]
        assert again["ticket"].startswith(f"{fields}.")
        assert not again["ticket"].endswith(signature)
    assert len(keys.forget()) == 1
    with collector_here(tmp_path) as third:
        campaign = moved(campaign, third)
        with nothing_counted(campaign):
            refused(campaign.submit(late.body()), 403, "invalid-ticket")
            refused(campaign.submit(early.body()), 403, "invalid-ticket")
        assert campaign.submit(with_ticket(again["ticket"], late)).status == 200
        assert counts(campaign).submissions == 2


def test_a_ticket_outlives_its_server(tmp_path: Path) -> None:
    with collector_here(tmp_path) as first:
        campaign = first.campaign()
        device = campaign.enrolled()
    with collector_here(tmp_path) as second:
        campaign = moved(campaign, second)
        again = campaign.enrol(device=device.device, invite=device.invite).json
        assert again == device.ticket
        assert campaign.submit(device.body()).status == 200
