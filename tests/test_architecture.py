"""The rooms: docs/architecture.md, the import contracts and the folders say the same."""

from __future__ import annotations

import re
import tomllib
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

import grimp
import pytest

import unpoison
from unpoison.attacks import Attack
from unpoison.datasets import Dataset
from unpoison.defences import Defence
from unpoison.engines import Engine
from unpoison.estimate.methods import FilterMethod
from unpoison.experiments import Experiment
from unpoison.mechanisms import Mechanism
from unpoison.simulation.faults import Fault

ROOT = Path(__file__).parents[1]
PACKAGE = Path(unpoison.__file__).parent
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
TOP_LEVEL = {
    *("__init__", "__main__", "_version", "api", "errors"),
    *("lazy_names", "plugins", "registry", "types"),
}
ROOMS_WITH_ORDERED_PARTS = ["collector", "filters"]
CONTRACTS: list[dict[str, Any]] = tomllib.loads(
    (ROOT / "pyproject.toml").read_text(encoding="utf-8")
)["tool"]["importlinter"]["contracts"]


def rooms() -> set[str]:
    return {path.parent.name for path in PACKAGE.glob("*/__init__.py")}


def documented_rooms() -> dict[str, set[str]]:
    """Each room of the page's table, with the rooms that it must not know."""
    rows = re.findall(r"^\| `(\w+)/` \|[^|]*\|([^|]*)\|$", PAGE, re.MULTILINE)
    return {room: set(re.findall(r"`(\w+)`", column)) for room, column in rows}


def documented_contents() -> dict[str, str]:
    """Each room of the page's table, with what it holds."""
    return dict(re.findall(r"^\| `(\w+)/` \|([^|]*)\|", PAGE, re.MULTILINE))


def documented_layers(introduction: str) -> list[str]:
    """The lines of the list that follows a sentence."""
    block = re.search(
        rf"^[^\n]*{re.escape(introduction)}[^\n]*:\n\n```text\n(.*?)```$",
        PAGE,
        re.MULTILINE | re.DOTALL,
    )
    assert block is not None
    return block.group(1).split("\n")[:-1]


def layers_of_rooms() -> list[str]:
    return documented_layers("A room may import rooms on lower lines")


def contract(name: str) -> dict[str, Any]:
    return next(item for item in CONTRACTS if item["name"] == name)


def test_every_room_is_in_the_table() -> None:
    assert set(documented_rooms()) == rooms()


def test_only_what_every_room_needs_is_at_the_top() -> None:
    assert {path.stem for path in PACKAGE.glob("*.py")} == TOP_LEVEL


def test_the_layers_are_those_of_the_contract() -> None:
    assert layers_of_rooms() == contract("rooms know only rooms below them")["layers"]


@pytest.mark.parametrize("room", sorted(rooms()))
def test_a_room_must_not_know_what_the_contract_forbids(room: str) -> None:
    forbidden: set[str] = set()
    if documented_rooms()[room]:
        item = contract(f"{room} must not know")
        assert item["source_modules"] == [f"unpoison.{room}"]
        forbidden = {name.removeprefix("unpoison.") for name in item["forbidden_modules"]}
    assert documented_rooms()[room] == forbidden
    assert all(f"{room} must not know" != item["name"] for item in CONTRACTS) or forbidden


def test_contracts_forbid_only_lower_rooms() -> None:
    """Higher rooms are forbidden by the layers already: naming them again would say nothing."""
    levels = {
        room: level
        for level, layer in enumerate(layers_of_rooms())
        for room in re.findall(r"\w+", layer)
    }
    for room, forbidden in documented_rooms().items():
        assert all(levels[other] > levels[room] for other in forbidden), room


@pytest.mark.parametrize("room", ROOMS_WITH_ORDERED_PARTS)
def test_the_order_within_a_room_is_that_of_its_contract(room: str) -> None:
    item = contract(f"parts of {room} know only parts below them")
    assert documented_layers(f"Within `{room}/`") == item["layers"]
    assert item["containers"] == [f"unpoison.{room}"]
    assert item["exhaustive"]


@pytest.mark.parametrize("room", sorted(rooms()))
def test_every_folder_of_a_room_is_named_in_its_row(room: str) -> None:
    folders = {path.name for path in (PACKAGE / room).iterdir() if path.is_dir()}
    assert set(re.findall(r"`(\w+)/`", documented_contents()[room])) == folders - {"__pycache__"}


def test_there_are_no_import_cycles() -> None:
    """Among all modules, with imports inside functions and for type checkers."""
    graph = grimp.build_graph("unpoison", cache_dir=None)
    modules = {name: graph.find_modules_directly_imported_by(name) for name in graph.modules}
    TopologicalSorter(modules).prepare()


def test_tests_mirror_the_rooms() -> None:
    folders = {path.parent.name for path in (ROOT / "tests").glob("*/test_*.py")}
    # `make demo` runs the demonstrations; tests of the collector use their fleet.
    assert folders == rooms() - {"demo"}


def test_every_room_is_in_the_list_of_places() -> None:
    places = PAGE.split("## Where to find a part")[1].split("\n## ")[0]
    assert set(re.findall(r"`(\w+)/", places)) == rooms()


@pytest.mark.parametrize(
    "path", sorted(set(re.findall(r"`((?:\w+/)+\w+\.py)`", PAGE)) | {"plan/form.py"})
)
def test_files_that_the_page_names_exist(path: str) -> None:
    assert (PACKAGE / path).exists() or (ROOT / path).exists()


@pytest.mark.parametrize("member", sorted(Mechanism.__abstractmethods__))
def test_every_member_that_a_mechanism_needs_is_documented(member: str) -> None:
    assert re.search(rf"^\| `{member}\b", PAGE, re.MULTILINE)


@pytest.mark.parametrize(
    "kind", [Attack, Dataset, Defence, Engine, Experiment, Fault, FilterMethod]
)
def test_every_member_that_a_registered_class_needs_is_documented(kind: Any) -> None:
    for member in kind.__abstractmethods__:
        assert f"`{member}(" in PAGE, f"{kind.__name__}.{member}"
