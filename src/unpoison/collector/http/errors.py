"""Every error leaves in one shape, and none repeats what came in."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from unpoison.collector.faults import CAUSES, Fault

BY_STATUS = {404: "not-found", 405: "method-not-allowed"}
OF_BODIES = ("too-slow", "too-large", "unsupported-media-type")
"""What can be wrong with a body before it is looked at."""


def refusal(fault: Fault) -> JSONResponse:
    """A fault as an answer.

    >>> refusal(Fault("rate-limited")).headers["retry-after"]
    '60'
    """
    return JSONResponse(fault.body(), fault.status, headers=fault.headers)


def validation_fault(fault: RequestValidationError) -> Fault:
    """The first thing that is wrong with a body or a parameter, without what it was.

    >>> said = [{"type": "missing", "loc": ("body", "values"), "msg": "Field required"}]
    >>> validation_fault(RequestValidationError(said)).error
    {'code': 'invalid-request', 'message': 'values: Field required.', 'field': 'values'}
    """
    first: dict[str, Any] = fault.errors()[0]
    if first["type"] == "json_invalid":
        return Fault("invalid-request", "The body is not JSON.", status=400)
    known = first["loc"][1:-1] if first["type"] == "extra_forbidden" else first["loc"][1:]
    field = ".".join(str(part) for part in known)
    message = f"{field}: {first['msg']}." if field else f"{first['msg']}."
    return Fault("invalid-request", message, field or None)


def add_handlers(application: FastAPI) -> None:
    """Make an application answer in this shape.

    >>> add_handlers(FastAPI())
    """

    async def told(request: Request, fault: Exception) -> JSONResponse:
        request.scope["fault"] = fault if isinstance(fault, Fault) else _fault(fault)
        answer = refusal(request.scope["fault"])
        if isinstance(fault, HTTPException):
            answer.headers.update(fault.headers or {})
        return answer

    application.add_exception_handler(Fault, told)
    application.add_exception_handler(RequestValidationError, told)
    application.add_exception_handler(HTTPException, told)
    application.add_exception_handler(Exception, told)


def _fault(fault: Exception) -> Fault:
    """What the framework says, in our words."""
    if isinstance(fault, RequestValidationError):
        return validation_fault(fault)
    if not isinstance(fault, HTTPException):
        return Fault("internal")
    status = fault.status_code
    code = BY_STATUS.get(status, "invalid-request")
    message = "The body is not JSON." if status == 400 else CAUSES[code][1]
    return Fault(code, message, status=status)


def responses(*codes: str) -> dict[int | str, dict[str, Any]]:
    """What a route's description says of its refusals.

    >>> list(responses("ticket-used"))
    [409]
    """
    from unpoison.collector.http.models import ErrorBody

    found: dict[int | str, dict[str, Any]] = {}
    if "invalid-request" in codes:
        found[400] = {"model": ErrorBody, "description": "invalid-request (no JSON)"}
        codes += OF_BODIES
    for code in codes:
        status = CAUSES[code][0]
        known = found.get(status, {}).get("description", "")
        text = f"{known}, {code}" if known else code
        found[status] = {"model": ErrorBody, "description": text}
    return found
