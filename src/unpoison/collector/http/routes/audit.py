"""The route of the audit log."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query

from unpoison.collector.campaigns.audit import audit_page
from unpoison.collector.http.access import Service, need_operator
from unpoison.collector.http.errors import responses

router = APIRouter(prefix="/v1/audit", tags=["operators"])
# The largest number of a row that either database has.
Before = Annotated[int | None, Query(ge=1, le=2**63 - 1)]


@router.get(
    "",
    dependencies=[Depends(need_operator)],
    responses=responses("unauthorized", "forbidden", "rate-limited", "unavailable"),
)
async def audit_log(collector: Service, before: Before = None) -> dict[str, Any]:
    """What operators did, newest first; `before` takes the `next` of the page before."""
    return await collector.read_cache.read(lambda connection: audit_page(connection, before))
