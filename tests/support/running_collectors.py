"""Real collectors for tests: in a thread of this process, or in a process that can be killed."""

from __future__ import annotations

import http.client
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import uvicorn

from support.waiting import HANG_SECONDS, eventually
from unpoison import Plan
from unpoison.client.operator import Operator
from unpoison.collector.clock import Clock
from unpoison.collector.http.guard import Guard
from unpoison.collector.server import metrics_socket, prepared_server, web_config
from unpoison.collector.service.collector import Collector
from unpoison.collector.settings import Settings
from unpoison.collector.storage.database import Database, database_url
from unpoison.collector.storage.migration import migrate

SMALL_PLAN = {
    "mechanism": "piecewise-integer",
    "epsilon": 1.0,
    "min_epsilon": 0.25,
    "low": 0,
    "high": 100,
}
"""Three groups, with 1, 2 and 4 reports a user, of 4,096 cells each."""
INVITES_AT_ONCE = 100
"""Invites fetched in one request, so that most enrolments of a test need none."""


class SteppedClock(Clock):
    """Clock whose wall time a test can shift by `step` seconds, and whose steady time it can stop.

    Rate limits refill by the steady clock: with `stopped_at` set, a test that takes long gets no
    more requests through than a quick one.
    """

    def __init__(self) -> None:
        self.step = 0
        self.stopped_at: float | None = None

    def now(self) -> int:
        return super().now() + self.step

    def steady(self) -> float:
        return super().steady() if self.stopped_at is None else self.stopped_at


