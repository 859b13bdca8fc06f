"""Files at the root agree with the package: pre-commit hooks, citation, changelog."""

from __future__ import annotations

import re
from pathlib import Path

from unpoison._version import __version__

ROOT = Path(__file__).parents[1]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
CITATION = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def recipe(target: str) -> list[str]:
    """The commands of a make target, with the folder of the tools written out."""
    rule = re.search(rf"^{target}:[^\n]*\n((?:\t[^\n]*\n)+)", MAKEFILE, re.MULTILINE)
    assert rule is not None, f"the Makefile has no target {target}"
    return [line.strip().replace("$(BIN)", ".venv/bin") for line in rule.group(1).splitlines()]


def hooks() -> list[str]:
    """The commands that pre-commit runs, in their order."""
    config = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    return re.findall(r"^ +entry: (.*)$", config, re.MULTILINE)


def test_pre_commit_first_makes_the_environment_of_the_makefile() -> None:
    assert "STAMP := $(VENV)/.installed" in MAKEFILE
    assert "VENV := .venv" in MAKEFILE
    assert hooks()[0] == "make --silent .venv/.installed"


def test_pre_commit_runs_what_make_check_runs() -> None:
    assert hooks()[1:] == recipe("check")


def test_the_citation_names_this_version() -> None:
    assert re.findall(r"^version: (.*)$", CITATION, re.MULTILINE) == [__version__]


def test_the_changelog_names_this_version() -> None:
    releases = re.findall(r"^## \[(.*?)\]", CHANGELOG, re.MULTILINE)
    assert next(name for name in releases if name != "Unreleased") == __version__
