"""`unpoison serve` as a child process, for demonstrations and benchmarks."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from unpoison.client.operator import Operator
from unpoison.errors import InvalidParameter


@dataclass(frozen=True)
class CollectorProcess:
    """A running collector: its address, and a client with its operator's token.

    >>> CollectorProcess("http://127.0.0.1:8000", Operator("http://127.0.0.1:8000", "token")).port
    8000
    """

    address: str
    operator: Operator
    pid: int = 0

    @property
    def port(self) -> int:
        """The port of the address."""
        return int(self.address.rpartition(":")[2])


def accept_new_keys(folder: Path, *options: str) -> None:
    """Make a key file in a folder, and make its keys those of the database's servers.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     accept_new_keys(Path(folder))
    ...     Path(folder, "unpoison.db.keys").exists()
    True
    """
    command = [sys.executable, "-m", "unpoison", "serve", "--new-keys", *options]
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)


@contextmanager
def collector_process(folder: Path, *options: str) -> Iterator[CollectorProcess]:
    """Run `unpoison serve` in a folder, at a free port, and stop it at the end.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder, collector_process(Path(folder)) as server:
    ...     server.operator.get("/v1/campaigns")
    {'campaigns': [], 'next': None}
    """
    token = secrets.token_hex(32)
    process = subprocess.Popen(
        [sys.executable, "-m", "unpoison", "serve", "--port", "0", *options],
        cwd=folder,
        env={**os.environ, "UNPOISON_COLLECTOR_OPERATOR_TOKEN": token},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        # The first line is printed once the port is bound.
        line = "" if process.stdout is None else process.stdout.readline()
        if not line.startswith("Collector: "):
            raise InvalidParameter("unpoison serve", "must print its address", line)
        address = line.split()[1]
        yield CollectorProcess(address, Operator(address, token), process.pid)
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate()
