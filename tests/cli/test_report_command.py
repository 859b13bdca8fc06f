"""`unpoison report`: what it sends and prints, and that the value is in no output."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from support.fake_collector import CAMPAIGN, FakeCollector
from unpoison import BudgetExceeded, InvalidParameter, Plan
from unpoison.cli.report import report

PLAN = Plan.new("piecewise-integer", epsilon=1.0, min_epsilon=0.25, low=0, high=86400)
KINDS = Plan.new("k-rr-integer", epsilon=1.0, categories=["tea", "coffee", "milk"])

APP = typer.Typer(pretty_exceptions_enable=False)
APP.command()(report)
RANGE = ("--low", "0", "--high", "86400")


@pytest.fixture
def collector() -> Iterator[FakeCollector]:
    with FakeCollector(PLAN) as fake:
        yield fake


def command(*arguments: object, value: str = "", **environment: str) -> Any:
    words = [str(word) for word in arguments]
    return CliRunner().invoke(APP, words, input=value, env=environment)


def test_the_command_reads_the_value_and_prints_what_was_spent(
    collector: FakeCollector, tmp_path: Path
) -> None:
    ledger = tmp_path / "ledger.db"
    done = command(collector.url, CAMPAIGN, *RANGE, "--ledger", ledger, value="31337.1234567\n")
    assert done.exit_code == 0, done.exception
    assert f"Sent 4 noisy reports to campaign {CAMPAIGN} at {collector.url}." in done.output
    assert "in all    epsilon 1 of 8" in done.output
    assert "31337" not in done.output
    again = command(collector.url, CAMPAIGN, *RANGE, "--value", "-5", "--ledger", ledger, "--json")
    assert json.loads(again.output) == {
        "collector": collector.url,
        "campaign": CAMPAIGN,
        "groups": [2],
        "reports": 4,
        "epsilon": 1.0,
        "total": 1.0,
        "already": True,
        "lifetime_epsilon": 8.0,
        "ledger": str(ledger),
    }


def test_the_command_takes_the_invite_from_the_environment(tmp_path: Path) -> None:
    with FakeCollector(KINDS, access="invite") as fake:
        words = [part for name in KINDS.categories or () for part in ("--category", name)]
        done = command(
            fake.url,
            CAMPAIGN,
            *words,
            "--ledger",
            tmp_path / "ledger.db",
            value="milk\r\n",
            UNPOISON_INVITE="open sesame",
        )
        assert done.exit_code == 0, done.exception
        assert fake.sent("tickets")[0].json["invite"] == "open sesame"
        assert "sesame" not in done.output


@pytest.mark.parametrize("value", ["Earl Grey", "nan", "1e999", "31337,5", "\udcff"])
def test_the_command_never_repeats_a_value(
    value: str, collector: FakeCollector, tmp_path: Path
) -> None:
    ledger = tmp_path / "ledger.db"
    done = command(collector.url, CAMPAIGN, *RANGE, "--value", value, "--ledger", ledger)
    assert isinstance(done.exception, InvalidParameter)
    assert str(done.exception) == "value must be a finite number; received not a number"
    assert collector.requests == []
    assert not ledger.exists()


def test_bytes_that_are_no_text_are_no_value(tmp_path: Path) -> None:
    words = ["http://127.0.0.1:1", CAMPAIGN, *RANGE, "--ledger", str(tmp_path / "ledger.db")]
    done = CliRunner().invoke(APP, words, input=b"\xff\xfe31337")
    assert isinstance(done.exception, InvalidParameter)
    assert "31337" not in str(done.exception)


def test_the_command_takes_budgets_as_fractions(collector: FakeCollector, tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.db"
    words = (*RANGE, "--value", "1/2", "--max-epsilon", "1/2", "--ledger", ledger)
    done = command(collector.url, CAMPAIGN, *words)
    assert isinstance(done.exception, BudgetExceeded)
    assert "max_epsilon leaves epsilon 0.5" in str(done.exception)


def test_the_help_says_how_to_keep_the_value_out_of_sight() -> None:
    shown = " ".join(command("--help").output.replace("│", " ").split())
    assert "standard input" in shown
    assert "UNPOISON_INVITE" in shown


@pytest.mark.parametrize(
    "arguments",
    [
        ("http://collector.example", CAMPAIGN, *RANGE),
        ("collector.example", CAMPAIGN, *RANGE),
        ("https://collector.example", "a/b", *RANGE),
        ("https://collector.example", CAMPAIGN, "--low", "0"),
        ("https://collector.example", CAMPAIGN, *RANGE, "--category", "tea"),
        ("https://collector.example", CAMPAIGN, *RANGE, "--max-epsilon", "0"),
    ],
)
def test_bad_options_are_refused_and_leave_no_file(
    arguments: tuple[str, ...], tmp_path: Path
) -> None:
    ledger = tmp_path / "ledger.db"
    done = command(*arguments, "--ledger", ledger, value="31337")
    assert isinstance(done.exception, InvalidParameter)
    assert "31337" not in str(done.exception)
    assert not ledger.exists()


def test_without_a_ledger_the_users_own_is_taken(collector: FakeCollector, tmp_path: Path) -> None:
    state = tmp_path / "state"
    done = command(collector.url, CAMPAIGN, *RANGE, value="5", XDG_STATE_HOME=str(state))
    assert done.exit_code == 0, done.exception
    assert (state / "unpoison" / "ledger.db").is_file()
