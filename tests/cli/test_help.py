"""Help texts: lists of names come from the registries, and `unpoison --help` stays cheap."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer

from support.command_line import Command
from unpoison.attacks import attacks
from unpoison.bench import benchmarks
from unpoison.cli import _parser, estimation_options, plan_options
from unpoison.cli.app import app
from unpoison.cli.help_names import NAMES, PLACEHOLDER
from unpoison.client import Policy
from unpoison.collector.campaigns.campaign import DEFAULT_MIN_USERS
from unpoison.datasets import datasets
from unpoison.engines import engines
from unpoison.estimate.methods import method_names
from unpoison.estimate.options import INITIAL_MEANS, WEIGHT_RULES, FilterOptions
from unpoison.estimate.postprocessing import DEFAULT_POST_PROCESSING, POST_PROCESSING
from unpoison.estimate.statistic import STATISTICS
from unpoison.experiments import experiments
from unpoison.filters.em.probing import SIDE_RULES
from unpoison.mechanisms import mechanisms
from unpoison.simulation.simulate import DEFAULT_BYZANTINE_FRACTION, DEFAULT_FAULTY_FRACTION

COMMANDS: dict[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]


@pytest.fixture(autouse=True)
def wide_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """No name is broken at the end of a line."""
    monkeypatch.setenv("COLUMNS", "2000")


@pytest.mark.parametrize(
    ("command", "names"),
    [
        ("bench", benchmarks),
        ("estimate", method_names()),
        ("estimate", STATISTICS),
        ("plan", mechanisms),
        ("reproduce", experiments),
        ("simulate", attacks),
        ("simulate", datasets),
        ("simulate", mechanisms),
        ("simulate", STATISTICS),
        ("summarise", engines),
    ],
)
def test_every_registered_name_is_in_the_help(
    unpoison: Command, command: str, names: Iterable[str]
) -> None:
    words = set(unpoison.done(command, "--help").out.replace(":", " ").replace(",", " ").split())
    assert set(names) <= {word.rstrip(".;") for word in words}


@pytest.mark.slow
def test_every_placeholder_has_names_and_is_used(unpoison: Command) -> None:
    parameters = [param for command in COMMANDS.values() for param in command.params]
    texts = [getattr(param, name, "") for param in parameters for name in ("help", "show_default")]
    used = {name for text in texts for name in PLACEHOLDER.findall(str(text))}
    assert used == NAMES.keys()
    for command in COMMANDS:
        shown = unpoison.done(command, "--help").out
        assert not [name for name in NAMES if f"{{{name}}}" in shown]


def test_a_plugins_names_are_in_the_help(
    unpoison: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attacks, "_items", dict(attacks._items))
    plugin = tmp_path / "spot.py"
    plugin.write_text(
        "from unpoison.attacks import Point, attacks\nattacks.register('spot')(Point)\n"
    )
    assert "spot" not in unpoison.done("simulate", "--help").out
    assert "spot:AT" in unpoison.done("--plugin", plugin, "simulate", "--help").out


@pytest.mark.parametrize(
    ("option", "names", "default"),
    [
        (estimation_options.Weights, WEIGHT_RULES, FilterOptions().weights),
        (estimation_options.SideRule, SIDE_RULES, FilterOptions().side_rule),
        (estimation_options.InitialMean, INITIAL_MEANS, FilterOptions().initial_mean),
        (estimation_options.PostProcessing, POST_PROCESSING, DEFAULT_POST_PROCESSING),
    ],
)
def test_rules_that_the_help_explains_are_all_there_are(
    option: Any, names: Iterable[str], default: str
) -> None:
    (info,) = option.__metadata__
    assert all(f" {name}" in info.help for name in names)
    assert info.show_default == default


def test_defaults_that_the_help_shows_are_the_librarys() -> None:
    options, shown = FilterOptions(), {param.name: param for param in COMMANDS["estimate"].params}
    for name in ("suppression", "max_iterations"):
        assert shown[name].show_default == str(getattr(options, name))
    assert shown["gamma_sup"].show_default == "1/2"
    assert options.gamma_sup == 0.5
    report = {param.name: param for param in COMMANDS["report"].params}
    for name in ("max_epsilon", "lifetime_epsilon"):
        assert report[name].default == getattr(Policy, name)
    create = {param.name: param for param in COMMANDS["campaign"].commands["create"].params}
    assert create["min_users"].default == DEFAULT_MIN_USERS
    simulate = {param.name: param for param in COMMANDS["simulate"].params}
    assert simulate["byzantine_fraction"].default == DEFAULT_BYZANTINE_FRACTION
    assert simulate["faulty_fraction"].show_default == str(DEFAULT_FAULTY_FRACTION)
    (mechanism,) = plan_options.MechanismName.__metadata__  # type: ignore[attr-defined]
    assert mechanism.show_default in mechanisms


IMPORTS = """
import sys
import unpoison
before = set(sys.modules)
from unpoison.cli import run
run(sys.argv[1:])
rooms = {".".join(name.split(".")[:2]) for name in set(sys.modules) - before}
print("IMPORTED", *sorted(rooms))
"""
HEAVY = {
    *("fastapi", "matplotlib", "numpy", "pyarrow", "scipy", "sqlalchemy"),
    *(f"unpoison.{room}" for room in ("bench", "client", "collector", "engines", "experiments")),
}


@cache
def imported(*arguments: str) -> set[str]:
    """The packages, and rooms of ours, that a command imports beside the library itself."""
    done = subprocess.run(
        [sys.executable, "-c", IMPORTS, *arguments], capture_output=True, text=True, check=True
    )
    return set(done.stdout.partition("IMPORTED ")[2].split())


@pytest.mark.slow
def test_the_help_of_all_commands_imports_nothing_heavy() -> None:
    assert "typer" in imported("--help")
    assert not imported("--help") & HEAVY


@pytest.mark.slow
def test_the_help_of_one_command_imports_what_it_lists() -> None:
    assert "unpoison.experiments" in imported("reproduce", "--help")


@pytest.mark.parametrize("name", list(COMMANDS))
def test_the_parser_of_one_command_is_that_of_all_commands(name: str) -> None:
    alone = _parser(name).commands  # type: ignore[attr-defined]
    assert list(alone) == [name]
    assert described(alone[name]) == described(COMMANDS[name])


def described(command: Any) -> dict[str, Any]:
    """What a command and its own commands take, with their help texts."""
    parts = getattr(command, "commands", {})
    return {
        "help": command.help,
        "parameters": [(part.name, part.opts, part.default) for part in command.params],
        "commands": {name: described(part) for name, part in parts.items()},
    }


def test_a_first_word_that_is_no_command_is_looked_for_among_all() -> None:
    for word in ("--version", "srve"):
        assert list(_parser(word).commands) == list(COMMANDS)  # type: ignore[attr-defined]
