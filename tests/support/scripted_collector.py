"""A collector for the client in browsers: says what a test wants, and keeps what it is sent."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import unpoison
from unpoison import Plan

CLIENT = Path(unpoison.__file__).parent / "collector" / "page" / "static" / "client.js"
PAGE = b"<!doctype html><html lang=en><title>A page</title>"
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'"
)
Answer = dict[str, Any]
Lie = Callable[[Answer], object]


@dataclass(frozen=True)
class Request:
    """What a browser sent."""

    method: str
    path: str
    headers: dict[str, str]
    body: str

    @property
    def route(self) -> str:
        """The last part of the path, with the method: `POST tickets`."""
        return f"{self.method} {self.path.rsplit('/', 1)[-1]}"

    @property
    def json(self) -> Answer:
        found: Answer = json.loads(self.body)
        return found


@dataclass(frozen=True)
class Fault:
    """An answer other than the right one; status 0 closes the connection without any."""

    status: int = 0
    code: Any = "unavailable"
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class LyingCollector:
    """Every campaign has the same plan; lies change an answer before it is sent."""

    plan: Plan
    access: str = "invite"
    group: int = 2
    campaign_lie: Lie = lambda answer: None
    ticket_lie: Lie = lambda answer: None
    faults: dict[str, list[Fault]] = field(default_factory=dict)
    before_answer: Callable[[Request], object] = lambda request: None
    requests: list[Request] = field(default_factory=list)
    address: str = ""

    def asked(self) -> list[str]:
        """The routes of the protocol that were asked, in order."""
        return [each.route for each in self.protocol()]

    def protocol(self) -> list[Request]:
        """The requests that are no pages."""
        return [each for each in self.requests if each.path.startswith("/v1/")]

    def sent(self, route: str) -> list[Request]:
        """The requests to one route."""
        return [each for each in self.protocol() if each.route == route]

    def answer(self, request: Request) -> Answer:
        """The right answer, or the lie."""
        campaign = request.path.split("/")[3]
        if request.route == "POST tickets":
            return self._ticket(campaign, request.json["tier"])
        if request.route == "POST reports":
            return {"status": "accepted"}
        return self._campaign(campaign)

    def _campaign(self, campaign: str) -> Answer:
        answer = {
            "id": campaign,
            "name": "Ride starts",
            "state": "open",
            "access": self.access,
            "plan": self.plan.to_dict(),
            "fingerprint": self.plan.fingerprint,
            "closes_at": None,
        }
        self.campaign_lie(answer)
        return answer

    def _ticket(self, campaign: str, tier: int) -> Answer:
        own = self.plan.tier_groups(tier)
        groups = list(own) if self.plan.protocol == "baseline" else [own[self.group % len(own)]]
        all_groups = self.plan.all_groups
        answer: Answer = {
            "ticket": f"ticket-for-{campaign}",
            "campaign": campaign,
            "fingerprint": self.plan.fingerprint,
            "tier": tier,
            "groups": [{"group": each, "reports": all_groups[each].reports} for each in groups],
            "expires_at": "2036-01-31T12:00:00Z",
        }
        self.ticket_lie(answer)
        return answer


class _Handler(BaseHTTPRequestHandler):
    """HTTP/1.0, a connection a request: a browser silently repeats requests on kept ones."""

    collector: LyingCollector

    def do_GET(self) -> None:
        request = self._remember()
        if request.path.startswith("/v1/"):
            self._answer(request)
        elif request.path == "/client.js":
            self._send(200, CLIENT.read_bytes(), "text/javascript")
        elif request.path == "/":
            policy = {"Content-Security-Policy": CONTENT_SECURITY_POLICY}
            self._send(200, PAGE, "text/html", policy)
        else:
            self._send(404, b"", "text/plain")

    def do_POST(self) -> None:
        self._answer(self._remember())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Tests look at the requests, not at a log."""

    def _remember(self) -> Request:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        request = Request(self.command, self.path, dict(self.headers), body)
        self.collector.requests.append(request)
        return request

    def _answer(self, request: Request) -> None:
        answer = json.dumps(self.collector.answer(request)).encode()
        self.collector.before_answer(request)
        faults = self.collector.faults.get(request.route, [])
        if not faults:
            self._send(200, answer, "application/json")
            return
        fault = faults.pop(0)
        error = {"error": {"code": fault.code, "message": "This is a test."}}
        if fault.status:
            body = json.dumps(error).encode()
            self._send(fault.status, body, "application/json", fault.headers)

    def _send(
        self, status: int, body: bytes, kind: str, headers: dict[str, str] | None = None
    ) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": kind, **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def serving(collector: LyingCollector) -> Iterator[LyingCollector]:
    """The collector at an address of its own, in a thread."""
    handler = type("Handler", (_Handler,), {"collector": collector})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        collector.address = f"http://127.0.0.1:{server.server_port}"
        try:
            yield collector
        finally:
            server.shutdown()
            thread.join()
