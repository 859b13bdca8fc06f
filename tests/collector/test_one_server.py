"""An SQLite file has one server at a time; maintenance beside it is allowed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.command_line import Command
from support.forked_collectors import CollectorForker, ForkServer
from support.running_collectors import in_process_collector

TOKEN = "the-token-of-the-operator"


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A server's folder: not the one in which commands run, and which they must not change."""
    return tmp_path_factory.mktemp("server")


@pytest.fixture
def forker(folder: Path, fork_server: ForkServer) -> Iterator[CollectorForker]:
    with CollectorForker(folder, fork_server) as collector_forker:
        yield collector_forker


@pytest.mark.server
def test_a_second_server_on_an_sqlite_file_does_not_start(folder: Path, unpoison: Command) -> None:
    database = folder / "reports.db"
    (folder / "link.db").symlink_to(database)
    with in_process_collector(folder) as server:
        for name in (database, folder / "link.db"):
            refused = unpoison.refused("serve", "--database", name, "--port", "0")
            assert "must not be in use by another server" in refused
            assert f"process {os.getpid()}" in refused
        assert server.request("GET", "/readyz").status == 200
    with in_process_collector(folder) as server:
        assert server.request("GET", "/readyz").status == 200, "the lock was released"


@pytest.mark.server
def test_maintenance_is_possible_while_a_server_runs(tmp_path: Path, unpoison: Command) -> None:
    with in_process_collector(tmp_path) as server:
        for option in ("--check", "--new-token", "--rotate-key", "--forget-old-keys"):
            unpoison.done("serve", "--database", tmp_path / "reports.db", option)
        assert server.request("GET", "/readyz").status == 200


def test_a_killed_server_leaves_no_lock_behind(
    forker: CollectorForker, folder: Path, unpoison: Command
) -> None:
    database = str(folder / "reports.db")
    for _ in range(2):
        server = forker.spawn(database, TOKEN)
        refused = unpoison.refused("serve", "--database", database, "--port", "0")
        assert f"process {server.pid}" in refused
        server.kill()
