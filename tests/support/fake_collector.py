"""A collector for tests of the Python client: honest, until a test gives it lies or faults."""

from __future__ import annotations

import json
import socket
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from support.collector_protocol import (
    Body,
    Request,
    campaign_answer,
    serving_in_thread,
    ticket_answer,
)
from unpoison import Plan
from unpoison.client import Response

CAMPAIGN = "k3v9x2m4q7w1"
RESOURCES = ("campaign", "tickets", "reports")
Lie = Callable[[Body], Any]


@dataclass(frozen=True)
class Fault:
    """How a request fails: it is processed or not, then answered by these bytes or not at all."""

    raw: bytes = b""
    processed: bool = True


ANSWER_LOST = Fault()
NOT_RECEIVED = Fault(processed=False)


def status(code: int, body: object = None, **headers: str) -> Fault:
    """An answer in the place of the right one; the request is not processed."""
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    return Fault(raw(code, body, named), processed=False)


def refusal(code: int, cause: str) -> Fault:
    return status(code, {"error": {"code": cause, "message": "One sentence."}})


def raw(code: int, body: object, headers: dict[str, str] | None = None) -> bytes:
    """The bytes of an HTTP response."""
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"HTTP/1.1 {code} Reason", f"Content-Length: {len(text)}"]
    lines += [f"{name}: {text}" for name, text in (headers or {}).items()]
    return "\r\n".join([*lines, "", ""]).encode() + text


class HonestCollector:
    """The answers of a collector that does not lie; `exchange` gives them without a network."""

    def __init__(self, plan: Plan, access: str = "open", group: int = -1) -> None:
        self.plan, self.access, self.group = plan, access, group
        self.accepted: dict[str, list[int]] = {}
        self.tickets = 0

    def exchange(self, method: str, path: str, body: bytes | None = None) -> Response:
        request = json.loads(body or b"{}")
        return Response(200, json.dumps(self.answer(path, request)).encode())

    def answer(self, path: str, request: Body) -> Body:
        """The right answer to a request."""
        answers = {"campaign": self._campaign, "tickets": self._ticket, "reports": self._report}
        return answers[resource_of(path)](request)

    def _campaign(self, request: Body) -> Body:
        return campaign_answer(self.plan, CAMPAIGN, self.access)

    def _ticket(self, request: Body) -> Body:
        self.tickets += 1
        name = f"ticket {self.tickets}"
        answer = ticket_answer(self.plan, CAMPAIGN, request["tier"], self.group, name)
        # The order of a user's groups is the collector's choice: a device must keep to it.
        return {**answer, "groups": answer["groups"][::-1]}

    def _report(self, request: Body) -> Body:
        values = self.accepted.setdefault(request["device"], request["values"])
        if values != request["values"]:
            return {"error": {"code": "ticket-used", "message": "It has been used."}}
        return {"status": "accepted"}


def resource_of(path: str) -> str:
    """Which of the three resources a path names."""
    last = path.rpartition("/")[2]
    return last if last in RESOURCES[1:] else "campaign"


class FakeCollector(HonestCollector):
    """Runs in threads of its own. `lies` change its answers, `faults` hit its next requests."""

    def __init__(self, plan: Plan, access: str = "open") -> None:
        super().__init__(plan, access)
        self.requests: list[Request] = []
        self.lies: dict[str, Lie] = {}
        self.faults: dict[str, deque[Fault]] = {resource: deque() for resource in RESOURCES}
        self.server = _Server(("127.0.0.1", 0), _handler(self))
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self._running = ExitStack()

    def __enter__(self) -> FakeCollector:
        self._running.enter_context(serving_in_thread(self.server))
        return self

    def __exit__(self, *_: object) -> None:
        self._running.close()

    def sent(self, resource: str) -> list[Request]:
        """The requests to one resource."""
        return [request for request in self.requests if resource_of(request.path) == resource]

    def respond(self, request: Request) -> bytes:
        """Process a request, unless it fails; returns the bytes of the response."""
        self.requests.append(request)
        resource = resource_of(request.path)
        fault = self.faults[resource].popleft() if self.faults[resource] else None
        if fault is not None and not fault.processed:
            return fault.raw
        answer: Any = self.answer(request.path, request.json)
        if resource in self.lies:
            answer = self.lies[resource](answer)
        if fault is not None:
            return fault.raw
        return raw(409 if isinstance(answer, dict) and "error" in answer else 200, answer)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A device that hangs up is no fault."""


def _handler(collector: FakeCollector) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        # HTTP/1.1 keeps connections, and a buffer sends each response in one piece.
        protocol_version = "HTTP/1.1"
        wbufsize = -1

        def do_GET(self) -> None:
            self._send(collector.respond(Request.received(self)))

        def do_POST(self) -> None:
            self.do_GET()

        def _send(self, response: bytes) -> None:
            if response:
                self.wfile.write(response)
                self.wfile.flush()
            else:
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)

        def log_message(self, *_: object) -> None:
            """Tests look at the requests, not at a log."""

    return Handler
