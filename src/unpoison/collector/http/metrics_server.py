"""A second port for Prometheus alone, with the metrics of campaigns and without a token."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import uvicorn
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from unpoison.collector.http.connection import limited_protocol
from unpoison.collector.http.connection_slots import ConnectionSlots, reserve_for
from unpoison.collector.service.campaign_metrics import all_metrics
from unpoison.collector.service.collector import Collector

MOST_CONNECTIONS = 16
"""Connections at once: a few Prometheus servers, and a person who looks."""
STOP_SECONDS = 1
"""Seconds for a reading to finish when the collector stops; Prometheus asks again anyway."""


class _QuietServer(uvicorn.Server):
    """uvicorn that leaves signals to the main server of the process."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@asynccontextmanager
async def metrics_server(
    collector: Collector, listener: socket.socket | None
) -> AsyncIterator[None]:
    """Serve `/metrics` on a socket during the block; nothing is served without a socket.

    >>> async def nothing() -> None:
    ...     async with metrics_server(None, listener=None):
    ...         pass
    >>> asyncio.run(nothing())
    """
    if listener is None:
        yield
        return

    async def metrics(request: Request) -> Response:
        return Response(await all_metrics(collector), media_type=CONTENT_TYPE_LATEST)

    config = uvicorn.Config(
        Starlette(routes=[Route("/metrics", metrics)]),
        http=limited_protocol(
            collector.settings.request_seconds,
            ConnectionSlots(MOST_CONNECTIONS, reserve_for(MOST_CONNECTIONS)),
        ),
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="off",
        limit_concurrency=MOST_CONNECTIONS,
        timeout_graceful_shutdown=STOP_SECONDS,
        proxy_headers=False,
        ws="none",
    )
    server = _QuietServer(config)
    serving = asyncio.create_task(server.serve([listener]))
    try:
        yield
    finally:
        server.should_exit = True
        await serving
