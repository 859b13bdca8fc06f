"""Attacks, defences, datasets and experiments from a user's own file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.command_line import Command
from unpoison import plugins
from unpoison.attacks import attacks
from unpoison.datasets import datasets
from unpoison.defences import defences
from unpoison.errors import InvalidFile
from unpoison.experiments import experiments
from unpoison.plugins import load_plugins, loaded_plugins
from unpoison.registry import Registry

MINE = """
from dataclasses import dataclass

import numpy as np

from unpoison.attacks import Attack, attacks
from unpoison.datasets import Dataset, Sample, datasets
from unpoison.defences import Defence, defences
from unpoison.experiments import Cell, Experiment, Panel, experiments


@attacks.register("my-attack")
@dataclass(frozen=True)
class MyAttack(Attack):
    def poison(self, target, count, rng):
        return target.report(np.full(count, target.position("C")))


@defences.register("my-defence")
@dataclass(frozen=True)
class MyDefence(Defence):
    def mean(self, summary):
        return 0.25

    def describe(self):
        return "Always the same."


@datasets.register("my-dataset")
class MyDataset(Dataset):
    def draw(self, users, rng):
        return Sample(rng.random(users), 0.0, 1.0, "evenly spread")


@experiments.register("my-experiment")
class MyExperiment(Experiment):
    title = "Mine"

    def cells(self, quick):
        one = Cell("my-dataset", 2000, "piecewise", 0.5, "my-attack", 0.1, ("my-defence",), 1)
        return [one, Cell("my-dataset", 2000, "piecewise", 1.0, "my-attack", 0.1, ("emf",), 1)]

    def panels(self, quick):
        return [Panel("MSE", "squared_error", floor=True)]
"""


@pytest.fixture(autouse=True)
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A file of one's own, forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    kept: list[tuple[Registry[type], dict[str, type]]] = [
        (registry, dict(registry._items)) for registry in (attacks, defences, datasets, experiments)
    ]
    monkeypatch.setattr(plugins, "_loaded", {})
    path = tmp_path / "mine.py"
    path.write_text(MINE)
    yield path
    for registry, items in kept:
        registry._items = items


@pytest.mark.slow
def test_all_commands_know_what_a_plugin_adds(unpoison: Command) -> None:
    where = ("--plugin", "mine.py", "simulate", "--dataset", "my-dataset", "--users", "5000")
    shown = unpoison.done(*where, "--attack", "my-attack", "--methods", "my-defence", "--seed", "1")
    assert "my-defence" in shown.out
    compared = unpoison.done(*where, "--compare", "--fast", "--seed", "1", "--attack", "my-attack")
    assert "my-defence (ungrouped)" in compared.out


@pytest.mark.slow
def test_the_runners_processes_know_it_too(unpoison: Command) -> None:
    options = ("my-experiment", "--workers", "2", "-o", "out")
    shown = unpoison.done("--plugin", "mine.py", "reproduce", *options)
    assert "my-defence" in shown.out


def test_a_file_is_run_once(plugin: Path) -> None:
    plugin.write_text(
        "import pathlib\nran = pathlib.Path('ran')\n"
        "ran.write_text('x' + (ran.read_text() if ran.exists() else ''))"
    )
    load_plugins([plugin, Path("mine.py")])
    assert Path("ran").read_text() == "x"
    assert loaded_plugins() == [plugin.resolve()]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = 1\nraise ValueError('no')", "mine.py: cannot be run: ValueError: no (line 2)"),
        ("def (:", "cannot be run: SyntaxError"),
        ("import no_such_thing", "No module named 'no_such_thing' (line 1)"),
    ],
)
def test_a_plugin_that_fails_is_named(
    unpoison: Command, plugin: Path, text: str, said: str
) -> None:
    plugin.write_text(text)
    assert said in unpoison.refused("--plugin", "mine.py", "simulate")
    assert loaded_plugins() == []


@pytest.mark.parametrize(("name", "said"), [("no.py", "is no file"), ("x.txt", "must be a Python")])
def test_what_is_no_python_file_is_refused(name: str, said: str) -> None:
    Path("x.txt").write_text("x")
    with pytest.raises(InvalidFile, match=said):
        load_plugins([Path(name)])
