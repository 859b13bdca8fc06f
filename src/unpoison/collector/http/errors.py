"""Errors as responses: one JSON shape for all, and none repeats what the client sent."""

from __future__ import annotations

import json
from typing import Any

from fastapi import FastAPI, Request
from fastapi.encoders import jsonable_encoder
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from unpoison.collector.faults import CAUSES, Fault
from unpoison.collector.http.models import ErrorBody

CODE_BY_STATUS = {404: "not-found", 405: "method-not-allowed"}
"""Our codes for errors that the framework raises; any other status is `invalid-request`."""
ERROR_CONTENT = {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorBody"}}}
"""The body of every refusal, by the name of its model: FastAPI would build a validator for each
refusal of each route, a hundred of them, which nothing uses. `describe_errors` adds the model."""
BODY_CODES = ("too-slow", "too-large", "unsupported-media-type")
"""Refusals of every route that takes a body; the guard makes them."""


def refusal(fault: Fault) -> JSONResponse:
    """A fault as a response.

    >>> refusal(Fault("rate-limited")).headers["retry-after"]
    '60'
    """
    return JSONResponse(fault.body(), fault.status, headers=fault.headers)


def closing_response(fault: Fault) -> tuple[list[tuple[bytes, bytes]], bytes]:
    """The headers and the body of a refusal after which the connection is closed.

    >>> headers, body = closing_response(Fault("too-slow"))
    >>> dict(headers)[b"connection"], json.loads(body)["error"]["code"]
    (b'close', 'too-slow')
    """
    body = json.dumps(fault.body()).encode()
    headers = {
        "content-type": "application/json",
        "content-length": str(len(body)),
        "connection": "close",
        **{name.lower(): text for name, text in fault.headers.items()},
    }
    return [(name.encode(), text.encode()) for name, text in headers.items()], body


def validation_fault(error: RequestValidationError) -> Fault:
    """The first error in a body or a parameter, by its place and rule and without its value.

    >>> details = [{"type": "missing", "loc": ("body", "values"), "msg": "Field required"}]
    >>> validation_fault(RequestValidationError(details)).error
    {'code': 'invalid-request', 'message': 'values: Field required.', 'field': 'values'}
    """
    first: dict[str, Any] = error.errors()[0]
    if first["type"] == "json_invalid":
        return Fault("invalid-request", "The body is not JSON.", status=400)
    # The first part says "body" or "query"; the last part of an unknown key is the client's text.
    location = first["loc"][1:-1] if first["type"] == "extra_forbidden" else first["loc"][1:]
    field = ".".join(str(part) for part in location)
    message = f"{field}: {first['msg']}." if field else f"{first['msg']}."
    return Fault("invalid-request", message, field or None)


def add_handlers(application: FastAPI) -> None:
    """Make an application answer all errors in this shape.

    >>> add_handlers(FastAPI())
    """

    async def respond(request: Request, error: Exception) -> JSONResponse:
        # The guard reads it from here, for metrics, logs and the count of rejections.
        fault = request.scope["fault"] = error if isinstance(error, Fault) else _fault(error)
        response = refusal(fault)
        if isinstance(error, HTTPException):
            response.headers.update(error.headers or {})
        return response

    for kind in (Fault, RequestValidationError, HTTPException, Exception):
        application.add_exception_handler(kind, respond)


def _fault(error: Exception) -> Fault:
    """An error of the framework as a fault, with our message instead of the framework's."""
    if isinstance(error, RequestValidationError):
        return validation_fault(error)
    if not isinstance(error, HTTPException):
        return Fault("internal")
    status = error.status_code
    code = CODE_BY_STATUS.get(status, "invalid-request")
    message = "The body is not JSON." if status == 400 else CAUSES[code][1]
    return Fault(code, message, status=status)


def responses(*codes: str) -> dict[int | str, dict[str, Any]]:
    """The refusals of a route, for its OpenAPI description.

    >>> list(responses("ticket-used"))
    [409]
    """
    described: dict[int | str, dict[str, Any]] = {}
    if "invalid-request" in codes:
        described[400] = {"content": ERROR_CONTENT, "description": "invalid-request (no JSON)"}
        codes += BODY_CODES
    for code in codes:
        status = CAUSES[code][0]
        codes_so_far = described.get(status, {}).get("description", "")
        text = f"{codes_so_far}, {code}" if codes_so_far else code
        described[status] = {"content": ERROR_CONTENT, "description": text}
    return described


def describe_errors(description: dict[str, Any]) -> dict[str, Any]:
    """An OpenAPI description with the model of error bodies, which `responses` names.

    >>> described = describe_errors({"paths": {}, "components": {"schemas": {"Invites": {}}}})
    >>> list(described["components"]["schemas"])
    ['ErrorBody', 'ErrorDetail', 'Invites']
    """
    error = ErrorBody.model_json_schema(
        ref_template="#/components/schemas/{model}", mode="serialization"
    )
    components = description["components"]
    ours = {**error.pop("$defs"), "ErrorBody": error}
    # FastAPI leaves out defaults that are null, too.
    schemas = {**components["schemas"], **jsonable_encoder(ours, exclude_none=True)}
    return {**description, "components": {**components, "schemas": dict(sorted(schemas.items()))}}
