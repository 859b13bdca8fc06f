"""A real PostgreSQL for tests: skipped where it is missing, unless everything is required."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from support.programs import missing
from support.waiting import HANG_SECONDS

INSTALLED = Path("/usr/lib/postgresql")
"""Where Debian installs the servers of each version, outside of PATH."""
OWNERS = ("postgres", "nobody")
"""Users to run it as when the tests run as root, which PostgreSQL refuses."""
USER = "unpoison"
"""The database superuser that the collectors of tests connect as."""
STOP_SIGNALS = {"fast": signal.SIGINT, "immediate": signal.SIGQUIT}


class Cluster:
    """A private PostgreSQL on a port of this machine, as durable as it is by default."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.data = folder, folder / "data"
        self.password = secrets.token_hex(16)
        self.port = _free_port()
        self.process: subprocess.Popen[bytes] | None = None
        self._make()

    def url(self, database: str = "postgres") -> str:
        """The URL by which a collector connects to a database."""
        return f"postgresql://{USER}:{self.password}@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        """Start the server, unless it runs, and wait until it answers."""
        if self.process is not None:
            return
        options = {"port": self.port, "listen_addresses": "127.0.0.1", "max_connections": 100}
        words = [f"-c{name}={value}" for name, value in options.items()]
        log = (self.folder / "log").open("ab")
        with log:
            self.process = subprocess.Popen(
                [program("postgres"), "-D", str(self.data), "-k", str(self.folder), *words],
                stdout=log,
                stderr=log,
                **self._owner(),
            )
        self._wait()

    def stop(self, how: str = "fast") -> None:
        """Stop in the mode `fast`, or `immediate`, which is like a crash."""
        if self.process is not None:
            self.process.send_signal(STOP_SIGNALS[how])
            self.process.wait(HANG_SECONDS)
            self.process = None

    @contextmanager
    def database(self) -> Iterator[str]:
        """Create an empty database, and drop it at the end; gives its URL."""
        name = f"test_{secrets.token_hex(6)}"
        self.tell(f"CREATE DATABASE {name}")
        try:
            yield self.url(name)
        finally:
            self.start()
            self.tell(f"DROP DATABASE {name} WITH (FORCE)")

    def tell(self, statement: str) -> None:
        """Execute one statement in the database `postgres`."""
        import psycopg

        with psycopg.connect(self.url(), autocommit=True, connect_timeout=10) as connection:
            connection.execute(statement.encode())

    def _make(self) -> None:
        secret = self.folder / "password"
        secret.write_text(self.password)
        for path in (self.folder, secret):
            self._give(path)
        words = ["--username", USER, "--pwfile", str(secret), "--auth", "scram-sha-256"]
        made = subprocess.run(
            [program("initdb"), "-D", str(self.data), "--encoding", "UTF8", "--no-locale", *words],
            check=False,
            capture_output=True,
            text=True,
            **self._owner(),
        )
        assert made.returncode == 0, made.stderr

    def _wait(self) -> None:
        import psycopg

        deadline = time.monotonic() + HANG_SECONDS
        while True:
            try:
                self.tell("SELECT 1")
            except psycopg.OperationalError:
                running = self.process is not None and self.process.poll() is None
                assert running, (self.folder / "log").read_text()
                assert time.monotonic() < deadline, "PostgreSQL did not start in time"
                time.sleep(0.05)
            else:
                return

    def _owner(self) -> dict[str, Any]:
        """The user, group and working directory of the server's processes."""
        rest: dict[str, Any] = {"cwd": self.folder}
        owner = _owner()
        if owner is None:
            return rest
        group = _users()[owner].pw_gid
        return {**rest, "user": owner, "group": group, "extra_groups": []}

    def _give(self, path: Path) -> None:
        owner = _owner()
        if owner is not None:
            shutil.chown(path, owner)


def program(name: str) -> str:
    """The path of a program of PostgreSQL; skips or fails the test if it is not installed."""
    executable = shutil.which(name)
    installed = sorted(INSTALLED.glob(f"*/bin/{name}"), key=lambda path: float(path.parts[-3]))
    if executable is None and not installed:
        return missing(f"PostgreSQL ({name})")
    return executable or str(installed[-1])


def _owner() -> str | None:
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        return None
    owner = next((name for name in OWNERS if name in _users()), None)
    return owner or missing("a user other than root to run PostgreSQL as")


def _users() -> dict[str, Any]:
    import pwd

    return {entry.pw_name: entry for entry in pwd.getpwall()}


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@contextmanager
def running_cluster() -> Iterator[Cluster]:
    """Run a cluster in a temporary folder, and remove both at the end."""
    for name in ("initdb", "postgres"):
        program(name)
    with tempfile.TemporaryDirectory(prefix="unpoison-postgres-") as folder:
        cluster = Cluster(Path(folder))
        try:
            cluster.start()
            yield cluster
        finally:
            cluster.stop("immediate")


@pytest.fixture(scope="session")
def postgres() -> Iterator[Cluster]:
    """One cluster for all tests; a test that stops it must start it again."""
    with running_cluster() as cluster:
        yield cluster


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """An empty SQLite and an empty PostgreSQL database, as a collector's setting names them."""
    if request.param == "sqlite":
        yield str(tmp_path / "reports.db")
        return
    cluster: Cluster = request.getfixturevalue("postgres")
    with cluster.database() as url:
        yield url
