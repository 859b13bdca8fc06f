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

PLACES = Path("/usr/lib/postgresql")
OWNERS = ("postgres", "nobody")
"""Who runs it when we are root, whom PostgreSQL refuses."""
NAME = "unpoison"
STOPS = {"fast": signal.SIGINT, "immediate": signal.SIGQUIT}
SECONDS = 60.0


class Cluster:
    """A private PostgreSQL on a port of this machine, as durable as it is by default."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.data = folder, folder / "data"
        self.password = secrets.token_hex(16)
        self.port = _free_port()
        self.process: subprocess.Popen[bytes] | None = None
        self._make()

    def url(self, database: str = "postgres") -> str:
        """What a collector is told."""
        return f"postgresql://{NAME}:{self.password}@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        """Start, and wait until it answers; what was committed before is there again."""
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
        """Stop: politely, or at once as a crash would (`immediate`)."""
        if self.process is not None:
            self.process.send_signal(STOPS[how])
            self.process.wait(SECONDS)
            self.process = None

    @contextmanager
    def database(self) -> Iterator[str]:
        """The URL of an empty database, gone at the end."""
        name = f"test_{secrets.token_hex(6)}"
        self.tell(f"CREATE DATABASE {name}")
        try:
            yield self.url(name)
        finally:
            self.start()
            self.tell(f"DROP DATABASE {name} WITH (FORCE)")

    def tell(self, statement: str) -> None:
        """One statement, outside of all databases of tests."""
        import psycopg

        with psycopg.connect(self.url(), autocommit=True, connect_timeout=10) as connection:
            connection.execute(statement.encode())

    def _make(self) -> None:
        secret = self.folder / "password"
        secret.write_text(self.password)
        for path in (self.folder, secret):
            self._give(path)
        words = ["--username", NAME, "--pwfile", str(secret), "--auth", "scram-sha-256"]
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

        deadline = time.monotonic() + SECONDS
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
        """Whose processes these are, and where they stand: a folder that they may enter."""
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
    """Where a program of PostgreSQL is; the test ends here if it is nowhere."""
    found = shutil.which(name)
    installed = sorted(PLACES.glob(f"*/bin/{name}"), key=lambda path: float(path.parts[-3]))
    if found is None and not installed:
        return _missing(f"PostgreSQL ({name})")
    return found or str(installed[-1])


def _owner() -> str | None:
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        return None
    found = next((name for name in OWNERS if name in _users()), None)
    return found or _missing("a user other than root to run PostgreSQL as")


def _users() -> dict[str, Any]:
    import pwd

    return {each.pw_name: each for each in pwd.getpwall()}


def _missing(part: str) -> str:
    if os.environ.get("UNPOISON_REQUIRE_ALL") == "1":
        pytest.fail(f"this test needs {part}", pytrace=False)
    pytest.skip(f"this test needs {part}")


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@contextmanager
def running_cluster() -> Iterator[Cluster]:
    """A cluster in a folder of its own, both gone at the end."""
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
    """One cluster for all tests; whoever stops it starts it again."""
    with running_cluster() as cluster:
        yield cluster


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """An empty database of each kind, as a collector's setting names it."""
    if request.param == "sqlite":
        yield str(tmp_path / "reports.db")
        return
    cluster: Cluster = request.getfixturevalue("postgres")
    with cluster.database() as url:
        yield url
