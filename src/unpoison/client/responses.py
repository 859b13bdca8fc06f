"""Responses of a collector: bounded in size, parsed strictly, trusted in nothing."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, TypeVar

from unpoison.errors import CollectorNotTrusted, CollectorRefused
from unpoison.plan.form import once_each

MAX_RESPONSE_BYTES = 4 * 2**20
"""The longest body that is read. The largest honest one is a plan with many categories."""
MAX_EXCERPT = 300
"""The most characters of a collector's own text that a message of ours repeats: a few lines."""
OK = 200
"""HTTP status of every request that the routes of devices grant."""
FIRST_REDIRECT, FIRST_ERROR = 300, 400
"""Statuses from the first up to the second are redirects, from the second on errors (RFC 9110)."""

Kind = TypeVar("Kind")


@dataclass(frozen=True)
class Response:
    """Status and body of a response, and the seconds of its Retry-After header, if any.

    >>> Response(200, b'{"status": "accepted"}').status
    200
    """

    status: int
    body: bytes
    retry_after: float | None = None


def decode_response(response: Response) -> dict[str, Any]:
    """The JSON object of a response with status 200; everything else is an error.

    >>> decode_response(Response(200, b'{"status": "accepted"}'))
    {'status': 'accepted'}
    >>> decode_response(
    ...     Response(409, b'{"error": {"code": "ticket-used", "message": "It has been used."}}')
    ... )
    Traceback (most recent call last):
        ...
    unpoison.errors.CollectorRefused: the collector refused (409 ticket-used): It has been used.
    """
    if FIRST_REDIRECT <= response.status < FIRST_ERROR:
        raise CollectorNotTrusted(f"status {response.status}: a redirect, which is not followed")
    body = _json_object(response)
    if response.status >= FIRST_ERROR:
        raise _refusal(response.status, body)
    if response.status != OK:
        raise CollectorNotTrusted(f"status {response.status} is none that a collector answers with")
    return body


def required_member(body: dict[str, Any], key: str, kind: type[Kind]) -> Kind:
    """A member of a JSON object, of exactly that type.

    >>> required_member({"tier": 0}, "tier", int)
    0
    >>> required_member({"tier": True}, "tier", int)
    Traceback (most recent call last):
        ...
    unpoison.errors.CollectorNotTrusted: the answer's 'tier' must be int, not bool
    """
    if key not in body:
        raise CollectorNotTrusted(f"the answer has no {key!r}")
    value = body[key]
    # isinstance would let True pass as the tier 1.
    if type(value) is not kind:
        names = f"{kind.__name__}, not {type(value).__name__}"
        raise CollectorNotTrusted(f"the answer's {key!r} must be {names}")
    return value


def printable_excerpt(text: object) -> str:
    """Text of a collector, shortened and in one line, so that it may stand in a message.

    Control characters become question marks: a collector must not move a terminal's cursor.

    >>> printable_excerpt("all is \\x1b[31m well" + 1000 * "!")[:20]
    'all is ?[31m well!!!'
    """
    characters = str(text)[:MAX_EXCERPT]
    line = "".join(character if character.isprintable() else "?" for character in characters)
    return line + "…" if len(str(text)) > MAX_EXCERPT else line


def _json_object(response: Response) -> dict[str, Any]:
    if len(response.body) > MAX_RESPONSE_BYTES:
        raise CollectorNotTrusted(f"the answer is longer than {MAX_RESPONSE_BYTES} bytes")
    try:
        # Python's parser would take NaN, and of a repeated key the last value.
        body = json.loads(
            response.body, parse_constant=_refuse_constant, object_pairs_hook=once_each
        )
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict):
        raise CollectorNotTrusted(f"the answer with status {response.status} is not a JSON object")
    return body


def _refuse_constant(constant: str) -> None:
    raise ValueError(constant)


def _refusal(status: int, body: dict[str, Any]) -> CollectorRefused:
    error = required_member(body, "error", dict)
    code, message = required_member(error, "code", str), required_member(error, "message", str)
    return CollectorRefused(status, printable_excerpt(code), printable_excerpt(message))
