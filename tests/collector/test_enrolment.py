"""Enrolment: one ticket per device, one device per invite, balanced random groups."""

from __future__ import annotations

import secrets
import zipfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from itertools import cycle
from typing import Any

import pytest

from support.raw_http import (
    NO_RATE_LIMITS,
    assert_nothing_counted,
    assert_refused,
    campaign_fixture,
    clock_fixture,
    server_fixture,
    stored_counts,
)
from support.running_collectors import SMALL_PLAN, InProcessCollector, RunningCampaign, SteppedClock
from unpoison.collector.campaigns.campaigns import Campaigns
from unpoison.collector.campaigns.enrolment import EnrolmentRequest, IssuedTicket, enrol_all
from unpoison.collector.campaigns.invites import issue_invites
from unpoison.collector.campaigns.status import status
from unpoison.collector.campaigns.temporary_campaign import temporary_campaign
from unpoison.collector.credentials import hashed

DAY = 86400
TIERS = {**SMALL_PLAN, "min_epsilon": 0.5, "tiers": [{"epsilon": 0.5, "min_epsilon": 0.125}]}
BASELINE = {**SMALL_PLAN, "protocol": "baseline", "tiers": [{"epsilon": 0.5, "min_epsilon": 0.25}]}
UNEQUAL = {
    **SMALL_PLAN,
    "groups": [
        {"epsilon": 1.0, "reports": 1, "share": 0.5},
        {"epsilon": 0.5, "reports": 2, "share": 0.25},
        {"epsilon": 0.25, "reports": 4, "share": 0.25},
    ],
}

server = server_fixture(**NO_RATE_LIMITS)
campaign = campaign_fixture()
clock = clock_fixture()


def test_asking_again_gives_the_same_ticket_to_the_byte(campaign: RunningCampaign) -> None:
    enrolment = {"device": secrets.token_hex(32), "invite": campaign.invite()}
    first = campaign.request_ticket(**enrolment)
    assert first.status == 200
    with assert_nothing_counted(campaign):
        for _ in range(3):
            assert campaign.request_ticket(**enrolment).body == first.body


def test_asking_at_the_same_time_gives_the_same_ticket(campaign: RunningCampaign) -> None:
    enrolment = {"device": secrets.token_hex(32), "invite": campaign.invite()}
    before = stored_counts(campaign)
    with ThreadPoolExecutor(16) as pool:
        replies = list(pool.map(lambda _: campaign.request_ticket(**enrolment), range(16)))
    assert {(reply.status, reply.body) for reply in replies} == {(200, replies[0].body)}
    assert stored_counts(campaign) == before._replace(
        enrolled=before.enrolled + 1, used=before.used + 1
    )


def test_a_device_cannot_ask_for_another_tier_later(server: InProcessCollector) -> None:
    campaign = server.create_campaign(TIERS)
    device = campaign.enrol_device(tier=1)
    with assert_nothing_counted(campaign):
        for tier in (0, 1):
            again = campaign.request_ticket(device=device.secret, invite=device.invite, tier=tier)
            assert again.json == device.ticket
        again = campaign.request_ticket(device=device.secret, invite=device.invite, tier=2)
        assert_refused(again, 422, "unknown-tier")


def test_a_used_invite_is_of_no_use_to_another_device(campaign: RunningCampaign) -> None:
    device = campaign.enrol_device()
    with assert_nothing_counted(campaign):
        stolen = campaign.request_ticket(device=secrets.token_hex(32), invite=device.invite)
        assert_refused(stolen, 409, "invite-used")


def test_of_many_devices_with_one_invite_one_gets_a_ticket(campaign: RunningCampaign) -> None:
    invite, before = campaign.invite(), stored_counts(campaign)

    def ask(_: int) -> tuple[int, str]:
        reply = campaign.request_ticket(device=secrets.token_hex(32), invite=invite)
        return reply.status, "" if reply.status == 200 else reply.code

    with ThreadPoolExecutor(16) as pool:
        replies = Counter(pool.map(ask, range(16)))
    assert replies == {(200, ""): 1, (409, "invite-used"): 15}
    assert stored_counts(campaign) == before._replace(
        enrolled=before.enrolled + 1, used=before.used + 1
    )


@pytest.mark.parametrize("invite", ["0" * 32, "x", "…", "' OR 1 = 1 --", "\x00", None])
def test_an_invite_that_was_never_issued_is_none(
    campaign: RunningCampaign, invite: str | None
) -> None:
    device = secrets.token_hex(32)
    with assert_nothing_counted(campaign):
        assert_refused(campaign.request_ticket(device=device, invite=invite), 403, "invalid-invite")


def test_without_an_invite_there_is_no_ticket(campaign: RunningCampaign) -> None:
    with assert_nothing_counted(campaign):
        assert_refused(campaign.request_ticket(device=secrets.token_hex(32)), 403, "invalid-invite")


