"""An SQLite file has one server at a time; maintenance beside it is allowed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.command_line import Command
from support.forked_collectors import CollectorForker, ForkServer
from support.running_collectors import in_process_collector

TOKEN = "the-token-of-the-operator"


@pytest.fixture
def forker(tmp_path: Path, fork_server: ForkServer) -> Iterator[CollectorForker]:
    with CollectorForker(tmp_path, fork_server) as collector_forker:
        yield collector_forker


@pytest.mark.server
def test_a_second_server_on_an_sqlite_file_does_not_start(
    tmp_path: Path, unpoison: Command
) -> None:
    database = tmp_path / "reports.db"
    (tmp_path / "link.db").symlink_to(database)
    with in_process_collector(tmp_path) as server:
        for name in (database, tmp_path / "link.db"):
            refused = unpoison.refused("serve", "--database", name, "--port", "0")
            assert "must not be in use by another server" in refused
            assert f"process {os.getpid()}" in refused
        assert server.request("GET", "/readyz").status == 200
    with in_process_collector(tmp_path) as server:
        assert server.request("GET", "/readyz").status == 200, "the lock was released"


@pytest.mark.server
def test_maintenance_is_possible_while_a_server_runs(tmp_path: Path, unpoison: Command) -> None:
    with in_process_collector(tmp_path) as server:
        for option in ("--check", "--new-token", "--rotate-key", "--forget-old-keys"):
            unpoison.done("serve", "--database", tmp_path / "reports.db", option)
        assert server.request("GET", "/readyz").status == 200


def test_a_killed_server_leaves_no_lock_behind(forker: CollectorForker, tmp_path: Path) -> None:
    database = str(tmp_path / "reports.db")
    for _ in range(2):
        server = forker.spawn(database, TOKEN)
        command = [sys.executable, "-m", "unpoison", "serve", "--database", database, "--port", "0"]
        second = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (second.returncode, second.stdout) == (2, "")
        assert second.stderr.count("\n") == 1
        assert f"process {server.pid}" in second.stderr
        server.kill()
