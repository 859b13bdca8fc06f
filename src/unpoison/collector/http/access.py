"""Who asks: the address, and whether it is an operator."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from unpoison.collector.faults import Fault
from unpoison.collector.service.collector import Collector

bearer = HTTPBearer(auto_error=False, description="The operator's token.")
Token = Annotated[HTTPAuthorizationCredentials | None, Depends(bearer)]


async def collector_of(request: Request) -> Collector:
    """The collector behind a request.

    >>> import asyncio
    >>> from types import SimpleNamespace
    >>> application = SimpleNamespace(state=SimpleNamespace(collector="the collector"))
    >>> asyncio.run(collector_of(Request({"type": "http", "app": application})))
    'the collector'
    """
    found: Collector = request.app.state.collector
    return found


Service = Annotated[Collector, Depends(collector_of)]


def address_of(request: Request) -> str:
    """Where a request comes from.

    >>> address_of(Request({"type": "http", "client": ("192.0.2.1", 443)}))
    '192.0.2.1'
    """
    return request.client.host if request.client else "unknown"


async def need_operator(request: Request, collector: Service, token: Token) -> None:
    """Let only operators through; wrong tokens are counted against their address.

    The right one is always let through: whoever shares the operator's address locks nobody out.

    >>> import asyncio
    >>> asyncio.run(need_operator(Request({"type": "http"}), None, token=None))
    Traceback (most recent call last):
        ...
    unpoison.collector.faults.Fault: This needs the operator's token.
    """
    if token is not None:
        if await collector.is_operator(token.credentials):
            return
        collector.wrong_tokens.take(address_of(request))
    raise Fault("unauthorized")


async def need_reader(request: Request, collector: Service, token: Token) -> None:
    """Let operators through, or everybody if the collector is public.

    >>> import asyncio
    >>> from types import SimpleNamespace
    >>> public = SimpleNamespace(settings=SimpleNamespace(public=True))
    >>> asyncio.run(need_reader(Request({"type": "http"}), public, token=None))
    """
    if not collector.settings.public:
        await need_operator(request, collector, token)
