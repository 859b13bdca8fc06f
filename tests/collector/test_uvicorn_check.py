"""A uvicorn that lacks what the limits on connections rely on is refused at start, by name."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from unpoison.collector.http import connection
from unpoison.collector.http.connection import (
    OVERRIDDEN,
    READ,
    READ_OF_CYCLE,
    UnsupportedUvicorn,
    check_uvicorn,
    limited_protocol,
)
from unpoison.collector.http.connection_slots import ConnectionSlots


def without(kind: type, name: str) -> type:
    """A copy of a class in which a method is missing, or no method uses an attribute."""
    members = {
        key: item
        for key, item in vars(kind).items()
        if key != name
        and key not in ("__dict__", "__weakref__")
        and name not in getattr(getattr(item, "__code__", None), "co_names", ())
    }
    return type(kind.__name__, kind.__bases__, members)


def test_the_installed_version_has_all_that_is_needed() -> None:
    check_uvicorn()
    asyncio.run(_connection_has_all_attributes())


async def _connection_has_all_attributes() -> None:
    """The check reads code; a real connection shows that it reads it rightly."""

    async def application(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body"})

    config = uvicorn.Config(application, lifespan="off", log_config=None)
    protocol = limited_protocol(10.0, ConnectionSlots(most=1, reserve=1))(config, ServerState(), {})
    ours, theirs = socket.socketpair()
    await asyncio.get_running_loop().connect_accepted_socket(lambda: protocol, ours)
    theirs.sendall(b"GET / HTTP/1.1\r\nHost: collector\r\nConnection: close\r\n\r\n")
    while not protocol.transport.is_closing():
        await asyncio.sleep(0.01)
    theirs.close()
    assert all(hasattr(protocol, name) for name in READ)
    assert all(hasattr(protocol.cycle, name) for name in READ_OF_CYCLE)


@pytest.mark.parametrize("name", [*OVERRIDDEN, *READ])
def test_a_protocol_that_lacks_something_is_refused_by_name(name: str) -> None:
    with pytest.raises(UnsupportedUvicorn, match=name):
        check_uvicorn(without(HttpToolsProtocol, name))


@pytest.mark.parametrize("name", READ_OF_CYCLE)
def test_a_cycle_that_lacks_something_is_refused_by_name(name: str) -> None:
    with pytest.raises(UnsupportedUvicorn, match=name):
        check_uvicorn(cycle=without(RequestResponseCycle, name))


def test_a_server_does_not_start_with_such_a_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "READ", (*READ, "something_new"))
    with pytest.raises(UnsupportedUvicorn, match="something_new"):
        limited_protocol(10.0, ConnectionSlots(most=1, reserve=1))
