"""Routes for devices: described like all others, served with less on the way.

Bodies are parsed and checked in one step, from bytes, and nothing is looked up that a device's
request does not need. That halves what a small request costs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import cache
from typing import Any, get_type_hints

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import ValidationError

from unpoison.collector.faults import Fault
from unpoison.collector.http.models import Body

LARGE = 2**18
Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class LeanRoute(APIRoute):
    """A route whose function takes the request, its path's parameters, and perhaps a body.

    >>> async def submit(request: Request, campaign: str) -> Response: ...
    >>> LeanRoute("/{campaign}", submit).methods
    {'GET'}
    """

    def get_route_handler(self) -> Handler:
        """Serve a request without FastAPI's own machinery."""
        function, body = self.endpoint, _body_model(self.endpoint)

        async def handle(request: Request) -> Response:
            if body is None:
                found = await function(request, **request.path_params)
            else:
                given = await _read(request, body)
                found = await function(request, given, **request.path_params)
            answer: Response = found
            return answer

        return handle


@cache
def _body_model(function: Callable[..., Any]) -> type[Body] | None:
    kind = get_type_hints(function).get("body")
    return kind if isinstance(kind, type) and issubclass(kind, Body) else None


async def _read(request: Request, model: type[Body]) -> Body:
    """A large body is parsed beside the event loop, and only one at a time."""
    body = await request.body()
    if len(body) <= LARGE:
        return _parsed(model, body)
    async with request.app.state.collector.one_large_body:
        return await asyncio.to_thread(_parsed, model, body)


def _parsed(model: type[Body], body: bytes) -> Body:
    """The body, or FastAPI's own error about it.

    Every key has a colon, and no text that a device may send has one. So what has too many of
    them is refused unread: each unknown key would cost an error of its own.
    """
    if body.count(b":") > model.most_keys:
        raise Fault("invalid-request", "The body has too many keys.")
    try:
        return model.model_validate_json(body)
    except ValidationError as fault:
        errors = fault.errors(include_url=False, include_context=False, include_input=False)
        raise RequestValidationError(
            [{**each, "loc": ("body", *each["loc"])} for each in errors]
        ) from None
