"""What a collector answers: bounded, parsed with suspicion, never trusted."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, TypeVar

from unpoison.errors import CollectorNotTrusted, CollectorRefused
from unpoison.plan.form import once_each

MAX_ANSWER = 4 * 2**20
"""The most bytes of an answer that a device reads."""
MAX_SHOWN = 300
OK = 200
FIRST_REDIRECT, FIRST_ERROR = 300, 400

Kind = TypeVar("Kind")


@dataclass(frozen=True)
class Answer:
    """A status, a body, and how many seconds to stay away if the collector says so.

    >>> Answer(200, b'{"status": "accepted"}').status
    200
    """

    status: int
    body: bytes
    retry_after: float | None = None


def decoded(answer: Answer) -> dict[str, Any]:
    """The JSON object of a good answer; a refusal, a redirect and nonsense are errors.

    >>> decoded(Answer(200, b'{"status": "accepted"}'))
    {'status': 'accepted'}
    >>> decoded(Answer(409, b'{"error": {"code": "ticket-used", "message": "It has been used."}}'))
    Traceback (most recent call last):
        ...
    unpoison.errors.CollectorRefused: the collector refused (409 ticket-used): It has been used.
    """
    if FIRST_REDIRECT <= answer.status < FIRST_ERROR:
        raise CollectorNotTrusted(f"status {answer.status}: a redirect, which is not followed")
    found = _parsed(answer)
    if answer.status >= FIRST_ERROR:
        raise _refusal(answer.status, found)
    if answer.status != OK:
        raise CollectorNotTrusted(f"status {answer.status} is none that a collector answers with")
    return found


def member(answer: dict[str, Any], key: str, kind: type[Kind]) -> Kind:
    """A member of an answer, of exactly that type.

    >>> member({"tier": 0}, "tier", int)
    0
    >>> member({"tier": True}, "tier", int)
    Traceback (most recent call last):
        ...
    unpoison.errors.CollectorNotTrusted: the answer's 'tier' must be int, not bool
    """
    if key not in answer:
        raise CollectorNotTrusted(f"the answer has no {key!r}")
    found = answer[key]
    if type(found) is not kind:
        names = f"{kind.__name__}, not {type(found).__name__}"
        raise CollectorNotTrusted(f"the answer's {key!r} must be {names}")
    return found


def shown(text: object) -> str:
    """Foreign text, short and in one line, so that it can stand in a message.

    >>> shown("all is \\x1b[31m well" + 1000 * "!")[:20]
    'all is ?[31m well!!!'
    """
    line = "".join(letter if letter.isprintable() else "?" for letter in str(text)[:MAX_SHOWN])
    return line + "…" if len(str(text)) > MAX_SHOWN else line


def _parsed(answer: Answer) -> dict[str, Any]:
    if len(answer.body) > MAX_ANSWER:
        raise CollectorNotTrusted(f"the answer is longer than {MAX_ANSWER} bytes")
    try:
        found = json.loads(answer.body, parse_constant=_refused, object_pairs_hook=once_each)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise CollectorNotTrusted(f"the answer with status {answer.status} is not a JSON object")
    return found


def _refused(constant: str) -> None:
    raise ValueError(constant)


def _refusal(status: int, answer: dict[str, Any]) -> CollectorRefused:
    error = member(answer, "error", dict)
    code, message = member(error, "code", str), member(error, "message", str)
    return CollectorRefused(status, shown(code), shown(message))
