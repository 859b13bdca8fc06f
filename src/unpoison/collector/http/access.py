"""Authentication: a request's address, and whether it carries an operator's token."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from unpoison.collector.faults import Fault
from unpoison.collector.service.collector import Collector
from unpoison.collector.storage.operator_tokens import Operator

bearer = HTTPBearer(auto_error=False, description="The operator's token.")
Token = Annotated[HTTPAuthorizationCredentials | None, Depends(bearer)]


async def collector_of(request: Request) -> Collector:
    """The collector that serves a request.

    >>> import asyncio
    >>> from types import SimpleNamespace
    >>> application = SimpleNamespace(state=SimpleNamespace(collector="the collector"))
    >>> asyncio.run(collector_of(Request({"type": "http", "app": application})))
    'the collector'
    """
    collector: Collector = request.app.state.collector
    return collector


Service = Annotated[Collector, Depends(collector_of)]


def address_of(request: Request) -> str:
    """The address that a request comes from; behind a trusted proxy, the one it forwards for.

    >>> address_of(Request({"type": "http", "client": ("192.0.2.1", 443)}))
    '192.0.2.1'
    """
    return request.client.host if request.client else "unknown"


async def need_token(request: Request, collector: Service, token: Token) -> Operator:
    """Let whoever holds a token through; wrong ones are counted against their address.

    A right token is accepted however many wrong ones came before: whoever shares the operator's
    address must not be able to lock the operator out.

    >>> import asyncio
    >>> asyncio.run(need_token(Request({"type": "http"}), None, token=None))
    Traceback (most recent call last):
        ...
    unpoison.collector.faults.Fault: This needs the operator's token.
    """
    if token is not None:
        holder = await collector.operator(token.credentials)
        if holder is not None:
            return holder
        await collector.wrong_tokens.take(address_of(request))
    raise Fault("unauthorized")


Holder = Annotated[Operator, Depends(need_token)]


async def need_operator(holder: Holder) -> Operator:
    """Let operators through, and no readers.

    >>> import asyncio
    >>> asyncio.run(need_operator(Operator("ada", "reader")))
    Traceback (most recent call last):
        ...
    unpoison.collector.faults.Fault: This token may read, but change nothing.
    """
    if not holder.may_change:
        raise Fault("forbidden")
    return holder


Actor = Annotated[Operator, Depends(need_operator)]


async def need_reader(request: Request, collector: Service, token: Token) -> None:
    """Let whoever holds a token through, and everybody if the collector is public.

    >>> import asyncio
    >>> from types import SimpleNamespace
    >>> public = SimpleNamespace(settings=SimpleNamespace(public=True))
    >>> asyncio.run(need_reader(Request({"type": "http"}), public, token=None))
    """
    if not collector.settings.public:
        await need_token(request, collector, token)
