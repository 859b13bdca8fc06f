"""Routes for monitoring: health, readiness and metrics."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST

from unpoison.collector.faults import Fault
from unpoison.collector.http.access import Service, bearer, need_token
from unpoison.collector.http.errors import responses
from unpoison.collector.service.campaign_metrics import all_metrics
from unpoison.collector.service.key_ring import DIFFERENT
from unpoison.collector.service.worker_metrics import server_metrics

router = APIRouter(tags=["operations"])


@router.get("/healthz")
async def healthz() -> dict[str, str]:
    """The process is alive."""
    return {"status": "ok"}


@router.get("/readyz", responses=responses("unavailable"))
async def readyz(collector: Service) -> dict[str, str]:
    """The database can be written to, the queue has room, and the keys are those of all servers."""
    full = collector.writer.waiting >= collector.settings.queue_size
    if full or not await collector.writer.is_writable():
        raise Fault("unavailable")
    if collector.keys.state == DIFFERENT:
        raise Fault("unavailable", "The key that other servers sign with is not in the key file.")
    return {"status": "ok", "keys": collector.keys.state}


@router.get(
    "/metrics", response_class=Response, responses=responses("unauthorized", "rate-limited")
)
async def metrics(request: Request, collector: Service) -> Response:
    """Metrics for Prometheus; those of campaigns, too, for whoever holds a token."""
    # Not as a dependency: the route is described as one that needs no token.
    token = await bearer(request)
    if token is None:
        return Response(
            server_metrics(collector.metrics, collector.role), media_type=CONTENT_TYPE_LATEST
        )
    await need_token(request, collector, token)
    return Response(await all_metrics(collector), media_type=CONTENT_TYPE_LATEST)
