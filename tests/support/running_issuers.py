"""A real issuer for tests, in a thread of this process."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import uvicorn

from support.running_collectors import Reply
from support.token_holders import KeyHolder
from support.waiting import HANG_SECONDS, eventually
from unpoison.issuer.register import Register
from unpoison.issuer.server import listening_socket, web_config
from unpoison.issuer.service import TokenService
from unpoison.issuer.signing_keys import SigningKeys


@dataclass
class RunningIssuer:
    """An issuer on a port of this machine."""

    port: int
    register: Register
    holders: Sequence[KeyHolder]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def name(self) -> str:
        return f"127.0.0.1:{self.port}"

    def account(self) -> str:
        """The token of a new account."""
        return self.register.add_accounts(1)[0]

    def request(self, method: str, path: str, body: bytes | None = None, **headers: str) -> Reply:
        """Send one request on a new connection; underscores of headers stand for dashes."""
        named = {name.replace("_", "-"): text for name, text in headers.items()}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=HANG_SECONDS)
        try:
            connection.request(method, path, body, named)
            response = connection.getresponse()
            names = {name.lower(): text for name, text in response.getheaders()}
            return Reply(response.status, names, response.read())
        finally:
            connection.close()


@contextmanager
def running_issuer(
    holders: Sequence[KeyHolder],
    register: Path | None = None,
    tokens: int = 1,
    origins: Sequence[str] = (),
) -> Iterator[RunningIssuer]:
    """Serve from a thread of this process, over real sockets."""
    keys = SigningKeys([holder.private for holder in holders])
    with Register(register) as opened, listening_socket("127.0.0.1", 0) as listener:
        server = uvicorn.Server(web_config(TokenService(keys, opened, tokens), origins))
        thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
        thread.start()
        eventually(lambda: server.started)
        try:
            yield RunningIssuer(listener.getsockname()[1], opened, holders)
        finally:
            server.should_exit = True
            thread.join(HANG_SECONDS)
