"""`unpoison campaign`, every subcommand against a running collector."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.command_line import Command
from support.running_collectors import InProcessCollector, in_process_collector
from unpoison import Plan, Summary
from unpoison.cli.operator_options import TOKEN_VARIABLE


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcessCollector]:
    with in_process_collector(tmp_path_factory.mktemp("collector")) as server:
        yield server


@pytest.fixture(autouse=True)
def settled(tmp_path: Path, server: InProcessCollector, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(TOKEN_VARIABLE, server.token)
    monkeypatch.setenv("UNPOISON_COLLECTOR", server.url)
    Plan.new("piecewise-integer", 1.0, 0.5, low=0, high=10).save("plan.json")


def created(unpoison: Command, *options: str) -> str:
    outcome = unpoison.done(
        "campaign", "create", "plan.json", "--name", "Rides", "--json", *options
    )
    return str(outcome.json["id"])


def test_a_campaign_from_creation_to_deletion(
    unpoison: Command, server: InProcessCollector
) -> None:
    identity = created(unpoison, "--min-users", "1", "--closes-at", "2999-12-31")
    assert unpoison.done("campaign", "open", identity, "--json").json["state"] == "open"
    codes = unpoison.done("campaign", "invite", identity, "-n", "3", "--days", "2").out.split()
    assert len(set(codes)) == 3
    report = ("report", server.url, identity, "--low", "0", "--high", "10", "--value", "4")
    unpoison.done(*report, "--invite", codes[0], "--ledger", "ledger.db")
    shown = unpoison.done("campaign", "show", identity).out
    assert identity in shown
    assert "closes at: 2999-12-31T00:00:00Z" in shown
    listed = unpoison.done("campaign", "list").out
    assert identity in listed
    assert "Rides" in listed
    extended = unpoison.done("campaign", "extend", identity, "--json").json
    assert extended["closes_at"] is None
    unpoison.done("campaign", "close", identity)
    unpoison.done("campaign", "export", identity, "-o", "rides.summary")
    assert Summary.load("rides.summary").total_users == 1
    unpoison.done("campaign", "export", identity, "-o", "rides.zip")
    assert "reports.parquet" in zipfile.ZipFile("rides.zip").namelist()
    unpoison.done("campaign", "delete", identity, "--yes")
    assert "not-found" in unpoison.refused("campaign", "show", identity)


def test_the_counts_can_be_estimated_and_merged(
    unpoison: Command, server: InProcessCollector
) -> None:
    identity = created(unpoison, "--open")
    unpoison.done("campaign", "export", identity, "-o", "a.summary")
    unpoison.done("merge", "a.summary", "a.summary", "-o", "both.summary")
    assert Summary.load("both.summary").plan == Plan.load("plan.json")


def test_a_changed_mechanism_is_reported(unpoison: Command) -> None:
    Plan.new("piecewise", 1.0, low=0, high=10).save("plan.json")
    outcome = unpoison("campaign", "create", "plan.json", "--name", "Rides", "--json")
    assert outcome.code == 0
    assert "piecewise became piecewise-integer" in outcome.err
    assert json.loads(outcome.out)["plan"]["mechanism"] == "piecewise-integer"


def test_the_token_can_be_in_a_file(
    unpoison: Command, server: InProcessCollector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(TOKEN_VARIABLE)
    assert TOKEN_VARIABLE in unpoison.refused("campaign", "list")
    Path("token").write_text(f"{server.token}\n")
    assert "campaigns" in unpoison.done("campaign", "list", "--json", "--token-file", "token").json


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("list", "--collector", "http://127.0.0.1:9"), "no answer"),
        (("list", "--collector", "http://collector.example"), "https://"),
        (("list", "--collector", "nowhere"), "https://collector.example"),
        (("show", "../../etc"), "letters, digits, - and _"),
        (("show", "000000000000"), "not-found"),
        (("close", "000000000000"), "not-found"),
        (("invite", "000000000000", "-n", "0"), "invalid-request"),
        (("create", "nowhere.json", "--name", "x"), "nowhere.json"),
        (("create", "plan.json", "--name", "x", "--access", "opne"), "access"),
        (("create", "plan.json", "--name", "x", "--closes-at", "tomorrow"), "--closes-at"),
        (("create", "plan.json", "--name", "x", "--closes-at", "1999-12-31"), "closes_at"),
        (("create", "plan.json", "--name", ""), "name"),
        (("export", "000000000000", "-o", "rides.csv"), ".zip"),
        (("creat",), "create"),
    ],
)
def test_bad_input_is_one_line(unpoison: Command, arguments: tuple[str, ...], words: str) -> None:
    assert words in unpoison.refused("campaign", *arguments)


def test_a_wrong_token_is_not_repeated(unpoison: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TOKEN_VARIABLE, "wrong-token")
    complaint = unpoison.refused("campaign", "list")
    assert "unauthorized" in complaint
    assert "wrong-token" not in complaint