@dataclass(frozen=True)
class Reply:
    """Status, headers (names in lower case) and body of an HTTP answer."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        """The error code of a refusal, whose body must have the one shape of all refusals."""
        error = self.json["error"]
        assert set(self.json) == {"error"}
        assert {"code", "message"} <= set(error) <= {"code", "message", "field"}
        return str(error["code"])


@dataclass
class RunningCollector:
    """A collector on a port of this machine, and the token of its operator."""

    port: int
    token: str

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def operator(self) -> Operator:
        return Operator(self.url, self.token)

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: dict[str, str] | None = None,
        token: str | None = None,
    ) -> Reply:
        """Send one request on a new connection; a body of bytes is sent as it is, else as JSON."""
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        usual_headers = {"Content-Type": "application/json"} if data is not None else {}
        if token is not None:
            usual_headers["Authorization"] = f"Bearer {token}"
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=HANG_SECONDS)
        try:
            connection.request(method, path, data, {**usual_headers, **(headers or {})})
            response = connection.getresponse()
            names = {name.lower(): text for name, text in response.getheaders()}
            return Reply(response.status, names, response.read())
        finally:
            connection.close()

    def post(self, path: str, body: Any, **options: Any) -> Reply:
        return self.request("POST", path, body, **options)

    def create_campaign(self, plan: dict[str, Any] | None = None, **fields: Any) -> RunningCampaign:
        """Create a campaign, open and with estimates from one user on unless `fields` say else."""
        usual = {"name": "A test", "plan": plan or SMALL_PLAN, "open": True, "min_users": 1}
        created = self.operator.post("/v1/campaigns", {**usual, **fields})
        return RunningCampaign(self, created["id"], Plan.from_dict(created["plan"]))


@dataclass
class EnrolledDevice:
    """A device, by the secret that it sends as `device`, with the ticket that it was given."""

    secret: str
    ticket: dict[str, Any]
    invite: str | None = None

    @property
    def reports(self) -> int:
        return sum(int(group["reports"]) for group in self.ticket["groups"])

    @property
    def group(self) -> int:
        return int(self.ticket["groups"][0]["group"])

    def body(self, values: Sequence[Any] | None = None) -> dict[str, Any]:
        """The body of a submission of these values, or of as many 7s as the ticket asks for."""
        cells = [7] * self.reports if values is None else list(values)
        return {"ticket": self.ticket["ticket"], "device": self.secret, "values": cells}


@dataclass
class RunningCampaign:
    """A campaign of a running collector."""

    server: RunningCollector
    id: str
    plan: Plan
    unused_invites: list[str] = field(default_factory=list)

    @property
    def path(self) -> str:
        return f"/v1/campaigns/{self.id}"

    def invite(self) -> str:
        """An invite that nobody has used."""
        if not self.unused_invites:
            wanted = {"count": INVITES_AT_ONCE}
            issued = self.server.operator.post(f"{self.path}/invites", wanted)
            self.unused_invites = list(issued["invites"])
        return self.unused_invites.pop()

    def request_ticket(self, **fields: Any) -> Reply:
        """Ask for a ticket with exactly these fields, whatever the answer will be."""
        return self.server.post(f"{self.path}/tickets", fields)

    def enrol_device(self, open_to_all: bool = False, **fields: Any) -> EnrolledDevice:
        """Enrol a new device, with a fresh invite unless the campaign is open to all."""
        secret, invite = secrets.token_hex(32), None if open_to_all else self.invite()
        usual = {"device": secret, **({} if invite is None else {"invite": invite})}
        reply = self.request_ticket(**{**usual, **fields})
        assert reply.status == 200, reply
        return EnrolledDevice(secret, reply.json, invite)

    def submit(self, body: Any, **options: Any) -> Reply:
        return self.server.post(f"{self.path}/reports", body, **options)

    def status(self) -> dict[str, Any]:
        return self.server.operator.get(f"{self.path}/status")


@dataclass
class InProcessCollector(RunningCollector):
    """A collector in a thread of this process, whose insides a test can reach."""

    collector: Collector
    clock: SteppedClock
    guard: Guard


@cache
def empty_database() -> TemporaryDirectory[str]:
    """A folder with an SQLite database that has a schema and nothing else, `reports.db`.

    To be copied: to make the tables takes most of the start of a collector.
    """
    folder = TemporaryDirectory()
    database = Database(database_url(f"{folder.name}/reports.db"))
    migrate(database)
    database.close()
    return folder


@contextmanager
def in_process_collector(folder: Path, **settings: Any) -> Iterator[InProcessCollector]:
    """Serve from a thread of this process, over real sockets."""
    if "database" not in settings and not (folder / "reports.db").exists():
        shutil.copy(Path(empty_database().name, "reports.db"), folder)
    chosen = Settings.load(**{"database": str(folder / "reports.db"), "port": 0, **settings})
    with prepared_server(chosen) as parts, socket.create_server(("127.0.0.1", 0)) as listener:
        clock = SteppedClock()
        collector = Collector(chosen, parts.database, parts.keys, clock)
        config = web_config(chosen, collector, metrics_socket(chosen))
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
        thread.start()
        eventually(lambda: server.started)
        try:
            port, guard = listener.getsockname()[1], cast(Guard, config.app)
            yield InProcessCollector(port, parts.token or "", collector, clock, guard)
        finally:
            server.should_exit = True
            thread.join(HANG_SECONDS)


@dataclass
class SpawnedCollector(RunningCollector):
    """A collector in a process of its own."""

    process: subprocess.Popen[str]

    def kill(self) -> None:
        """End the process without any chance to clean up, as a power cut would."""
        self.process.send_signal(signal.SIGKILL)
        self.process.communicate(timeout=HANG_SECONDS)

    def stop(self) -> int:
        """Ask the process to stop, and return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate(timeout=HANG_SECONDS)
        return self.process.returncode


def serve_environment(database: str, key_file: Path, token: str, log_level: str) -> dict[str, str]:
    """Environment of an `unpoison serve` that takes a free port."""
    return {
        "UNPOISON_COLLECTOR_DATABASE": database,
        "UNPOISON_COLLECTOR_KEY_FILE": str(key_file),
        "UNPOISON_COLLECTOR_OPERATOR_TOKEN": token,
        "UNPOISON_COLLECTOR_PORT": "0",
        "UNPOISON_COLLECTOR_LOG_LEVEL": log_level,
    }


def announced_port(line: str) -> int:
    """The port in the line that `unpoison serve` prints first."""
    assert line.startswith("Collector: http://127.0.0.1:"), line
    return int(line.split()[1].rpartition(":")[2])


def spawn_collector(folder: Path, token: str, **environment: str) -> SpawnedCollector:
    """Start `unpoison serve` on a free port, and wait until it answers."""
    usual = serve_environment(
        str(folder / "reports.db"), folder / "tickets.keys", token, log_level="warning"
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "unpoison", "serve"],
        cwd=folder,
        env={**os.environ, **usual, **environment},
        stdout=subprocess.PIPE,
        text=True,
    )
    line = "" if process.stdout is None else process.stdout.readline()
    server = SpawnedCollector(announced_port(line), token, process)
    assert server.request("GET", "/healthz").status == 200
    return server
