"""Fixtures that several folders of tests share."""

from __future__ import annotations

import math

import pytest

from support.browser import browser
from support.browser_client import context, page
from support.command_line import Command
from support.postgres import database, postgres

__all__ = ["browser", "context", "database", "page", "postgres", "unpoison"]


NEEDS = {
    "server": {"server", "forker", "pair"},
    "browser": {"browser"},
    "database": {"postgres", "database"},
}
"""The fixtures behind each marker, so that tests that use them need not carry it themselves."""


EXAMPLES = {
    "server": (
        "unpoison.collector.process.",
        "unpoison.collector.server.",
        "unpoison.issuer.server.",
    ),
    "slow": (
        "unpoison.collector.service.worker_process.",
        "unpoison.defences.emf_isolation_forest.",
        "unpoison.experiments.plan_designs.",
        "unpoison.filters.joint.intervals.",
        "unpoison.filters.joint.selection.",
        "unpoison.planner.advice.",
        "unpoison.planner.expectations.",
        "unpoison.protocols.joint",
        "unpoison.protocols.worst_case.",
        "unpoison.system.processes.",
    ),
}
"""Beginnings of the names of examples in docstrings, which cannot carry a marker."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests by the fixtures they use, and examples, before markers select among them."""
    for item in items:
        fixtures = set(getattr(item, "fixturenames", ()))
        for marker, names in NEEDS.items():
            if fixtures & names:
                item.add_marker(marker)
        for marker, beginnings in EXAMPLES.items():
            if item.name.startswith(beginnings):
                item.add_marker(marker)


@pytest.fixture
def few_replicates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Base the joint method's p-values on few replicates, where a test does not look at them.

    With few buckets and nobody attacking, fitting 200 replicates takes nine tenths of an estimate.
    """
    monkeypatch.setattr("unpoison.filters.joint.constants.P_VALUE_REPLICATES", 10)
    monkeypatch.setattr("unpoison.filters.joint.constants.P_VALUE_REPLICATES_FEW_BUCKETS", 10)


@pytest.fixture
def no_cramer_rao(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulate numbers without their Cramér–Rao bound, where a test does not look at it.

    It takes four fifths of the simulation of a small collection.
    """
    monkeypatch.setattr("unpoison.simulation.ground_truth.cramer_rao", lambda *_: math.nan)


@pytest.fixture
def little_effort(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the planner simulate as few collections as it ever does, where their number is all one.

    That takes a tenth of the time.
    """
    monkeypatch.setattr("unpoison.planner.effort.SECONDS", 1.0)


@pytest.fixture
def unpoison(capsys: pytest.CaptureFixture[str]) -> Command:
    """The command line, called in this process."""
    return Command(capsys)
