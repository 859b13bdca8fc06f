"""The operator's side: a token in hand, one request at a time."""

from __future__ import annotations

import json
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any

from unpoison.client.address import Address
from unpoison.client.responses import Answer, decoded, shown
from unpoison.errors import CollectorRefused, CollectorUnreachable, InvalidParameter

TIMEOUT = 120.0
GOOD = range(200, 300)


class Operator:
    """Asks a collector on behalf of its operator.

    Nothing is tried twice by itself: to create a campaign twice would make two.

    >>> Operator("http://collector.example", "token")
    Traceback (most recent call last):
        ...
    unpoison.errors.InvalidParameter: collector must be https:// unless insecure; received http://...
    """

    def __init__(self, collector: str, token: str, *, insecure: bool = False) -> None:
        self.address = Address.trusted(collector, insecure)
        if not (token.isascii() and token.isprintable() and " " not in token):
            raise InvalidParameter("token", "must be letters, digits and signs", "others")
        self.token = token

    def get(self, path: str) -> dict[str, Any]:
        """The JSON object at a path."""
        return self._object("GET", path)

    def post(self, path: str, body: Any = None) -> dict[str, Any]:
        """What the collector answers to a JSON object."""
        return self._object("POST", path, body)

    def delete(self, path: str) -> None:
        """Delete what is at a path."""
        self._good("DELETE", path)

    def download(self, path: str) -> bytes:
        """The file at a path."""
        return self._good("GET", path).body

    def _object(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        return decoded(Answer(200, self._good(method, path, body).body))

    def _good(self, method: str, path: str, body: Any = None) -> Answer:
        """An answer that is no refusal."""
        try:
            answer = self._asked(method, path, body)
        except (OSError, HTTPException) as fault:
            reason = shown(fault) or type(fault).__name__
            raise CollectorUnreachable(str(self.address), 1, reason) from None
        if answer.status not in GOOD:
            decoded(answer)
            raise CollectorRefused(answer.status, "unknown", "an answer that makes no sense")
        return answer

    def _asked(self, method: str, path: str, body: Any) -> Answer:
        headers = {"Authorization": f"Bearer {self.token}"}
        data = None if body is None else json.dumps(body).encode()
        if data is not None:
            headers["Content-Type"] = "application/json"
        kind = HTTPSConnection if self.address.secure else HTTPConnection
        connection = kind(self.address.host, self.address.port, timeout=TIMEOUT)
        try:
            connection.request(method, self.address.prefix + path, data, headers)
            with connection.getresponse() as response:
                return Answer(response.status, response.read())
        finally:
            connection.close()
