"""Rules of the filters' rooms: who imports whom, and where numbers of the joint filter live."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import unpoison.filters
from unpoison.bench.joint_constants import joint_filter_constants

FILTERS = Path(unpoison.filters.__file__).parent
JOINT_MODULES = sorted(set((FILTERS / "joint").glob("*.py")) - {FILTERS / "joint" / "constants.py"})
STRUCTURAL = {0, 1, 2}
"""Numbers that belong to a formula, such as 1 − γ or a square, and tune nothing."""


def imported_modules(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def numeric_literals(source: str) -> set[float]:
    nodes = ast.walk(ast.parse(source))
    constants = (node.value for node in nodes if isinstance(node, ast.Constant))
    return {
        value
        for value in constants
        if isinstance(value, int | float) and not isinstance(value, bool)
    }


@pytest.mark.parametrize(("room", "other"), [("joint", "em"), ("em", "joint")])
def test_neither_family_of_filters_imports_the_other(room: str, other: str) -> None:
    modules = sorted((FILTERS / room).glob("*.py"))
    assert len(modules) > 5
    for path in modules:
        foreign = f"unpoison.filters.{other}"
        assert not [name for name in imported_modules(path) if name.startswith(foreign)], path.name


@pytest.mark.parametrize("path", JOINT_MODULES, ids=lambda path: path.stem)
def test_every_number_of_the_joint_filter_is_a_documented_constant(path: Path) -> None:
    assert numeric_literals(path.read_text(encoding="utf-8")) <= STRUCTURAL


def test_a_number_in_code_is_found_and_one_in_a_text_is_not() -> None:
    assert numeric_literals('"""About 0.3."""\nLEVEL = -0.05\nCUTS = (1, 8)') == {0.05, 1, 8}


def test_every_constant_of_the_joint_filter_is_used_there() -> None:
    sources = [path.read_text(encoding="utf-8") for path in JOINT_MODULES]
    for constant in joint_filter_constants():
        assert any(f"constants.{constant.name}" in source for source in sources), constant.name