def test_an_invite_in_other_letters_is_another_one(campaign: RunningCampaign) -> None:
    invite = next(code for code in iter(campaign.invite, None) if code.upper() != code)
    for other in (invite.upper(), f" {invite}", f"{invite}\n", invite[:-1]):
        with assert_nothing_counted(campaign):
            reply = campaign.request_ticket(device=secrets.token_hex(32), invite=other)
            assert_refused(reply, 403, "invalid-invite")
    assert campaign.request_ticket(device=secrets.token_hex(32), invite=invite).status == 200


def test_an_expired_invite_is_none_but_its_device_keeps_its_ticket(
    server: InProcessCollector, campaign: RunningCampaign, clock: SteppedClock
) -> None:
    body = {"count": 2, "days": 1}
    used, late = server.operator.post(f"{campaign.path}/invites", body)["invites"]
    device = secrets.token_hex(32)
    ticket = campaign.request_ticket(device=device, invite=used)
    assert ticket.status == 200
    clock.step = DAY
    with assert_nothing_counted(campaign):
        assert campaign.request_ticket(device=device, invite=used).body == ticket.body
        assert_refused(
            campaign.request_ticket(device=secrets.token_hex(32), invite=late),
            403,
            "invalid-invite",
        )


def test_an_invite_to_another_campaign_is_none_and_stays_unspent(
    server: InProcessCollector, campaign: RunningCampaign
) -> None:
    other = server.create_campaign()
    invite = other.invite()
    with assert_nothing_counted(campaign), assert_nothing_counted(other):
        reply = campaign.request_ticket(device=secrets.token_hex(32), invite=invite)
        assert_refused(reply, 403, "invalid-invite")
    assert other.request_ticket(device=secrets.token_hex(32), invite=invite).status == 200


def test_a_device_with_two_invites_has_one_ticket_and_leaves_the_other_invite(
    campaign: RunningCampaign,
) -> None:
    device, spare = campaign.enrol_device(), campaign.invite()
    with assert_nothing_counted(campaign):
        assert campaign.request_ticket(device=device.secret, invite=spare).json == device.ticket
    assert campaign.request_ticket(device=secrets.token_hex(32), invite=spare).status == 200


def test_so_it_is_within_one_transaction() -> None:
    with temporary_campaign() as (connection, campaign):
        codes = issue_invites(connection, campaign.id, 3, None, now=0)
        first, second, third = (hashed(code) for code in codes)
        pairs = [("aa", first), ("aa", second), ("bb", second), ("cc", first), ("aa", third)]
        requests = [EnrolmentRequest(campaign, device, 0, invite) for device, invite in pairs]
        outcomes = enrol_all(connection, requests, now=0)
        assert status(connection, campaign)["invites"] == {"issued": 3, "used": 2}
    assert outcomes[0] == outcomes[1] == outcomes[4]
    assert isinstance(outcomes[2], IssuedTicket)
    assert outcomes[2] != outcomes[0]
    assert getattr(outcomes[3], "code", None) == "invite-used"


def test_a_draft_and_a_closed_campaign_give_no_tickets(server: InProcessCollector) -> None:
    campaign = server.create_campaign(open=False)
    invite = campaign.invite()
    enrolment = {"device": secrets.token_hex(32), "invite": invite}
    with assert_nothing_counted(campaign):
        assert_refused(campaign.request_ticket(**enrolment), 409, "campaign-not-open")
        server.operator.post(f"{campaign.path}/open")
        server.operator.post(f"{campaign.path}/close")
        assert_refused(campaign.request_ticket(**enrolment), 409, "campaign-not-open")


@pytest.mark.parametrize(
    ("device", "status_code"),
    [
        ("ab" * 32, 200),
        ("AB" * 32, 422),
        ("ab" * 31, 422),
        ("ab" * 33, 422),
        ("ab" * 32 + "\n", 422),
        (" " + "ab" * 32, 422),
        ("ag" * 32, 422),
        ("٠١" * 32, 422),
        ("", 422),
        (None, 422),
        (7, 422),
    ],
)
def test_a_device_is_64_hex_digits(
    campaign: RunningCampaign, device: Any, status_code: int
) -> None:
    before = stored_counts(campaign)
    reply = campaign.request_ticket(device=device, invite=campaign.invite())
    assert reply.status == status_code
    if status_code != 200:
        assert (reply.code, reply.json["error"]["field"]) == ("invalid-request", "device")
        assert stored_counts(campaign) == before


@pytest.mark.parametrize("tier", [-1, 1001, 2**64, 10**400, "0", 0.0, True, None, [0]])
def test_a_tier_is_a_whole_number(campaign: RunningCampaign, tier: Any) -> None:
    with assert_nothing_counted(campaign):
        enrolment = {"device": secrets.token_hex(32), "invite": campaign.invite(), "tier": tier}
        reply = campaign.request_ticket(**enrolment)
    assert_refused(reply, 422, "invalid-request")
    assert reply.json["error"]["field"] == "tier"


