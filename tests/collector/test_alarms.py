"""Alarms: rules of campaigns, when they start and end, and messages to a webhook."""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.command_line import Command
from support.database_audit import open_database
from support.raw_http import assert_refused
from support.running_collectors import (
    SMALL_PLAN,
    InProcessCollector,
    RunningCampaign,
    in_process_collector,
)
from support.waiting import eventually
from support.webhook_receiver import WebhookReceiver, webhook_receiver
from unpoison import InvalidParameter, Plan
from unpoison.collector.campaigns.alarms import (
    alarms_of,
    campaigns_to_judge,
    judge_alarms,
    set_alarms,
)
from unpoison.collector.campaigns.campaign import Campaign
from unpoison.collector.campaigns.campaigns import Campaigns
from unpoison.collector.campaigns.counters import count_activity
from unpoison.collector.campaigns.estimate_history import store_estimate
from unpoison.collector.campaigns.group_counters import count_devices
from unpoison.collector.campaigns.outbox import announce, oldest_message
from unpoison.collector.clock import iso
from unpoison.collector.service import housekeeping
from unpoison.collector.settings import Settings
from unpoison.collector.storage.migration import migrate
from unpoison.estimate import Byzantine, Estimate
from unpoison.estimate.alarms import AlarmRules

SECRET = "the secret of the webhook"


@pytest.fixture(autouse=True)
def _frequent_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(housekeeping, "ALARM_SECONDS", 0.05)
    monkeypatch.setattr(housekeeping, "TIDY_SECONDS", 0.05)


@pytest.fixture
def receiver() -> Iterator[WebhookReceiver]:
    with webhook_receiver() as running:
        yield running


def settings_of(receiver: WebhookReceiver) -> dict[str, Any]:
    return {
        "webhook_url": receiver.url,
        "webhook_secret": SECRET,
        "estimate_every": 86400,
        "operator_token": "the-token-of-the-operator",
    }


@pytest.fixture
def server(
    tmp_path_factory: pytest.TempPathFactory, receiver: WebhookReceiver
) -> Iterator[InProcessCollector]:
    # In another folder than a command's, which must not change.
    folder = tmp_path_factory.mktemp("collector")
    with in_process_collector(folder, **settings_of(receiver)) as running:
        running.token = "the-token-of-the-operator"
        yield running


def set_rules(campaign: RunningCampaign, **rules: Any) -> list[dict[str, Any]]:
    alarms = campaign.server.operator.put(f"{campaign.path}/alarms", rules)["alarms"]
    assert isinstance(alarms, list)
    return alarms


def store(
    server: InProcessCollector, campaign: RunningCampaign, users: int, share: float, **fit: Any
) -> None:
    """Store an estimate of so many users, as the collector does with one of its own."""
    answer = Estimate("joint", 4.5, Byzantine(share), users=float(users), fit=fit)
    with server.collector.database.writing() as connection:
        store_estimate(connection, campaign.id, answer.to_json(), server.clock.now())


def active(campaign: RunningCampaign) -> set[str]:
    return {alarm["rule"] for alarm in campaign.status()["alarms"] if alarm["active"]}


def test_an_alarm_starts_and_ends_and_both_are_sent_once_and_signed(
    server: InProcessCollector, receiver: WebhookReceiver, caplog: pytest.LogCaptureFixture
) -> None:
    campaign = server.create_campaign(name="Rides")
    (alarm,) = set_rules(campaign, attackers_above=0.05)
    expected = {"rule": "attackers_above", "threshold": 0.05, "active": False, "since": None}
    assert alarm == expected
    with caplog.at_level(logging.INFO, "unpoison.collector"):
        store(server, campaign, 10, share=0.123456)
        eventually(lambda: receiver.states == [("attackers_above", "started")])
        (alarm,) = campaign.status()["alarms"]
        assert alarm["active"]
        assert alarm["since"] == receiver.taken[0].json["at"]
        store(server, campaign, 11, share=0.01)
        eventually(lambda: receiver.states[1:] == [("attackers_above", "ended")])
    eventually(lambda: active(campaign) == set())
    events = [record.getMessage() for record in caplog.records if "alarm" in record.getMessage()]
    assert events == ["alarm started", "alarm ended"]
    for delivery in receiver.taken:
        message = delivery.json
        assert set(message) == {"id", "campaign", "name", "rule", "state", "at"}
        assert (message["campaign"], message["name"]) == (campaign.id, "Rides")
        assert b"0.123" not in delivery.body
        assert message["id"] == delivery.headers["x-unpoison-id"]
        timestamp = delivery.headers["x-unpoison-timestamp"]
        signed = hmac.new(
            SECRET.encode(), timestamp.encode() + b"." + delivery.body, hashlib.sha256
        )
        assert delivery.headers["x-unpoison-signature"] == f"sha256={signed.hexdigest()}"
    assert len({delivery.json["id"] for delivery in receiver.taken}) == 2


