"""Operators: names, roles, and the log of what they did."""

from __future__ import annotations

import secrets
from pathlib import Path

import pytest

from support.command_line import Command
from support.raw_http import assert_refused, server_fixture
from support.running_collectors import InProcessCollector, RunningCampaign
from unpoison.collector.campaigns.audit import MOST_ENTRIES, AuditEntry, record
from unpoison.collector.storage.operator_tokens import READER, add_operator, forget_operators

server = server_fixture()


def token_of(server: InProcessCollector, name: str, role: str) -> str:
    with server.collector.database.writing() as connection:
        token = add_operator(connection, 0, name, role)
    server.collector.read_cache.clear()
    return token


@pytest.fixture
def campaign(server: InProcessCollector) -> RunningCampaign:
    return server.create_campaign()


CHANGES = [
    ("POST", "", {"name": "x", "plan": {}}),
    ("POST", "/{id}/open", None),
    ("POST", "/{id}/close", None),
    ("POST", "/{id}/extend", {"closes_at": None}),
    ("POST", "/{id}/invites", {"count": 1}),
    ("PUT", "/{id}/alarms", {"doubt": True}),
    ("GET", "/{id}/export", None),
    ("DELETE", "/{id}", None),
]


@pytest.mark.parametrize(("method", "path", "body"), CHANGES)
def test_a_reader_changes_and_exports_nothing(
    server: InProcessCollector,
    campaign: RunningCampaign,
    method: str,
    path: str,
    body: dict[str, object] | None,
) -> None:
    token = token_of(server, "ada", READER)
    where = f"/v1/campaigns{path.format(id=campaign.id)}"
    assert_refused(server.request(method, where, body, token=token), 403, "forbidden")
    assert campaign.status()["state"] == "open"


@pytest.mark.parametrize("path", ["", "/{id}/status", "/{id}/summary"])
def test_a_reader_watches(server: InProcessCollector, campaign: RunningCampaign, path: str) -> None:
    token = token_of(server, "ada", READER)
    where = f"/v1/campaigns{path.format(id=campaign.id)}"
    assert server.request("GET", where, token=token).status == 200


def test_a_revoked_name_is_out_and_others_stay(server: InProcessCollector) -> None:
    tokens = {name: token_of(server, name, READER) for name in ("ben", "eve")}
    with server.collector.database.writing() as connection:
        assert forget_operators(connection, "eve") == 1
    server.collector.read_cache.clear()
    statuses = {
        name: server.request("GET", "/v1/campaigns", token=token).status
        for name, token in tokens.items()
    }
    assert statuses == {"ben": 200, "eve": 401}


def test_what_an_operator_does_is_written_down_with_the_name(
    server: InProcessCollector, campaign: RunningCampaign
) -> None:
    token = token_of(server, "grace", "operator")
    path = f"/v1/campaigns/{campaign.id}"
    assert server.post(f"{path}/invites", {"count": 3}, token=token).status == 201
    assert server.request("GET", f"{path}/export", token=token).status == 200
    assert server.post(f"{path}/close", None, token=token).status == 200
    assert server.request("DELETE", path, token=token).status == 204
    entries = server.request("GET", "/v1/audit", token=token).json["entries"][:4]
    assert [(entry["operator"], entry["action"]) for entry in entries] == [
        ("grace", "delete"),
        ("grace", "close"),
        ("grace", "export"),
        ("grace", "invite"),
    ]
    assert {entry["campaign"] for entry in entries} == {campaign.id}
    assert entries[3]["detail"] == "3 invites"


def test_what_fails_is_not_written_down(
    server: InProcessCollector, campaign: RunningCampaign
) -> None:
    before = server.operator.get("/v1/audit")["entries"]
    reply = server.request("DELETE", f"/v1/campaigns/{campaign.id}", token=server.token)
    assert_refused(reply, 409, "wrong-state")
    assert server.operator.get("/v1/audit")["entries"] == before


def test_the_log_holds_no_secret(server: InProcessCollector, campaign: RunningCampaign) -> None:
    invite = campaign.invite()
    text = server.request("GET", "/v1/audit", token=server.token).body.decode()
    assert invite not in text
    assert server.token not in text


def test_the_log_comes_in_pages(server: InProcessCollector) -> None:
    with server.collector.database.writing() as connection:
        for number in range(MOST_ENTRIES + 5):
            record(connection, AuditEntry("loop", "create", detail=str(number)), now=0)
    first = server.operator.get("/v1/audit")
    second = server.operator.get(f"/v1/audit?before={first['next']}")
    details = [entry["detail"] for page in (first, second) for entry in page["entries"]]
    assert details[: MOST_ENTRIES + 5] == [str(n) for n in reversed(range(MOST_ENTRIES + 5))]


def test_readers_do_not_see_the_log(server: InProcessCollector) -> None:
    token = token_of(server, "ada", READER)
    assert_refused(server.request("GET", "/v1/audit", token=token), 403, "forbidden")


# The command line


@pytest.fixture
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run in an empty folder, where the database of a command without --database goes."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("empty_folder")
def test_a_named_token_is_made_and_revoked_by_its_name(unpoison: Command) -> None:
    unpoison.done("serve", "--new-token", "--name", "ada", "--role", "reader")
    unpoison.done("serve", "--new-token", "--name", "ben")
    assert unpoison("serve", "--revoke-tokens", "--name", "ada").err.strip() == "Tokens revoked: 1"
    assert unpoison("serve", "--revoke-tokens").err.strip() == "Tokens revoked: 1"


@pytest.mark.usefixtures("empty_folder")
@pytest.mark.parametrize(
    "options", [("--role", "owner"), ("--name", ""), ("--name", "a\nb"), ("--name", "x" * 65)]
)
def test_a_bad_name_or_role_makes_no_token(unpoison: Command, options: tuple[str, str]) -> None:
    unpoison.refused("serve", "--new-token", *options)
    assert not Path("unpoison.db").exists()


def test_the_estimate_and_the_log_of_a_campaign_are_printed(
    unpoison: Command, server: InProcessCollector, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign = server.create_campaign()
    for _ in range(60):
        campaign.submit(campaign.enrol_device().body())
    monkeypatch.setenv("UNPOISON_TOKEN", server.token)
    at = ("--collector", server.url)
    printed = unpoison.done("campaign", "estimate", campaign.id, "--method", "ostrich", *at).out
    assert "mean" in printed
    assert unpoison.done("campaign", "audit", *at).out.count(campaign.id) >= 2
    unpoison.refused("campaign", "estimate", campaign.id, "--method", secrets.token_hex(4), *at)
