"""Collectors for tests: one in this process, or one as a process of its own that can be killed."""

from __future__ import annotations

import http.client
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import uvicorn

from unpoison import Plan
from unpoison.client.operator import Operator
from unpoison.collector.clock import Clock
from unpoison.collector.http.guard import Guard
from unpoison.collector.server import prepared, web_config
from unpoison.collector.service.collector import Collector
from unpoison.collector.settings import Settings

SHORT = {
    "mechanism": "piecewise-integer",
    "epsilon": 1.0,
    "min_epsilon": 0.25,
    "low": 0,
    "high": 100,
}
"""Three groups, with 1, 2 and 4 reports a user, of 4,096 cells each."""
STARTUP_SECONDS = 30.0


class SteppedClock(Clock):
    """A clock that a test can set."""

    def __init__(self) -> None:
        self.step = 0

    def now(self) -> int:
        return super().now() + self.step


@dataclass(frozen=True)
class Reply:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        """The code of a refusal, which has the one shape that all have."""
        error = self.json["error"]
        assert set(self.json) == {"error"}
        assert {"code", "message"} <= set(error) <= {"code", "message", "field"}
        return str(error["code"])


@dataclass
class Face:
    """A collector as the network sees it."""

    port: int
    token: str

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def operator(self) -> Operator:
        return Operator(self.url, self.token)

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: dict[str, str] | None = None,
        token: str | None = None,
    ) -> Reply:
        """One request on a connection of its own; bytes are sent as they are."""
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        given = {"Content-Type": "application/json"} if data is not None else {}
        if token is not None:
            given["Authorization"] = f"Bearer {token}"
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, path, data, {**given, **(headers or {})})
            found = connection.getresponse()
            names = {name.lower(): text for name, text in found.getheaders()}
            return Reply(found.status, names, found.read())
        finally:
            connection.close()

    def post(self, path: str, body: Any, **rest: Any) -> Reply:
        return self.ask("POST", path, body, **rest)

    def campaign(self, plan: dict[str, Any] | None = None, **keys: Any) -> CampaignFace:
        """A new campaign, open unless said otherwise."""
        body = {"name": "A test", "plan": plan or SHORT, "open": True, "min_users": 1, **keys}
        made = self.operator.post("/v1/campaigns", body)
        return CampaignFace(self, made["id"], Plan.from_dict(made["plan"]))


@dataclass
class Pass:
    """A device with its ticket."""

    device: str
    ticket: dict[str, Any]
    invite: str | None = None

    @property
    def reports(self) -> int:
        return sum(int(part["reports"]) for part in self.ticket["groups"])

    @property
    def group(self) -> int:
        return int(self.ticket["groups"][0]["group"])

    def body(self, values: Sequence[Any] | None = None) -> dict[str, Any]:
        """A submission; each cell is 7 unless they are given."""
        cells = [7] * self.reports if values is None else list(values)
        return {"ticket": self.ticket["ticket"], "device": self.device, "values": cells}


@dataclass
class CampaignFace:
    """One campaign of a running collector."""

    face: Face
    id: str
    plan: Plan
    codes: list[str] = field(default_factory=list)

    @property
    def path(self) -> str:
        return f"/v1/campaigns/{self.id}"

    def invite(self) -> str:
        """A fresh invite; they are fetched by the hundred."""
        if not self.codes:
            made = self.face.operator.post(f"{self.path}/invites", {"count": 100})
            self.codes = list(made["invites"])
        return self.codes.pop()

    def enrol(self, **keys: Any) -> Reply:
        """Ask for a ticket."""
        return self.face.post(f"{self.path}/tickets", keys)

    def enrolled(self, open_to_all: bool = False, **keys: Any) -> Pass:
        """A new device with a ticket."""
        device, invite = secrets.token_hex(32), None if open_to_all else self.invite()
        given = {"device": device, **({} if invite is None else {"invite": invite}), **keys}
        reply = self.enrol(**given)
        assert reply.status == 200, reply
        return Pass(device, reply.json, invite)

    def submit(self, body: Any, **rest: Any) -> Reply:
        return self.face.post(f"{self.path}/reports", body, **rest)

    def status(self) -> dict[str, Any]:
        return self.face.operator.get(f"{self.path}/status")


def eventually(condition: Any, seconds: float = 10.0) -> None:
    """Wait until something is so."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)


@dataclass
class Here(Face):
    """A collector in this process, whose parts a test can reach."""

    collector: Collector
    clock: SteppedClock
    guard: Guard


@contextmanager
def collector_here(folder: Path, **settings: Any) -> Iterator[Here]:
    """Serve from a thread of this process, over real sockets."""
    given = {"database": str(folder / "reports.db"), "port": 0, **settings}
    chosen = Settings.load(**given)
    with prepared(chosen) as parts, socket.create_server(("127.0.0.1", 0)) as listener:
        clock = SteppedClock()
        collector = Collector(chosen, parts.database, parts.keys, clock)
        config = web_config(chosen, collector)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
        thread.start()
        eventually(lambda: server.started)
        try:
            port = listener.getsockname()[1]
            yield Here(port, parts.token or "", collector, clock, cast(Guard, config.app))
        finally:
            server.should_exit = True
            thread.join(20)


@dataclass
class Spawned(Face):
    """A collector as a process of its own."""

    process: subprocess.Popen[str]

    def kill(self) -> None:
        """As a power cut would: no goodbye."""
        self.process.send_signal(signal.SIGKILL)
        self.process.communicate(timeout=20)

    def stop(self) -> int:
        """Politely; returns the exit code."""
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate(timeout=30)
        return self.process.returncode


def spawned(folder: Path, token: str, **environment: str) -> Spawned:
    """Start `unpoison serve` on a free port, and wait until it listens."""
    own = {
        "UNPOISON_COLLECTOR_DATABASE": str(folder / "reports.db"),
        "UNPOISON_COLLECTOR_KEY_FILE": str(folder / "tickets.keys"),
        "UNPOISON_COLLECTOR_OPERATOR_TOKEN": token,
        "UNPOISON_COLLECTOR_PORT": "0",
        "UNPOISON_COLLECTOR_LOG_LEVEL": "warning",
        **environment,
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "unpoison", "serve"],
        cwd=folder,
        env={**os.environ, **own},
        stdout=subprocess.PIPE,
        text=True,
    )
    line = "" if process.stdout is None else process.stdout.readline()
    assert line.startswith("Collector: http://127.0.0.1:"), line
    port = int(line.split()[1].rpartition(":")[2])
    found = Spawned(port, token, process)
    eventually(lambda: _listens(found), STARTUP_SECONDS)
    return found


def _listens(face: Face) -> bool:
    try:
        return face.ask("GET", "/healthz").status == 200
    except OSError:
        return False
