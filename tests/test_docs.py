"""The documentation is complete, its links resolve, and what it shows runs."""

from __future__ import annotations

import pkgutil
import re
import runpy
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from fastapi import FastAPI

import unpoison
from unpoison import Plan, simulate
from unpoison.attacks import Attack, attacks, parse_attack
from unpoison.bench import benchmarks
from unpoison.cli.app import app
from unpoison.collector.faults import CAUSES
from unpoison.collector.http.routes import alarms, devices, health, operators
from unpoison.collector.service.campaign_metrics import CampaignMetrics
from unpoison.collector.service.metrics import Metrics
from unpoison.collector.settings import Settings
from unpoison.collector.storage.schema import metadata
from unpoison.datasets import datasets
from unpoison.defences import SelectingDefence, defences
from unpoison.estimate.methods import estimate_summary, method_aliases, method_names
from unpoison.estimate.postprocessing import POST_PROCESSING
from unpoison.estimate.statistic import STATISTICS
from unpoison.experiments import experiments
from unpoison.mechanisms import mechanisms
from unpoison.simulation import Score
from unpoison.simulation.faults import Fault, faults, parse_fault

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("*.md"))
CLI = (DOCS / "cli.md").read_text(encoding="utf-8")
COLLECTOR = (DOCS / "collector.md").read_text(encoding="utf-8")
GUIDE = (DOCS / "guide.md").read_text(encoding="utf-8")
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
PAPER = (DOCS / "paper.md").read_text(encoding="utf-8")
COMMANDS: dict[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]

FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)[^)]*\)")
BY_NAME = ("frequencies", "quantiles", "quantile_intervals", "low", "high")
"""Fields whose own keys are names that users gave, or numbers."""
ROOMS = "|".join(room.name for room in pkgutil.iter_modules(unpoison.__path__) if room.ispkg)
CODE_NAME = re.compile(rf"`((?:{ROOMS})\.[\w.]+)`")
"""A name in the package, written from its room on: `plan.GroupAssigner`."""
SEEDS = re.compile(r"for seed in range\(\d+\)")
"""Loops that repeat one calculation with other random numbers, to average its error."""
TRIALS = re.compile(r"--trials \d+")
"""The same in a command."""
PREPARATION = """
import subprocess
from unpoison.cli import plan_advice, run as command_line
from unpoison.filters.joint import constants
from unpoison.planner import effort

constants.P_VALUE_REPLICATES = constants.P_VALUE_REPLICATES_FEW_BUCKETS = 10
effort.CHOICES, effort.SECONDS = ((2, 1, 1),), 1.0
plan_advice.usable_cores = lambda: 1
"""
"""Before the blocks of a page: fewer repetitions of what is the same each time, in one process.

That what a page shows runs is seen at the first of them; what it prints is not compared.
"""
LEAVE = "import os, sys; sys.stdout.flush(); sys.stderr.flush(); os._exit(0)"
"""After the blocks of a page: threads of libraries that its commands started are not waited for. A
process of its own for each command would end them one by one."""
HEADING = re.compile(r"^#+ +(.*?)(?: *\{ *#([\w-]+) *\})?$", re.MULTILINE)


def section(command: str) -> str:
    """What the page of the command line says under a command's heading."""
    match = re.search(rf"^## {command}\n(.*?)(?=^## )", CLI, re.MULTILINE | re.DOTALL)
    return match.group(1) if match else ""


def paths(keys: dict[str, Any], above: str = "") -> Iterator[str]:
    """The names of all fields, nested ones as `groups[].epsilon`; evidence is not looked into."""
    for key, value in keys.items():
        yield above + key
        if isinstance(value, dict) and above != "fit." and key not in BY_NAME:
            yield from paths(value, f"{above}{key}.")
        if isinstance(value, list) and value and isinstance(value[0], dict):
            yield from paths(value[0], f"{above}{key}[].")


def prose(text: str) -> str:
    """A page without its code."""
    return re.sub(r"`[^`\n]*`", "", FENCE.sub("", text))


def anchors(text: str) -> set[str]:
    """The places in a page that a link may name."""
    anchor_names = set()
    for title, explicit_anchor in HEADING.findall(FENCE.sub("", text)):
        plain = re.sub(r"[^\w\s-]", "", title.replace("`", "")).strip().lower()
        anchor_names.add(explicit_anchor or re.sub(r"[-\s]+", "-", plain))
    return anchor_names


