"""A collector for tests of the browser's client: pages, scripted answers, recorded requests."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import unpoison
from support.collector_protocol import (
    Body,
    Request,
    campaign_answer,
    serving_in_thread,
    ticket_answer,
)
from unpoison import Plan

CLIENT = Path(unpoison.__file__).parent / "collector" / "page" / "static" / "client.js"
PAGE = b"<!doctype html><html lang=en><title>A page</title>"
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'"
)
"""That of the real collector's pages: the client must work under it."""
Lie = Callable[[Body], object]


@dataclass(frozen=True)
class Fault:
    """An answer other than the right one; status 0 closes the connection without any."""

    status: int = 0
    code: Any = "unavailable"
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class ScriptedCollector:
    """Every campaign has the same plan; lies change an answer in place before it is sent."""

    plan: Plan
    access: str = "invite"
    group: int = 2
    campaign_lie: Lie = lambda answer: None
    ticket_lie: Lie = lambda answer: None
    faults: dict[str, list[Fault]] = field(default_factory=dict)
    before_answer: Callable[[Request], object] = lambda request: None
    requests: list[Request] = field(default_factory=list)
    address: str = ""

    def routes(self) -> list[str]:
        """The routes of the protocol that were requested, in order."""
        return [request.route for request in self.protocol_requests()]

    def protocol_requests(self) -> list[Request]:
        """The requests that are not for pages."""
        return [request for request in self.requests if request.path.startswith("/v1/")]

    def sent(self, route: str) -> list[Request]:
        """The requests to one route."""
        return [request for request in self.protocol_requests() if request.route == route]

    def answer(self, request: Request) -> Body:
        """The right answer, or the lie."""
        campaign = request.path.split("/")[3]
        if request.route == "POST tickets":
            return self._ticket(campaign, request.json["tier"])
        if request.route == "POST reports":
            return {"status": "accepted"}
        answer = campaign_answer(self.plan, campaign, self.access)
        self.campaign_lie(answer)
        return answer

    def _ticket(self, campaign: str, tier: int) -> Body:
        group = self.group % len(self.plan.tier_groups(tier))
        answer = ticket_answer(self.plan, campaign, tier, group, f"ticket-for-{campaign}")
        self.ticket_lie(answer)
        return answer


class _Handler(BaseHTTPRequestHandler):
    """HTTP/1.0, a connection a request: a browser silently repeats requests on kept ones."""

    collector: ScriptedCollector

    def do_GET(self) -> None:
        request = self._record()
        if request.path.startswith("/v1/"):
            self._answer(request)
        elif request.path in ("/client.js", "/privacy-pass.js"):
            file = CLIENT.with_name(request.path[1:])
            self._send(200, file.read_bytes(), "text/javascript")
        elif request.path == "/":
            policy = {"Content-Security-Policy": CONTENT_SECURITY_POLICY}
            self._send(200, PAGE, "text/html", policy)
        else:
            self._send(404, b"", "text/plain")

    def do_POST(self) -> None:
        self._answer(self._record())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Tests look at the requests, not at a log."""

    def _record(self) -> Request:
        request = Request.received(self)
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
def serving(collector: ScriptedCollector) -> Iterator[ScriptedCollector]:
    """The collector at an address of its own, in a thread."""
    handler = type("Handler", (_Handler,), {"collector": collector})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    collector.address = f"http://127.0.0.1:{server.server_port}"
    with serving_in_thread(server):
        yield collector
