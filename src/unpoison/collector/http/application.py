"""The ASGI application: all routes of one collector, behind the guard."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from fastapi.middleware.cors import CORSMiddleware

from unpoison._version import __version__
from unpoison.collector.http.errors import add_handlers, describe_errors
from unpoison.collector.http.guard import Guard
from unpoison.collector.http.metrics_server import metrics_server
from unpoison.collector.http.routes import alarms, audit, devices, health, operators, pages
from unpoison.collector.http.routes.pages import add_static_files
from unpoison.collector.service.collector import Collector
from unpoison.collector.service.housekeeping import Housekeeper

DESCRIPTION = "Campaigns under local differential privacy that survive colluding poisoners."


class DescribedApplication(FastAPI):
    """A FastAPI application whose OpenAPI description has the model of our error bodies.

    >>> application = DescribedApplication(title="unpoison collector")
    >>> application.router.routes.extend(devices.router.routes)
    >>> "ErrorBody" in application.openapi()["components"]["schemas"]
    True
    """

    def openapi(self) -> dict[str, Any]:
        """The description, made once."""
        if self.openapi_schema is None:
            self.openapi_schema = describe_errors(super().openapi())
        return self.openapi_schema


def application_of(collector: Collector, metrics_listener: socket.socket | None = None) -> Guard:
    """The application of a collector; it starts and stops the collector and its periodic jobs.

    With a `metrics_listener` it also serves metrics there.

    >>> from unpoison.collector.storage.temporary_database import temporary_database
    >>> from unpoison.collector.settings import Settings
    >>> with temporary_database() as database:
    ...     application = application_of(Collector(Settings.load(), database, ["a key"]))
    >>> "/v1/campaigns/{campaign}/reports" in routes_of(application).openapi()["paths"]
    True
    """

    @asynccontextmanager
    async def lifespan(application: FastAPI) -> AsyncIterator[None]:
        metrics = metrics_server(collector, metrics_listener)
        async with collector, Housekeeper(collector), metrics:
            yield

    inner = DescribedApplication(
        title="unpoison collector",
        description=DESCRIPTION,
        version=__version__,
        lifespan=lifespan,
        # The pages of interactive documentation load scripts from elsewhere.
        docs_url=None,
        redoc_url=None,
    )
    inner.state.collector = collector
    add_handlers(inner)
    # Not `include_router`: for prefixes and dependencies that we do not add, it builds all routes
    # once more, at the first request.
    for part in (devices, operators, alarms, audit, health, pages):
        inner.router.routes.extend(part.router.routes)
    add_static_files(inner)
    if collector.settings.allowed_origins:
        inner.add_middleware(
            CORSMiddleware,
            allow_origins=collector.settings.allowed_origins,
            allow_methods=["GET", "POST"],
            allow_headers=["content-type"],
            expose_headers=["Retry-After"],
        )
    return Guard(inner, collector)


def routes_of(guard: Guard) -> FastAPI:
    """The FastAPI application behind a guard.

    >>> from unpoison.collector.storage.temporary_database import temporary_database
    >>> from unpoison.collector.settings import Settings
    >>> with temporary_database() as database:
    ...     guard = application_of(Collector(Settings.load(), database, ["a key"]))
    >>> routes_of(guard).title
    'unpoison collector'
    """
    inner = guard.application
    if not isinstance(inner, FastAPI):
        raise TypeError("there is no application behind this guard")
    return inner
