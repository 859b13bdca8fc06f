"""`unpoison estimate` on many categories: the first of them, those that are pushed, a picture."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from support.command_line import Command
from unpoison import Plan, simulate

NAMES = [f"word{number}" for number in range(300)]


@pytest.fixture(scope="module")
def summary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    weights = 1 / np.arange(1, 301)
    values = np.random.default_rng(1).choice(NAMES, 100_000, p=weights / weights.sum())
    plan = Plan.new("k-rr-integer", 2.0, categories=NAMES)
    run = simulate(plan, values, "targets:word250,word299", 0.1, np.random.default_rng(2))
    path = tmp_path_factory.mktemp("words") / "all.summary"
    run.summary.save(path)
    return path


def rows_of(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("word")]


def test_the_most_frequent_and_the_pushed_are_printed(unpoison: Command, summary: Path) -> None:
    text = unpoison.done("estimate", summary).out
    rows = rows_of(text)
    assert rows[0].startswith("word0 ")
    assert len(rows) == 22
    assert {row.split()[0] for row in rows[-2:]} == {"word250", "word299"}
    assert all("yes" in row for row in rows[-2:])
    assert "278 more; all are in --json" in text
    assert "push word" in text


@pytest.mark.parametrize("top", [1, 5, 300])
def test_as_many_as_are_asked_for(unpoison: Command, summary: Path, top: int) -> None:
    assert len(rows_of(unpoison.done("estimate", summary, "--top", top).out)) == min(top + 2, 300)


def test_json_has_all(unpoison: Command, summary: Path) -> None:
    answer = json.loads(unpoison.done("estimate", summary, "--json", "--top", 3).out)
    assert list(answer["frequencies"]) == NAMES
    assert set(answer["byzantine"]["categories"]) == {"word250", "word299"}


def test_a_picture_is_drawn(unpoison: Command, summary: Path, tmp_path: Path) -> None:
    unpoison.done("estimate", summary, "--plot", tmp_path / "words.png")
    assert (tmp_path / "words.png").stat().st_size > 10_000


@pytest.mark.parametrize("top", ["0", "-1", "many"])
def test_a_number_that_makes_no_sense_is_refused(
    unpoison: Command, summary: Path, top: str
) -> None:
    assert "--top" in unpoison.refused("estimate", summary, "--top", top)
