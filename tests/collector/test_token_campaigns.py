"""Campaigns by token: each token lets one device in, and only a token of the issuer does."""

from __future__ import annotations

import secrets
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from sqlalchemy import select

from support.database_audit import open_database
from support.raw_http import NO_RATE_LIMITS, assert_refused, server_fixture
from support.running_collectors import (
    SMALL_PLAN,
    InProcessCollector,
    RunningCampaign,
    in_process_collector,
)
from support.token_holders import ISSUER_NAME, challenge_of, key_holder
from unpoison.collector.campaigns.campaign import BY_TOKEN, Campaign
from unpoison.collector.campaigns.campaigns import Campaigns
from unpoison.collector.campaigns.enrolment import EnrolmentRequest, IssuedTicket, enrol_all
from unpoison.collector.faults import Fault
from unpoison.collector.storage import schema
from unpoison.collector.storage.migration import migrate
from unpoison.plan import Plan
from unpoison.privacy_pass import Token, campaign_challenge, from_base64url, to_base64url

server = server_fixture(**NO_RATE_LIMITS)
ISSUER, OTHER_ISSUER = key_holder("the issuer"), key_holder("another")


@pytest.fixture
def campaign(server: InProcessCollector) -> RunningCampaign:
    return ISSUER.create_campaign(server)


def device() -> str:
    return secrets.token_hex(32)


def enrolled(campaign: RunningCampaign) -> int:
    return int(campaign.status()["enrolled"])


def test_devices_are_told_what_tokens_must_be_for(campaign: RunningCampaign) -> None:
    offer = campaign.server.request("GET", campaign.path).json
    assert offer["access"] == "token"
    assert from_base64url(offer["token_key"]) == ISSUER.key.der
    assert challenge_of(campaign) == campaign_challenge(campaign.id, ISSUER_NAME)


def test_other_campaigns_have_no_challenge(server: InProcessCollector) -> None:
    for access in ("invite", "open"):
        campaign = server.create_campaign(access=access)
        offer = server.request("GET", campaign.path).json
        assert not {"token_challenge", "token_key"} & set(offer)


def test_a_token_lets_a_device_in_and_its_report_counts(campaign: RunningCampaign) -> None:
    secret = device()
    reply = campaign.request_ticket(device=secret, token=ISSUER.token_for(campaign))
    assert reply.status == 200
    reports = sum(group["reports"] for group in reply.json["groups"])
    body = {"ticket": reply.json["ticket"], "device": secret, "values": [7] * reports}
    assert campaign.submit(body).status == 200


def test_the_same_device_gets_the_same_ticket_again(campaign: RunningCampaign) -> None:
    enrolment = {"device": device(), "token": ISSUER.token_for(campaign)}
    with ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda _: campaign.request_ticket(**enrolment), range(8)))
    assert {(reply.status, reply.body) for reply in replies} == {(200, replies[0].body)}
    assert enrolled(campaign) == 1


def test_another_device_with_the_same_token_is_refused(campaign: RunningCampaign) -> None:
    token = ISSUER.token_for(campaign)
    assert campaign.request_ticket(device=device(), token=token).status == 200
    assert_refused(campaign.request_ticket(device=device(), token=token), 409, "token-used")
    assert enrolled(campaign) == 1


def test_of_devices_that_come_at_once_with_one_token_one_gets_in(campaign: RunningCampaign) -> None:
    token = ISSUER.token_for(campaign)
    with ThreadPoolExecutor(16) as pool:
        replies = list(
            pool.map(lambda _: campaign.request_ticket(device=device(), token=token), range(16))
        )
    assert sorted(reply.status for reply in replies) == [200] + 15 * [409]
    assert enrolled(campaign) == 1


def test_a_second_token_of_a_device_stays_unspent(campaign: RunningCampaign) -> None:
    secret, second = device(), ISSUER.token_for(campaign)
    first = campaign.request_ticket(device=secret, token=ISSUER.token_for(campaign))
    assert campaign.request_ticket(device=secret, token=second).body == first.body
    assert campaign.request_ticket(device=device(), token=second).status == 200


def test_without_a_token_nobody_gets_in(campaign: RunningCampaign) -> None:
    assert_refused(campaign.request_ticket(device=device()), 403, "invalid-token")
    invite = campaign.invite()
    assert_refused(campaign.request_ticket(device=device(), invite=invite), 403, "invalid-token")
    assert enrolled(campaign) == 0


def test_tokens_of_other_issuers_are_refused(campaign: RunningCampaign) -> None:
    token = OTHER_ISSUER.token_for(campaign)
    assert_refused(campaign.request_ticket(device=device(), token=token), 403, "invalid-token")
    pretended = Token.decode(from_base64url(token))
    forged = Token(pretended.nonce, pretended.challenge_digest, ISSUER.key.id, pretended.signature)
    text = to_base64url(forged.encode())
    assert_refused(campaign.request_ticket(device=device(), token=text), 403, "invalid-token")


def test_a_token_is_for_one_campaign(server: InProcessCollector, campaign: RunningCampaign) -> None:
    foreign = ISSUER.token_for(ISSUER.create_campaign(server))
    assert_refused(campaign.request_ticket(device=device(), token=foreign), 403, "invalid-token")
    anything = to_base64url(ISSUER.token(campaign_challenge(campaign.id, "other.example")).encode())
    assert_refused(campaign.request_ticket(device=device(), token=anything), 403, "invalid-token")


def test_a_token_is_for_one_name_of_the_collector(server: InProcessCollector) -> None:
    here = ISSUER.create_campaign(server, issuer=ISSUER.body(origins=["here.example"]))
    there = campaign_challenge(here.id, ISSUER_NAME, ("there.example",))
    token = to_base64url(ISSUER.token(there).encode())
    assert_refused(here.request_ticket(device=device(), token=token), 403, "invalid-token")
    assert here.request_ticket(device=device(), token=ISSUER.token_for(here)).status == 200


