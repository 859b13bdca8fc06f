"""Routes for operators: campaigns, invites, status, estimates and exports."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import FileResponse, JSONResponse
from sqlalchemy import Connection
from starlette.background import BackgroundTask

from unpoison.collector.campaigns.audit import AuditEntry
from unpoison.collector.campaigns.campaign import BY_TOKEN, Campaign
from unpoison.collector.campaigns.campaigns import Campaigns
from unpoison.collector.campaigns.device_plan import device_plan
from unpoison.collector.campaigns.estimate_history import latest_estimates
from unpoison.collector.campaigns.export import export
from unpoison.collector.campaigns.invites import issue_invites
from unpoison.collector.campaigns.listing import (
    DEFAULT_LIMIT,
    MOST_ENTRIES,
    ListQuery,
    list_campaigns,
)
from unpoison.collector.campaigns.token_issuers import TokenIssuer
from unpoison.collector.credentials import hashed
from unpoison.collector.faults import Fault
from unpoison.collector.http.access import (
    Actor,
    Service,
    Token,
    need_operator,
    need_reader,
    need_token,
)
from unpoison.collector.http.errors import responses
from unpoison.collector.http.models import (
    CampaignBody,
    CampaignList,
    ExtendBody,
    Invites,
    InvitesBody,
    OperatorCampaign,
)
from unpoison.collector.service.estimates import EstimateRequest

PARQUET = "application/vnd.apache.parquet"
COMMON_FAULTS = ("unauthorized", "forbidden", "rate-limited", "not-found", "unavailable")
ETAG_DIGITS = 32
"""Hex digits of a hash in an ETag: 128 bits, so that two states never share one."""
router = APIRouter(prefix="/v1/campaigns", tags=["operators"])
operator, reader = [Depends(need_operator)], [Depends(need_reader)]
# Longer than any method with its parameters.
QueryText = Annotated[str | None, Query(max_length=200)]
# PostgreSQL knows no texts with a null character, and no name has one.
SearchText = Annotated[str | None, Query(max_length=200, pattern=r"^[^\x00]*$")]


@router.get(
    "",
    dependencies=reader,
    responses=responses(*COMMON_FAULTS, "invalid-request"),
    response_model=CampaignList,
)
async def campaigns(
    collector: Service,
    limit: Annotated[int, Query(ge=1, le=MOST_ENTRIES)] = DEFAULT_LIMIT,
    after: QueryText = None,
    search: SearchText = None,
    state: Annotated[Literal["draft", "open", "closed"] | None, Query()] = None,
) -> JSONResponse:
    """A page of campaigns, newest first; `next` is the `after` of the following page."""
    query = ListQuery(limit, after, search, state)

    def read(connection: Connection) -> dict[str, Any]:
        page = list_campaigns(connection, query)
        latest = latest_estimates(connection, [entry["id"] for entry in page["campaigns"]])
        for entry in page["campaigns"]:
            entry["last_estimate"] = latest.get(entry["id"])
        return page

    return JSONResponse(await collector.read_cache.read(read))


@router.post(
    "",
    status_code=201,
    dependencies=operator,
    responses=responses(*COMMON_FAULTS, "invalid-plan", "invalid-request", "wrong-state"),
    response_model=OperatorCampaign,
)
async def create(body: CampaignBody, collector: Service, actor: Actor) -> JSONResponse:
    """A new campaign, as a draft or open at once."""
    plan, notice = device_plan(body.plan)
    now = collector.clock.now()
    closes_at = None if body.closes_at is None else int(body.closes_at.timestamp())
    if closes_at is not None and closes_at <= now:
        raise Fault("invalid-request", "closes_at must lie in the future.", "closes_at")
    draft = Campaign.new(body.name, plan, now, body.access, body.min_users, closes_at)
    issuer = _token_issuer(body, draft)

    def add(connection: Connection) -> Campaign:
        Campaigns.add(connection, draft)
        if issuer is not None:
            issuer.add(connection, draft.id)
        return Campaigns.open(connection, draft.id, now) if body.open else draft

    entry = AuditEntry(actor.name, "create", draft.id, "opened at once" if body.open else None)
    created = await collector.change(add, entry)
    terms = {} if issuer is None else issuer.public()
    return JSONResponse({**created.full(), **terms, "notice": notice}, 201)


def _token_issuer(body: CampaignBody, campaign: Campaign) -> TokenIssuer | None:
    """The issuer of a new campaign's tokens; one that needs none must not name any."""
    if (body.access == BY_TOKEN) != (body.issuer is not None):
        raise Fault("invalid-request", "access by token needs an issuer, no other does.", "issuer")
    if body.issuer is None:
        return None
    return TokenIssuer.new(campaign.id, body.issuer.name, body.issuer.key, body.issuer.origins)


async def _changed(
    collector: Service, change: Callable[[Connection], Campaign], entry: AuditEntry
) -> JSONResponse:
    return JSONResponse((await collector.change(change, entry)).full())


STATE_RESPONSES = responses(*COMMON_FAULTS, "wrong-state", "invalid-request")
change_route = partial(
    router.post,
    dependencies=operator,
    responses=STATE_RESPONSES,
    response_model=OperatorCampaign,
)
"""Decorates a route that changes a campaign and answers what it is then."""


