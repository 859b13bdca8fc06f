"""`unpoison watch`: alarms and the onset of an attack in summaries of windows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from support.command_line import Command
from unpoison import Plan, simulate
from unpoison.summary.windows import PER_SECOND, Window

HOUR = 3600 * PER_SECOND
PLAN = Plan.new(epsilon=1.0, min_epsilon=0.5, low=0, high=1)
QUIET, ATTACKED = 0.0, 0.25
pytestmark = pytest.mark.slow


def save_windows(folder: Path, shares: dict[int, float], users: int = 4000) -> None:
    """Summaries of hours, with the share of attackers in each."""
    for hour, share in shares.items():
        rng = np.random.default_rng(hour)
        run = simulate(PLAN, rng.beta(2, 5, users), "uniform:3C/4,C", share, rng)
        window = Window(hour * HOUR, (hour + 1) * HOUR)
        replace(run.summary, window=window).save(folder / f"{hour:02}.summary")


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five quiet hours, and three under attack."""
    folder = tmp_path_factory.mktemp("attacked")
    save_windows(folder, {hour: QUIET if hour < 5 else ATTACKED for hour in range(8)})
    return folder


def test_an_attack_is_told_with_its_onset_and_an_exit_code(
    unpoison: Command, attacked: Path
) -> None:
    outcome = unpoison("watch", attacked, "--attackers-above", "0.1", "--json")
    assert outcome.code == 3
    assert outcome.json == {
        "windows": 8,
        "events": [{"rule": "attackers_above", "state": "started", "at": "1970-01-01T05:00:00Z"}],
        "active": ["attackers_above"],
        "onset": "1970-01-01T05:00:00Z",
    }
    text = unpoison("watch", attacked, "--attackers-above", "0.1").out
    assert "1970-01-01T05:00:00Z  attackers above: started" in text
    assert "The share of attackers rose at 1970-01-01T05:00:00Z." in text
    assert "8 windows; active at the end: attackers above." in text


def test_an_alarm_that_has_ended_is_no_failure(
    unpoison: Command, attacked: Path, tmp_path: Path
) -> None:
    save_windows(tmp_path, {8: QUIET})
    later = (attacked / "06.summary", attacked / "07.summary", tmp_path / "08.summary")
    outcome = unpoison("watch", *later, "--attackers-above", "0.1", "--json")
    assert outcome.code == 0
    assert [event["state"] for event in outcome.json["events"]] == ["started", "ended"]
    assert outcome.json["onset"] is None


def test_quiet_hours_and_a_gap_between_them(unpoison: Command, attacked: Path) -> None:
    hours = (attacked / "00.summary", attacked / "03.summary")
    rules = ("--p-below", "0.0001", "--balance-below", "0.0001", "--silent-minutes", "60")
    outcome = unpoison.done("watch", *hours, *rules, "--json")
    assert outcome.json["events"] == [
        {"rule": "silent_minutes", "state": "started", "at": "1970-01-01T01:00:00Z"},
        {"rule": "silent_minutes", "state": "ended", "at": "1970-01-01T03:00:00Z"},
    ]
    assert outcome.json["active"] == []


def test_what_cannot_be_watched_is_refused(
    unpoison: Command, attacked: Path, tmp_path: Path
) -> None:
    assert "rule" in unpoison.refused("watch", attacked)
    assert "between 0 and 1" in unpoison.refused("watch", attacked, "--p-below", "7")
    run = simulate(PLAN, np.full(2000, 0.3), rng=np.random.default_rng(1))
    run.summary.save(tmp_path / "all.summary")
    message = unpoison.refused("watch", tmp_path / "all.summary", "--p-below", "0.1")
    assert "windows of time" in message