@pytest.mark.parametrize(
    ("rule", "threshold", "share", "fit"),
    [
        ("p_below", 0.01, 0.0, {"nobody_attacks_p_value": 0.002, "doubt": False}),
        ("doubt", True, 0.0, {"nobody_attacks_p_value": 0.5, "doubt": True}),
    ],
)
def test_rules_of_the_fit(
    server: InProcessCollector, rule: str, threshold: Any, share: float, fit: dict[str, Any]
) -> None:
    campaign = server.create_campaign()
    set_rules(campaign, attackers_above=0.05, **{rule: threshold})
    store(server, campaign, 10, share, **fit)
    eventually(lambda: active(campaign) == {rule})


def test_groups_that_do_not_report_alike(server: InProcessCollector) -> None:
    campaign = server.create_campaign()
    set_rules(campaign, balance_below=0.001)
    with server.collector.database.writing() as connection:
        for column, number in (("enrolled", 400), ("submissions", 200)):
            count_devices(connection, campaign.id, [0] * number + [1, 2] * 390, column)
    eventually(lambda: active(campaign) == {"balance_below"})


def test_silence_is_counted_while_the_campaign_is_open(
    server: InProcessCollector, receiver: WebhookReceiver
) -> None:
    campaign = server.create_campaign(open=False)
    set_rules(campaign, silent_minutes=10)
    server.clock.step += 3600
    server.operator.post(f"{campaign.path}/open")
    server.clock.step += 500
    assert campaign.submit(campaign.enrol_device().body()).status == 200
    server.clock.step += 500
    server.collector.read_cache.clear()
    assert active(campaign) == set()
    server.clock.step += 200
    eventually(lambda: active(campaign) == {"silent_minutes"})
    assert campaign.submit(campaign.enrol_device().body()).status == 200
    eventually(lambda: active(campaign) == set())
    server.clock.step += 700
    eventually(lambda: active(campaign) == {"silent_minutes"})
    server.operator.post(f"{campaign.path}/close")
    eventually(lambda: len(receiver.taken) == 4)
    assert [state for _, state in receiver.states] == ["started", "ended"] * 2


