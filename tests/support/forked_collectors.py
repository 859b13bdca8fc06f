"""Collectors that start quickly, for tests that kill many of them.

Most of a start is imports. `fork_server.py` does them once and then forks each collector, which is
a process of its own: it runs `unpoison serve`, and can be killed.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from support.running_collectors import RunningCollector, announced_port, serve_environment
from support.waiting import HANG_SECONDS

FORK_SERVER = Path(__file__).with_name("fork_server.py")
SINGLE_THREADED = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
"""A process with threads cannot be forked safely."""


@dataclass
class ForkedCollector(RunningCollector):
    """A collector that was forked."""

    pid: int
    forker: CollectorForker

    def wait_until_it_answers(self) -> None:
        """Learn the port from what the process prints, and ask it for its health."""
        self.port = announced_port(self.forker.read_line(self.pid))
        assert self.request("GET", "/healthz").status == 200

    def kill(self) -> None:
        """End the process without any chance to clean up, as a power cut would."""
        self.end(signal.SIGKILL)

    def end(self, sign: signal.Signals) -> int:
        """Send a signal, wait for the end, and return the exit code.

        A process that does not end is killed after a while, and its exit code is -9.
        """
        os.kill(self.pid, sign)
        rescue = threading.Timer(HANG_SECONDS, os.kill, (self.pid, signal.SIGKILL))
        rescue.start()
        try:
            return self.forker.wait(self.pid)
        finally:
            rescue.cancel()


class ForkServer:
    """The process that forks; `with` ends it."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(FORK_SERVER)],
            env={**os.environ, **SINGLE_THREADED},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> ForkServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.communicate(timeout=HANG_SECONDS)

    def command(self, command: dict[str, Any]) -> dict[str, Any]:
        """Send one command, and wait for its answer."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer


@pytest.fixture(scope="session")
def fork_server() -> Iterator[ForkServer]:
    """One process for all tests: its imports take longer than most of them."""
    with ForkServer() as server:
        yield server


class CollectorForker:
    """Collectors that have a folder; `with` ends those that still run."""

    def __init__(self, folder: Path, fork_server: ForkServer) -> None:
        self.folder, self.fork_server = folder, fork_server
        self.pids: set[int] = set()

    def __enter__(self) -> CollectorForker:
        return self

    def __exit__(self, *_: object) -> None:
        for pid in list(self.pids):
            os.kill(pid, signal.SIGKILL)
            self.wait(pid)

    def begin(self, database: str, token: str, **environment: str) -> ForkedCollector:
        """Fork a collector, and return while it is still starting; it has no port yet."""
        keys = self.folder / "tickets.keys"
        usual = serve_environment(database, keys, token, log_level="error")
        child = {"folder": str(self.folder), "environment": {**usual, **environment}}
        pid = int(self.fork_server.command(child)["pid"])
        self.pids.add(pid)
        return ForkedCollector(0, token, pid, self)

    def spawn(self, database: str, token: str, **environment: str) -> ForkedCollector:
        """Fork a collector, and wait until it answers."""
        child = self.begin(database, token, **environment)
        child.wait_until_it_answers()
        return child

    def read_line(self, pid: int) -> str:
        """The next line that a collector prints."""
        return str(self.fork_server.command({"read_line": pid})["line"])

    def wait(self, pid: int) -> int:
        """Wait for the end of a collector, and return its exit code."""
        self.pids.discard(pid)
        return int(self.fork_server.command({"wait": pid})["code"])
