"""Fixtures that several folders of tests share."""

from __future__ import annotations

import gc
import math
import multiprocessing
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from support.browser import browser
from support.browser_client import context, page
from support.command_line import Command
from support.forked_collectors import fork_server
from support.postgres import database, postgres

__all__ = ["browser", "context", "database", "fork_server", "page", "postgres", "unpoison"]


NEEDS = {
    "server": {"server", "fork_server"},
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
        "unpoison.defences.isolation_forest.",
        "unpoison.experiments.plan_designs.",
        "unpoison.experiments.unseen_collections.",
        "unpoison.filters.client_faults.comparison.best_broken_fit",
        "unpoison.filters.client_faults.diagnosis.",
        "unpoison.filters.joint.intervals.",
        "unpoison.filters.joint.range_search.",
        "unpoison.filters.joint.selection.",
        "unpoison.filters.joint.support_search.",
        "unpoison.planner.advice.",
        "unpoison.planner.expectations.",
        "unpoison.planner.trials.",
        "unpoison.protocols.assembly.",
        "unpoison.protocols.joint",
        "unpoison.protocols.worst_case.",
        "unpoison.simulation.trial.",
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


def pytest_collection_finish() -> None:
    """Leave what is imported and collected out of garbage collections.

    It lives until the end, and to look through twelve thousand tests each time takes a second.
    """
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    """Run examples of advice with little effort: fixtures of this folder do not reach them."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        if item.name.startswith("unpoison.planner.advice."):
            spend_little(monkeypatch)
        return (yield)


@pytest.fixture(scope="session", autouse=True)
def _prepared_workers() -> Iterator[None]:
    """Fork collectors' estimating processes from a process that has imported what they need.

    Every collector that makes an estimate starts one, and imports take longer than the estimate.
    """
    needed = ("unpoison.collector.service.estimates", "unpoison.protocols")
    multiprocessing.set_forkserver_preload([*needed, "scipy.ndimage", "scipy.optimize"])
    with pytest.MonkeyPatch.context() as monkeypatch:
        context = multiprocessing.get_context("forkserver")
        monkeypatch.setattr("unpoison.collector.service.worker_process.CONTEXT", context)
        yield


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
    """Let the planner simulate few collections, where their number is all one."""
    spend_little(monkeypatch)


def spend_little(monkeypatch: pytest.MonkeyPatch) -> None:
    """Try two plans once with each shape, and one of them in every situation.

    Then four times more where its error is largest. That takes a twentieth of the time.
    """
    monkeypatch.setattr("unpoison.planner.effort.CHOICES", ((2, 1, 1),))
    monkeypatch.setattr("unpoison.planner.effort.SECONDS", 1.0)


@pytest.fixture
def one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `unpoison plan` simulate in this process, where it is all one which one does.

    Two processes take longer to start than few collections take.
    """
    monkeypatch.setattr("unpoison.cli.plan_advice.usable_cores", lambda: 1)


@pytest.fixture
def unpoison(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Command:
    """The command line, called in this process and in the test's own folder.

    In the project's folder, looking for files that a command has changed would read the whole
    environment, and see what other processes write there.
    """
    monkeypatch.chdir(tmp_path)
    return Command(capsys)
