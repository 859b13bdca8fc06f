"""A collector for tests of the client: it answers as it should, until it is told to lie or fail."""

from __future__ import annotations

import json
import socket
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from unpoison import Plan
from unpoison.client import Response

CAMPAIGN = "k3v9x2m4q7w1"
Lie = Callable[[dict[str, Any]], Any]


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    connection: int

    @property
    def json(self) -> Any:
        return json.loads(self.body or b"{}")


@dataclass(frozen=True)
class Fault:
    """What happens to a request: it is done or not, then answered by these bytes or not at all."""

    raw: bytes = b""
    done: bool = True


LOST = Fault()
UNHEARD = Fault(done=False)


def status(code: int, body: object = None, **headers: str) -> Fault:
    """An answer in place of the true one, which is not even worked out."""
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    return Fault(raw(code, body, named), done=False)


def refusal(code: int, cause: str) -> Fault:
    return status(code, {"error": {"code": cause, "message": "One sentence."}})


def raw(code: int, body: object, headers: dict[str, str] | None = None) -> bytes:
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"HTTP/1.1 {code} Said", f"Content-Length: {len(text)}"]
    lines += [f"{name}: {text}" for name, text in (headers or {}).items()]
    return "\r\n".join([*lines, "", ""]).encode() + text


class Honest:
    """What a collector says that does not lie; `exchange` says it without a network."""

    def __init__(self, plan: Plan, access: str = "open", group: int | None = None) -> None:
        self.plan, self.access, self.group = plan, access, group
        self.accepted: dict[str, list[int]] = {}
        self.tickets = 0

    def exchange(self, method: str, path: str, body: bytes | None = None) -> Response:
        wish = json.loads(body or b"{}")
        return Response(200, json.dumps(self.answer(path, wish)).encode())

    def answer(self, path: str, wish: dict[str, Any]) -> dict[str, Any]:
        """What is said to a request."""
        return {"campaign": self._campaign, "tickets": self._ticket, "reports": self._report}[
            kind_of(path)
        ](wish)

    def _campaign(self, wish: dict[str, Any]) -> dict[str, Any]:
        return {
            "id": CAMPAIGN,
            "name": "Ride starts",
            "state": "open",
            "access": self.access,
            "plan": self.plan.to_dict(),
            "fingerprint": self.plan.fingerprint,
            "closes_at": None,
        }

    def _ticket(self, wish: dict[str, Any]) -> dict[str, Any]:
        self.tickets += 1
        return {
            "ticket": f"ticket {self.tickets}",
            "campaign": CAMPAIGN,
            "fingerprint": self.plan.fingerprint,
            "tier": wish["tier"],
            "groups": [
                {"group": group, "reports": self.plan.all_groups[group].reports}
                for group in self._groups(wish["tier"])
            ],
            "expires_at": "2026-01-31T12:00:00Z",
        }

    def _groups(self, tier: int) -> list[int]:
        known = list(self.plan.tier_groups(tier))
        if self.plan.protocol == "baseline":
            return known[::-1]
        return known[-1:] if self.group is None else [known[self.group]]

    def _report(self, wish: dict[str, Any]) -> dict[str, Any]:
        values = self.accepted.setdefault(wish["device"], wish["values"])
        if values != wish["values"]:
            return {"error": {"code": "ticket-used", "message": "It has been used."}}
        return {"status": "accepted"}


def kind_of(path: str) -> str:
    last = path.rpartition("/")[2]
    return last if last in ("tickets", "reports") else "campaign"


class FakeCollector(Honest):
    """Runs in threads of its own. `lies` change its answers, `faults` its next requests."""

    def __init__(self, plan: Plan, access: str = "open") -> None:
        super().__init__(plan, access)
        self.requests: list[Request] = []
        self.lies: dict[str, Lie] = {}
        self.faults: dict[str, deque[Fault]] = {
            kind: deque() for kind in ("campaign", "tickets", "reports")
        }
        self.server = _Server(("127.0.0.1", 0), _handler(self))
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))

    def __enter__(self) -> FakeCollector:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    def sent(self, kind: str) -> list[Request]:
        """The requests of one kind."""
        return [each for each in self.requests if kind_of(each.path) == kind]

    def heard(self, request: Request) -> bytes:
        """What is done for a request, and said to it."""
        self.requests.append(request)
        kind = kind_of(request.path)
        fault = self.faults[kind].popleft() if self.faults[kind] else None
        if fault is not None and not fault.done:
            return fault.raw
        said = self.answer(request.path, request.json)
        if kind in self.lies:
            said = self.lies[kind](said)
        if fault is not None:
            return fault.raw
        return raw(409 if isinstance(said, dict) and "error" in said else 200, said)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A device that hangs up is no fault."""


def _handler(collector: FakeCollector) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1

        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            port = self.client_address[1]
            request = Request(self.command, self.path, dict(self.headers), body, port)
            self._say(collector.heard(request))

        def do_POST(self) -> None:
            self.do_GET()

        def _say(self, said: bytes) -> None:
            if said:
                self.wfile.write(said)
                self.wfile.flush()
            else:
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)

        def log_message(self, *_: object) -> None:
            """Quiet."""

    return Handler