@change_route("/{campaign}/open")
async def open_campaign(campaign: str, collector: Service, actor: Actor) -> JSONResponse:
    """Open a campaign to devices."""
    now = collector.clock.now()
    entry = AuditEntry(actor.name, "open", campaign)
    return await _changed(collector, lambda c: Campaigns.open(c, campaign, now), entry)


@change_route("/{campaign}/close")
async def close_campaign(campaign: str, collector: Service, actor: Actor) -> JSONResponse:
    """Close a campaign to devices."""
    entry = AuditEntry(actor.name, "close", campaign)
    return await _changed(collector, lambda c: Campaigns.close(c, campaign), entry)


@change_route("/{campaign}/extend")
async def extend_campaign(
    campaign: str, body: ExtendBody, collector: Service, actor: Actor
) -> JSONResponse:
    """Move the end of a campaign."""
    until = None if body.closes_at is None else int(body.closes_at.timestamp())
    end = None if body.closes_at is None else body.closes_at.isoformat()
    now = collector.clock.now()
    entry = AuditEntry(actor.name, "extend", campaign, end)
    return await _changed(collector, lambda c: Campaigns.extend(c, campaign, until, now), entry)


@router.delete("/{campaign}", status_code=204, dependencies=operator, responses=STATE_RESPONSES)
async def delete_campaign(campaign: str, collector: Service, actor: Actor) -> Response:
    """Delete a campaign, its counts and its submissions."""
    entry = AuditEntry(actor.name, "delete", campaign)
    await collector.change(lambda connection: Campaigns.delete(connection, campaign), entry)
    return Response(status_code=204)


@router.post(
    "/{campaign}/invites",
    status_code=201,
    dependencies=operator,
    responses=responses(*COMMON_FAULTS, "invalid-request"),
    response_model=Invites,
)
async def invites(
    campaign: str, body: InvitesBody, collector: Service, actor: Actor
) -> JSONResponse:
    """New invites; their codes cannot be read again."""
    now = collector.clock.now()
    entry = AuditEntry(actor.name, "invite", campaign, f"{body.count} invites")
    codes = await collector.change(
        lambda c: issue_invites(c, campaign, body.count, body.days, now), entry
    )
    return JSONResponse({"invites": codes}, 201)


@router.get("/{campaign}/status", dependencies=reader, responses=responses(*COMMON_FAULTS))
async def status(request: Request, campaign: str, collector: Service) -> Response:
    """What the page shows; 304 if the client's copy is up to date."""
    shown = await collector.status(campaign)
    tag = f'"{hashed(shown["version"]).hex()[:ETAG_DIGITS]}"'
    headers = {"ETag": tag, "Cache-Control": "private, no-cache"}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return JSONResponse(shown, headers=headers)


@router.get(
    "/{campaign}/estimate",
    dependencies=reader,
    responses=responses(*COMMON_FAULTS, "not-enough-users", "invalid-request"),
)
async def estimate(
    request: Request,
    campaign: str,
    collector: Service,
    token: Token,
    method: QueryText = None,
    statistic: QueryText = None,
    post_processing: QueryText = None,
) -> Response:
    """The present Estimate; methods with parameters are for operators only."""
    cached = await collector.campaign(campaign)
    # In a thread: the first request loads all methods, and devices are served meanwhile.
    wanted = await asyncio.to_thread(
        EstimateRequest.of, cached.plan, method or None, statistic or None, post_processing or None
    )
    if wanted.costly:
        await need_token(request, collector, token)
    text = await collector.estimate(cached, wanted)
    return Response(text, media_type="application/json")


@router.get(
    "/{campaign}/summary",
    dependencies=reader,
    responses={**responses(*COMMON_FAULTS), 200: {"content": {PARQUET: {}}}},
    response_class=Response,
)
async def summary(campaign: str, collector: Service) -> Response:
    """All counts as a Summary file, which merges with others of its plan."""
    cached = await collector.campaign(campaign)
    data = (await collector.summary(cached)).to_bytes()
    return _as_download(Response(data, media_type=PARQUET), f"{cached.id}.summary")


@router.get(
    "/{campaign}/export",
    dependencies=operator,
    responses={**responses(*COMMON_FAULTS), 200: {"content": {"application/zip": {}}}},
    response_class=FileResponse,
)
async def export_campaign(campaign: str, collector: Service, actor: Actor) -> Response:
    """Plan, counts and stored reports as one ZIP archive."""
    cached = await collector.campaign(campaign)
    await collector.note(AuditEntry(actor.name, "export", cached.id))
    with tempfile.NamedTemporaryFile(suffix=".zip", delete=False) as file:
        path = Path(file.name)
    try:
        await collector.read_cache.read(lambda connection: export(connection, cached, path))
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    delete = BackgroundTask(path.unlink, missing_ok=True)
    response = FileResponse(path, media_type="application/zip", background=delete)
    return _as_download(response, f"{cached.id}.zip")


def _as_download(response: Response, name: str) -> Response:
    response.headers["content-disposition"] = f'attachment; filename="{name}"'
    return response