def parameters(command: str) -> Iterator[Any]:
    """The options and arguments of a command, and of the commands below it."""
    click_command = COMMANDS[command]
    yield from click_command.params
    for below in getattr(click_command, "commands", {}).values():
        yield from below.params


@pytest.mark.parametrize("command", list(COMMANDS))
def test_every_command_and_option_is_documented(command: str) -> None:
    text = section(command)
    assert text, f"docs/cli.md has no section {command}"
    for below in getattr(COMMANDS[command], "commands", {}):
        assert f"| `{below}`" in text, f"{command} {below} is not in docs/cli.md"
    for parameter in parameters(command):
        for name in [*parameter.opts, *parameter.secondary_opts]:
            shown = name if name.startswith("-") else parameter.metavar or name.upper()
            assert re.search(rf"`{shown}\b", text), f"{command}: {shown} is not in docs/cli.md"


def test_options_that_are_documented_exist() -> None:
    for command in COMMANDS:
        known = {
            name
            for parameter in parameters(command)
            for name in [*parameter.opts, *parameter.secondary_opts]
        }
        rows = re.findall(r"^\| (`-[^|]*) \|", section(command), re.MULTILINE)
        shown = {name for row in rows for name in re.findall(r"`(--?[a-z][\w-]*)", row)}
        assert shown <= known, f"{command} has no {sorted(shown - known)}"


@pytest.mark.parametrize("text", [GUIDE, CLI], ids=["guide", "cli"])
@pytest.mark.parametrize(
    "name", [*mechanisms, *attacks, *defences, *datasets, *method_names(), *method_aliases()]
)
def test_every_registered_name_is_documented(name: str, text: str) -> None:
    assert f"`{name}`" in text or f"`{name}:" in text


def check_parameters_documented(name: str, made: Attack | Fault) -> None:
    """The guide's row of a name has all fields of what the name stands for."""
    row = re.search(rf"^\| `{name}` \|.*$", GUIDE, re.MULTILINE)
    assert row is not None
    for field in fields(made):  # type: ignore[arg-type]
        assert f"`{field.name}`" in row.group()


@pytest.mark.parametrize("name", list(attacks))
def test_every_parameter_of_an_attack_is_documented(name: str) -> None:
    check_parameters_documented(name, parse_attack(name))


@pytest.mark.parametrize("name", list(faults))
def test_every_parameter_of_a_fault_is_documented(name: str) -> None:
    check_parameters_documented(name, parse_fault(name))
    assert f"`{name}:" in section("simulate")


@pytest.mark.parametrize("name", list(benchmarks))
def test_every_benchmark_is_documented(name: str) -> None:
    assert f"`{name}`" in section("bench")


@pytest.mark.parametrize("name", list(Settings.model_fields))
def test_every_setting_of_the_collector_is_documented(name: str) -> None:
    assert f"| `{name}` |" in COLLECTOR


@pytest.mark.parametrize("code", list(CAUSES))
def test_every_refusal_of_the_collector_is_documented(code: str) -> None:
    assert re.search(rf"^\| {CAUSES[code][0]} \| `{code}`", COLLECTOR, re.MULTILINE)


@pytest.mark.parametrize("table", list(metadata.tables))
def test_every_table_of_the_collector_is_documented(table: str) -> None:
    assert f"| `{table}` |" in COLLECTOR


def test_every_route_of_the_collector_is_documented() -> None:
    api = FastAPI()
    for part in (alarms, devices, health, operators):
        api.include_router(part.router)
    for path, methods in api.openapi()["paths"].items():
        for method in methods:
            shown = f"`{method.upper()} {path.replace('{campaign}', 'ID')}`"
            assert shown in COLLECTOR, f"{shown} is not in docs/collector.md"


def test_every_metric_of_the_collector_is_documented() -> None:
    for family in [*Metrics().registry.collect(), *CampaignMetrics([], now=0).collect()]:
        assert f"`{family.name}" in COLLECTOR


@pytest.mark.parametrize("name", list(experiments))
def test_every_experiment_is_documented(name: str) -> None:
    assert f"`{name}`" in section("reproduce")


@pytest.mark.parametrize("name", [*STATISTICS, *POST_PROCESSING])
def test_every_statistic_and_post_processing_is_documented(name: str) -> None:
    assert f"`{name}`" in section("estimate")