def test_an_estimate_of_the_collector_is_judged_at_once(
    server: InProcessCollector, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign = server.create_campaign()
    set_rules(campaign, p_below=1.0)
    judged: list[bool] = []
    judge = server.collector.alarms.judge

    async def watched() -> None:
        await judge()
        judged.append(True)

    monkeypatch.setattr(server.collector.alarms, "judge", watched)
    cells = np.random.default_rng(1)
    for _ in range(60):
        device = campaign.enrol_device()
        campaign.submit(device.body(cells.integers(0, 4096, device.reports).tolist()))
    server.operator.get(f"{campaign.path}/estimate")
    assert judged == [True]
    assert active(campaign) == {"p_below"}


def test_what_a_receiver_does_not_take_is_sent_again_in_order(
    server: InProcessCollector, receiver: WebhookReceiver
) -> None:
    receiver.status = 500
    campaign = server.create_campaign()
    set_rules(campaign, attackers_above=0.05)
    store(server, campaign, 10, share=0.2)
    eventually(lambda: len(receiver.refused) == 1)
    store(server, campaign, 11, share=0.0)
    eventually(lambda: active(campaign) == set())
    server.clock.step += 5
    eventually(lambda: len(receiver.refused) == 2)
    receiver.status = 204
    assert receiver.taken == []
    server.clock.step += 10
    eventually(lambda: [state for _, state in receiver.states] == ["started", "ended"])
    first = {delivery.json["id"] for delivery in receiver.refused}
    assert first == {receiver.taken[0].json["id"]}


@pytest.mark.server
def test_a_restart_loses_no_message(tmp_path: Path, receiver: WebhookReceiver) -> None:
    settings = settings_of(receiver)
    receiver.status = 503
    with in_process_collector(tmp_path, **settings) as server:
        server.token = settings["operator_token"]
        campaign = server.create_campaign()
        set_rules(campaign, attackers_above=0.05)
        store(server, campaign, 10, share=0.2)
        eventually(lambda: len(receiver.refused) == 1)
    receiver.status = 200
    with in_process_collector(tmp_path, **settings) as server:
        server.clock.step += 5
        eventually(lambda: receiver.states == [("attackers_above", "started")])
    assert receiver.taken[0].json["id"] == receiver.refused[0].json["id"]


def test_redirects_are_not_followed(server: InProcessCollector, receiver: WebhookReceiver) -> None:
    with webhook_receiver() as elsewhere:
        receiver.status, receiver.answer_headers = 307, {"Location": elsewhere.url}
        campaign = server.create_campaign()
        set_rules(campaign, attackers_above=0.05)
        store(server, campaign, 10, share=0.2)
        eventually(lambda: len(receiver.refused) == 1)
        assert elsewhere.taken == []


def test_a_rule_that_is_removed_ends_and_one_that_stays_keeps_its_time(
    server: InProcessCollector, receiver: WebhookReceiver
) -> None:
    campaign = server.create_campaign()
    store(server, campaign, 10, share=0.2, doubt=True)
    alarms = set_rules(campaign, attackers_above=0.05, doubt=True)
    assert all(alarm["active"] for alarm in alarms)
    since = {alarm["rule"]: alarm["since"] for alarm in alarms}
    server.clock.step += 60
    (kept,) = set_rules(campaign, attackers_above=0.1)
    assert (kept["threshold"], kept["since"]) == (0.1, since["attackers_above"])
    eventually(lambda: ("doubt", "ended") in receiver.states)
    entries = server.operator.get("/v1/audit")["entries"]
    assert [entry["detail"] for entry in entries if entry["action"] == "alarms"] == [
        "attackers_above 0.1",
        "attackers_above 0.05, doubt 1",
    ]


@pytest.mark.parametrize(
    "rules",
    [
        {"attackers_above": 2},
        {"p_below": -0.1},
        {"doubt": 1},
        {"balance_below": "0.1"},
        {"silent_minutes": 1e9},
        {"mean_above": 5},
    ],
)
def test_bad_rules_are_refused(server: InProcessCollector, rules: dict[str, Any]) -> None:
    campaign = server.create_campaign()
    reply = server.request("PUT", f"{campaign.path}/alarms", rules, token=server.token)
    assert_refused(reply, 422, "invalid-request")
    assert campaign.status()["alarms"] == []


@pytest.mark.parametrize(
    "settings",
    [
        {"webhook_url": "http://example.org/alarms", "webhook_secret": SECRET},
        {"webhook_url": "https://user:pass@example.org/", "webhook_secret": SECRET},
        {"webhook_url": "https://example.org/alarms"},
        {"webhook_url": "https://example.org/alarms", "webhook_secret": "short"},
    ],
)
def test_a_webhook_is_private_and_signed(settings: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter, match="webhook_") as refusal:
        Settings.load(**settings)
    assert "example.org" not in str(refusal.value).replace("https://example.org/alarms, w", "")
    assert Settings.load(webhook_url="https://example.org/a", webhook_secret=SECRET)


def test_rules_on_the_command_line(
    server: InProcessCollector, unpoison: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign = server.create_campaign()
    monkeypatch.setenv("UNPOISON_TOKEN", server.token)
    words = ("campaign", "alarms", campaign.id, "--collector", server.url)
    assert unpoison.done(*words).out == "There are no rules.\n"
    printed = unpoison.done(*words, "--attackers-above", "1/20", "--doubt").out
    assert printed == "attackers above 0.05: not active\ndoubt: not active\n"
    store(server, campaign, 10, share=0.2)
    eventually(lambda: active(campaign) == {"attackers_above"})
    assert "attackers above 0.05: active since 20" in unpoison.done(*words).out
    unpoison.refused(*words, "--off", "--doubt")
    assert json.loads(unpoison.done(*words, "--off", "--json").out) == {"alarms": []}


def test_the_status_tells_since_when_there_are_attackers(server: InProcessCollector) -> None:
    campaign = server.create_campaign()
    times = []
    for step, share in enumerate([0.0, 0.0, 0.0, 0.05, 0.08, 0.1]):
        attackers = Byzantine(share, interval=(share, share + 0.04))
        answer = Estimate("joint", 4.5, attackers, users=1000.0 * (step + 1))
        assert campaign.status()["onset"] is None or step > 3
        server.clock.step += 60
        times.append(server.clock.now())
        with server.collector.database.writing() as connection:
            store_estimate(connection, campaign.id, answer.to_json(), times[-1])
        server.collector.read_cache.clear()
    assert campaign.status()["onset"] == iso(times[2])


def test_alarms_and_the_outbox_on_each_kind_of_database(database: str) -> None:
    campaign = Campaign.new("Rides", Plan.from_dict(SMALL_PLAN), now=0)
    with open_database(database) as opened:
        migrate(opened)
        with opened.writing() as connection:
            Campaigns.add(connection, campaign)
            Campaigns.open(connection, campaign.id, now=0)
            rules = AlarmRules(silent_minutes=5, doubt=True, balance_below=0.01)
            assert set_alarms(connection, campaign.id, rules, now=0) == []
            count_activity(connection, campaign.id, "submissions", 1, now=90)
        with opened.reading() as connection:
            due = [campaigns_to_judge(connection, now) for now in (420, 421)]
            assert due == [[], [campaign.id]]
        with opened.writing() as connection:
            changes = judge_alarms(connection, campaign.id, now=421)
            assert [(change.rule, change.state) for change in changes] == [
                ("silent_minutes", "started")
            ]
            assert judge_alarms(connection, campaign.id, now=422) == []
            announce(connection, changes, now=421)
            Campaigns.close(connection, campaign.id)
            Campaigns.delete(connection, campaign.id)
            assert alarms_of(connection, campaign.id) == []
            message = oldest_message(connection)
            assert message is not None
            assert json.loads(message.body)["name"] == "Rides"