@pytest.mark.parametrize("token", ["", "A", 471 * "A", 473 * "A", 471 * "A" + "+", 7, None, []])
def test_what_is_no_token_is_refused_without_repeating_it(
    campaign: RunningCampaign, token: object
) -> None:
    reply = campaign.request_ticket(device=device(), token=token)
    assert reply.status == (403 if token is None else 422)
    assert b"AAAA" not in reply.body


def test_an_open_campaign_does_not_spend_a_token(
    server: InProcessCollector, campaign: RunningCampaign
) -> None:
    token = ISSUER.token_for(campaign)
    opened = server.create_campaign(access="open")
    assert opened.request_ticket(device=device(), token=token).status == 200
    assert campaign.request_ticket(device=device(), token=token).status == 200


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"access": "token"}, "issuer"),
        ({"access": "open", "issuer": ISSUER.body()}, "issuer"),
        ({"access": "token", "issuer": ISSUER.body(key="no key")}, "issuer.key"),
        ({"access": "token", "issuer": ISSUER.body(name="https://login.example")}, "issuer.name"),
        ({"access": "token", "issuer": ISSUER.body(origins=["a,b"])}, "issuer.origins"),
        ({"access": "token", "issuer": ISSUER.body(extra=1)}, "issuer"),
    ],
    ids=["no issuer", "not needed", "key", "name", "origins", "unknown"],
)
def test_a_campaign_is_refused_without_the_right_issuer(
    server: InProcessCollector, fields: dict[str, object], named: str
) -> None:
    body = {"name": "A test", "plan": SMALL_PLAN, **fields}
    reply = server.post("/v1/campaigns", body, token=server.token)
    assert_refused(reply, 422, "invalid-request")
    assert reply.json["error"]["field"] == named


@pytest.fixture
def stored_campaign(database: str) -> tuple[str, Campaign]:
    with open_database(database) as opened:
        migrate(opened)
        plan = Plan.new("piecewise-integer", epsilon=1.0, low=0, high=1)
        campaign = Campaign.new("A test", plan, now=0, access=BY_TOKEN)
        with opened.writing() as connection:
            Campaigns.add(connection, campaign)
            Campaigns.open(connection, campaign.id, now=0)
    return database, campaign


def test_a_token_is_spent_with_its_ticket_or_not_at_all(
    stored_campaign: tuple[str, Campaign],
) -> None:
    database, campaign = stored_campaign
    first, second = (EnrolmentRequest(campaign, name, 0, token=b"t" * 32) for name in ("aa", "bb"))
    with open_database(database) as opened:
        # A server that dies before it commits.
        with suppress(KeyboardInterrupt), opened.writing() as connection:
            assert isinstance(enrol_all(connection, [first], now=1)[0], IssuedTicket)
            raise KeyboardInterrupt
        with opened.writing() as connection:
            issued, refused = enrol_all(connection, [second, first], now=2)
            assert isinstance(issued, IssuedTicket)
            assert isinstance(refused, Fault)
            assert refused.code == "token-used"
        with opened.writing() as connection:
            again = enrol_all(connection, [first, second], now=3)
            assert [getattr(again[0], "code", None), again[1]] == ["token-used", issued]
            rows = connection.execute(select(schema.spent_tokens)).all()
            assert [(row.campaign, bytes(row.token_hash), row.ticket) for row in rows] == [
                (campaign.id, b"t" * 32, issued.number)
            ]


def test_spent_tokens_go_with_their_campaign(stored_campaign: tuple[str, Campaign]) -> None:
    database, campaign = stored_campaign
    with open_database(database) as opened:
        with opened.writing() as connection:
            enrol_all(connection, [EnrolmentRequest(campaign, "aa", 0, token=b"t")], now=1)
        with opened.writing() as connection:
            Campaigns.close(connection, campaign.id)
            Campaigns.delete(connection, campaign.id)
        with opened.reading() as connection:
            assert connection.execute(select(schema.spent_tokens)).all() == []


@pytest.mark.server
def test_a_spent_token_stays_spent_after_a_restart(tmp_path: Path) -> None:
    settings = {"operator_token": "the-token-of-the-operator"}
    with in_process_collector(tmp_path, **settings) as server:
        server.token = settings["operator_token"]
        campaign = ISSUER.create_campaign(server)
        token, secret = ISSUER.token_for(campaign), device()
        first = campaign.request_ticket(device=secret, token=token)
        assert first.status == 200
    with in_process_collector(tmp_path, **settings) as server:
        campaign = RunningCampaign(server, campaign.id, campaign.plan)
        assert campaign.request_ticket(device=secret, token=token).body == first.body
        assert_refused(campaign.request_ticket(device=device(), token=token), 409, "token-used")


def test_the_database_has_neither_the_token_nor_its_nonce(
    server: InProcessCollector, campaign: RunningCampaign
) -> None:
    text = ISSUER.token_for(campaign)
    assert campaign.request_ticket(device=device(), token=text).status == 200
    token = Token.decode(from_base64url(text))
    with server.collector.database.reading() as connection:
        rows = connection.execute(
            select(schema.spent_tokens).where(schema.spent_tokens.c.campaign == campaign.id)
        ).all()
    assert [bytes(row.token_hash) for row in rows] == [token.spending_hash]
    file = Path(str(server.collector.database.url.database))
    stored = b"".join(path.read_bytes() for path in (file, Path(f"{file}-wal")) if path.exists())
    assert token.spending_hash in stored
    for secret in (token.nonce, token.signature, text.encode()):
        assert secret not in stored
