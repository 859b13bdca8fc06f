"""What the fake collectors have in common: recorded requests, honest answers, a server's thread."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from unpoison import Plan

Body = dict[str, Any]
POLL_SECONDS = 0.01
"""How often a server looks whether it shall stop; by default a test would wait half a second."""


@dataclass(frozen=True)
class Request:
    """A request as it was received; `connection` is the client's port, one for each connection."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    connection: int

    @classmethod
    def received(cls, handler: BaseHTTPRequestHandler) -> Request:
        """The request that a handler of `http.server` is at."""
        body = handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
        port = handler.client_address[1]
        return cls(handler.command, handler.path, dict(handler.headers), body, port)

    @property
    def json(self) -> Body:
        body: Body = json.loads(self.body or b"{}")
        return body

    @property
    def route(self) -> str:
        """The method with the last part of the path: `POST tickets`."""
        return f"{self.method} {self.path.rsplit('/', 1)[-1]}"


def campaign_answer(plan: Plan, campaign: str, access: str) -> Body:
    """What an honest collector says of a campaign."""
    return {
        "id": campaign,
        "name": "Ride starts",
        "state": "open",
        "access": access,
        "plan": plan.to_dict(),
        "fingerprint": plan.fingerprint,
        "closes_at": None,
    }


def ticket_answer(plan: Plan, campaign: str, tier: int, group: int, ticket: str) -> Body:
    """The ticket of a user of the tier's `group`, counted as in a list: -1 is the last."""
    groups = plan.groups_of_user(plan.tier_groups(tier)[group])
    return {
        "ticket": ticket,
        "campaign": campaign,
        "fingerprint": plan.fingerprint,
        "tier": tier,
        "groups": [
            {"group": number, "reports": plan.all_groups[number].reports} for number in groups
        ],
        "expires_at": "2036-01-31T12:00:00Z",
    }


@contextmanager
def serving_in_thread(server: ThreadingHTTPServer) -> Iterator[None]:
    """Let a server run until the block ends."""
    thread = threading.Thread(target=server.serve_forever, args=(POLL_SECONDS,))
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