def groups_of(campaign: RunningCampaign, users: int, **keys: Any) -> Iterator[list[int]]:
    for _ in range(users):
        yield [part["group"] for part in campaign.enrol_device(**keys).ticket["groups"]]


def balanced(group_sizes: Counter[int], groups: range) -> bool:
    sizes = [group_sizes[group] for group in groups]
    return max(sizes) - min(sizes) <= 1


def test_groups_are_balanced_after_every_enrolment(server: InProcessCollector) -> None:
    campaign = server.create_campaign()
    group_sizes: Counter[int] = Counter()
    for groups in groups_of(campaign, 50):
        group_sizes.update(groups)
        assert balanced(group_sizes, range(3)), group_sizes
    group_status = campaign.status()["groups"]
    assert [row["enrolled"] for row in group_status] == [group_sizes[group] for group in range(3)]
    assert sum(group_sizes.values()) == 50


def test_the_groups_of_every_tier_are_balanced_for_themselves(server: InProcessCollector) -> None:
    campaign = server.create_campaign(TIERS)
    group_sizes: Counter[int] = Counter()
    tiers = {0: range(2), 1: range(2, 5)}
    for _, tier in zip(range(50), cycle([0, 1, 1]), strict=False):
        (groups,) = groups_of(campaign, 1, tier=tier)
        assert set(groups) <= set(tiers[tier])
        group_sizes.update(groups)
        assert all(balanced(group_sizes, tier_groups) for tier_groups in tiers.values()), (
            group_sizes
        )
    assert stored_counts(campaign).enrolled == sum(group_sizes.values()) == 50


def test_in_the_baseline_every_device_is_in_both_groups_of_its_tier(
    server: InProcessCollector,
) -> None:
    campaign = server.create_campaign(BASELINE)
    group_sizes: Counter[int] = Counter()
    for _, tier in zip(range(50), cycle([0, 1, 1]), strict=False):
        (groups,) = groups_of(campaign, 1, tier=tier)
        assert groups == [2 * tier, 2 * tier + 1]
        group_sizes.update(groups)
    assert stored_counts(campaign).enrolled == 50
    group_status = campaign.status()["groups"]
    assert [row["enrolled"] for row in group_status] == [group_sizes[group] for group in range(4)]


def test_unequal_shares_hold_in_the_long_run(server: InProcessCollector) -> None:
    """Within five standard deviations of 2,000 draws."""
    face = server.create_campaign(UNEQUAL)
    with server.collector.database.writing() as connection:
        campaign = Campaigns.find(connection, face.id)
        assert campaign is not None
        codes = issue_invites(connection, face.id, 2000, None, now=0)
        requests = [
            EnrolmentRequest(campaign, f"{n:032x}", 0, hashed(code)) for n, code in enumerate(codes)
        ]
        tickets = enrol_all(connection, requests, now=0)
    sizes = Counter(ticket.group for ticket in tickets if isinstance(ticket, IssuedTicket))
    assert sum(sizes.values()) == 2000
    for group, share in enumerate((0.5, 0.25, 0.25)):
        assert abs(sizes[group] - 2000 * share) < 5 * (2000 * share * (1 - share)) ** 0.5


def test_groups_are_drawn_at_random_for_each_campaign_and_block(server: InProcessCollector) -> None:
    """Two campaigns of one plan go different ways, and so do the blocks of each."""
    sequences = []
    for _ in range(2):
        groups = [device_groups[0] for device_groups in groups_of(server.create_campaign(), 36)]
        blocks = [tuple(groups[start : start + 3]) for start in range(0, 36, 3)]
        assert {tuple(sorted(block)) for block in blocks} == {(0, 1, 2)}
        assert len(set(blocks)) > 1
        sequences.append(groups)
    assert sequences[0] != sequences[1]


def test_the_assignment_secret_is_never_sent(server: InProcessCollector) -> None:
    campaign = server.create_campaign()
    device = campaign.enrol_device()
    with server.collector.database.reading() as connection:
        stored_campaign = Campaigns.find(connection, campaign.id)
    assert stored_campaign is not None
    secret = stored_campaign.assignment_secret
    paths = ["/v1/campaigns", campaign.path, f"{campaign.path}/status"]
    bodies = [server.request("GET", path, token=server.token).body for path in paths]
    archive = BytesIO(server.operator.download(f"{campaign.path}/export"))
    with zipfile.ZipFile(archive) as files:
        bodies += [files.read(name) for name in files.namelist()]
    for body in [*bodies, device.ticket["ticket"].encode()]:
        assert body
        assert secret not in body
        assert secret.hex().encode() not in body
