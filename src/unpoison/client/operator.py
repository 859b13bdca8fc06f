"""The operator's client: requests with a token to the routes of a collector's operator."""

from __future__ import annotations

import json
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any
from urllib.parse import urlencode

from unpoison.client.address import Address
from unpoison.client.responses import (
    Response,
    decode_response,
    printable_excerpt,
    required_member,
)
from unpoison.errors import CollectorRefused, CollectorUnreachable, InvalidParameter

TIMEOUT = 120.0
"""Seconds for an answer. Estimates of a large campaign and downloads of its reports take a while,
and unlike a device an operator is waiting for them."""
PAGE = 500
"""Campaigns of a page: the most that a collector gives."""
SUCCESS = range(200, 300)
"""The HTTP statuses that are no errors and no redirections."""


class Operator:
    """Sends requests to a collector on behalf of its operator.

    Nothing is retried: to send the creation of a campaign twice could make two. Downloads are not
    bounded in length: the collector is the operator's own.

    >>> Operator("http://collector.example", "token")
    Traceback (most recent call last):
        ...
    unpoison.errors.InvalidParameter: collector must be https:// unless insecure; received http://...
    """

    def __init__(self, collector: str, token: str, *, insecure: bool = False) -> None:
        self.address = Address.parse_for_secrets(collector, insecure)
        # The token becomes a header: a line break in it would begin another one.
        if not (token.isascii() and token.isprintable() and " " not in token):
            raise InvalidParameter("token", "must be letters, digits and signs", "others")
        self.token = token

    def get(self, path: str) -> dict[str, Any]:
        """The JSON object at a path."""
        return self._json_object("GET", path)

    def campaigns(
        self, search: str | None = None, state: str | None = None
    ) -> list[dict[str, Any]]:
        """All campaigns, newest first, page after page; those with a text in their names."""
        query = {"limit": PAGE, "search": search, "state": state, "after": None}
        listed: list[dict[str, Any]] = []
        while True:
            given = {name: value for name, value in query.items() if value is not None}
            page = self.get(f"/v1/campaigns?{urlencode(given)}")
            listed += required_member(page, "campaigns", list)
            query["after"] = page.get("next")
            if query["after"] is None:
                return listed

    def post(self, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        """Send a JSON object; returns the one that the collector answers."""
        return self._json_object("POST", path, body)

    def put(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Replace what is at a path by a JSON object; returns what the collector answers."""
        return self._json_object("PUT", path, body)

    def delete(self, path: str) -> None:
        """Delete the resource at a path."""
        self._successful("DELETE", path)

    def download(self, path: str) -> bytes:
        """The file at a path."""
        return self._successful("GET", path).body

    def _json_object(
        self, method: str, path: str, body: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        # A campaign is created with status 201, which decode_response would refuse.
        return decode_response(Response(200, self._successful(method, path, body).body))

    def _successful(self, method: str, path: str, body: dict[str, Any] | None = None) -> Response:
        """A response with a status of success; any other is an error."""
        try:
            response = self._send(method, path, body)
        except (OSError, HTTPException) as fault:
            reason = printable_excerpt(fault) or type(fault).__name__
            raise CollectorUnreachable(str(self.address), 1, reason) from None
        if response.status not in SUCCESS:
            decode_response(response)
            raise CollectorRefused(response.status, "unknown", "an answer that makes no sense")
        return response

    def _send(self, method: str, path: str, body: dict[str, Any] | None) -> Response:
        headers = {"Authorization": f"Bearer {self.token}"}
        data = None if body is None else json.dumps(body).encode()
        if data is not None:
            headers["Content-Type"] = "application/json"
        connection_class = HTTPSConnection if self.address.secure else HTTPConnection
        connection = connection_class(self.address.host, self.address.port, timeout=TIMEOUT)
        try:
            connection.request(method, self.address.prefix + path, data, headers)
            with connection.getresponse() as response:
                return Response(response.status, response.read())
        finally:
            connection.close()