@pytest.mark.parametrize(
    "plan",
    [
        Plan.new(epsilon=1.0, low=0, high=1, tiers=[{"epsilon": 0.25}]),
        Plan.new("k-rr", epsilon=1.0, categories=["a", "b"]),
        Plan.new(epsilon=1.0, low=0, high=1, protocol="baseline"),
    ],
    ids=["tiers", "categories", "baseline"],
)
def test_every_key_of_a_plan_is_documented(plan: Plan) -> None:
    for path in paths(plan.to_dict()):
        name = path.replace("tiers[].groups[].", "groups[].")
        assert f"`{name}`" in CLI, f"{name} is not in docs/cli.md"


@pytest.mark.slow
@pytest.mark.parametrize("method", method_names())
def test_every_field_of_an_estimate_is_documented(method: str) -> None:
    protocol = "baseline" if method == "baseline" else "dap"
    plan = Plan.new(epsilon=1.0, min_epsilon=0.5, low=0, high=1, protocol=protocol)
    values = np.linspace(0, 1, 2000)
    run = simulate(plan, values, "none", 0, np.random.default_rng(1))
    plain = method in defences and not issubclass(defences[method], SelectingDefence)
    statistic = "mean" if plain else "distribution"
    answer = estimate_summary(run.summary, method, statistic=statistic)
    for path in paths(answer.to_dict()):
        assert f"`{path}`" in CLI, f"{path} is not in docs/cli.md"


OF_CATEGORIES = [
    name for name in method_names() if name not in defences or defences[name].categorical
]


@pytest.mark.parametrize("method", OF_CATEGORIES)
def test_every_field_of_an_estimate_of_categories_is_documented(method: str) -> None:
    protocol = "baseline" if method == "baseline" else "dap"
    plan = Plan.new(
        "k-rr", epsilon=1.0, min_epsilon=0.5, categories=["tea", "milk"], protocol=protocol
    )
    run = simulate(plan, ["tea", "milk"] * 1000, "targets:tea", 0.4, np.random.default_rng(1))
    for path in paths(estimate_summary(run.summary, method).to_dict()):
        assert f"`{path}`" in CLI, f"{path} is not in docs/cli.md"


def test_every_field_of_a_score_is_documented() -> None:
    for field in fields(Score):
        assert f"`methods[].{field.name}`" in section("simulate")


@pytest.mark.parametrize("name", sorted(set(CODE_NAME.findall(PAPER))))
def test_code_that_the_paper_page_names_exists(name: str) -> None:
    above, _, attribute = f"unpoison.{name}".rpartition(".")
    owner = pkgutil.resolve_name(above)
    declared = getattr(owner, "__annotations__", {})  # Fields without a default are not attributes.
    assert hasattr(owner, attribute) or attribute in declared


def test_contributing_lists_every_target_of_the_makefile() -> None:
    targets = re.findall(r"^([a-z][\w-]*):", MAKEFILE, re.MULTILINE)
    listed = re.findall(r"^\| `make ([\w-]+)` \|", CONTRIBUTING, re.MULTILINE)
    assert sorted(listed) == sorted(targets)


@pytest.mark.parametrize("page", [*PAGES, *sorted(ROOT.glob("*.md"))], ids=lambda page: page.name)
def test_links_and_images_resolve(page: Path) -> None:
    for target in LINK.findall(prose(page.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = page.parent / name if name else page
        assert file.exists(), f"{page.name} links to {target}"
        if anchor:
            assert anchor in anchors(file.read_text(encoding="utf-8")), f"{target} in {page.name}"


def script(page: str) -> str:
    """A page's Python blocks, and its commands in between, as one program.

    One seed or trial shows that a block runs: averages over several would take most of the time.
    """
    lines = [PREPARATION]
    for kind, body in FENCE.findall(page):
        if kind == "python":
            lines.append(SEEDS.sub("for seed in range(1)", body))
        if kind == "console":
            lines += commands(body)
    return "\n".join([*lines, LEAVE])


def commands(body: str) -> Iterator[str]:
    """Each command of a console block; one that is shown to complain must leave with code 2."""
    for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
        command, _, output = part.replace("\\\n", " ").partition("\n")
        words = shlex.split(TRIALS.sub("--trials 1", command))
        code = 2 if output.startswith("unpoison: ") else 0
        if words[0] == "unpoison":
            yield f"if command_line({words[1:]!r}) != {code}: raise SystemExit({command!r})"
        else:
            yield f"subprocess.run({words!r}, check=True)"


@pytest.mark.slow
@pytest.mark.parametrize("page", runpy.run_path(str(DOCS / "refresh.py"))["PAGES"])
def test_what_a_page_shows_runs(page: str, tmp_path: Path) -> None:
    program = tmp_path / "page.py"
    program.write_text(script((DOCS / page).read_text(encoding="utf-8")), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, program], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
