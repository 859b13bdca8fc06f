"""A receiver of webhooks on this machine, which remembers what it got."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Delivery:
    """A request as it came: headers with names in lower case, and the body."""

    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class WebhookReceiver:
    """What arrived, and with which status and headers the next request is answered."""

    port: int = 0
    status: int = 204
    answer_headers: dict[str, str] = field(default_factory=dict)
    taken: list[Delivery] = field(default_factory=list)
    refused: list[Delivery] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/alarms"

    @property
    def states(self) -> list[tuple[str, str]]:
        """Rule and state of all messages that were taken."""
        return [(delivery.json["rule"], delivery.json["state"]) for delivery in self.taken]


@contextmanager
def webhook_receiver() -> Iterator[WebhookReceiver]:
    """Run a receiver in a thread during the block."""
    receiver = WebhookReceiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {name.lower(): text for name, text in self.headers.items()}
            success = receiver.status < 300
            (receiver.taken if success else receiver.refused).append(Delivery(headers, body))
            self.send_response(receiver.status)
            for name, text in receiver.answer_headers.items():
                self.send_header(name, text)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    receiver.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
