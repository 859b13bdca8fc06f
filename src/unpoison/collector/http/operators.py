"""What the operator asks for: campaigns, invites, estimates, exports."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import FileResponse, JSONResponse
from sqlalchemy import Connection
from starlette.background import BackgroundTask

from unpoison.collector.campaigns.campaigns import Campaign, Campaigns, device_plan
from unpoison.collector.campaigns.export import export
from unpoison.collector.campaigns.invites import issue_invites
from unpoison.collector.credentials import hashed
from unpoison.collector.faults import Fault
from unpoison.collector.http.access import Service, Token, need_operator, need_reader
from unpoison.collector.http.errors import responses
from unpoison.collector.http.models import (
    CampaignBody,
    ExtendBody,
    Invites,
    InvitesBody,
    OperatorCampaign,
)
from unpoison.collector.service.estimates import Question

PARQUET = "application/vnd.apache.parquet"
COMMON = ("unauthorized", "rate-limited", "not-found", "unavailable")
router = APIRouter(prefix="/v1/campaigns", tags=["operators"])
operator, reader = [Depends(need_operator)], [Depends(need_reader)]
Text = Annotated[str | None, Query(max_length=200)]


@router.get("", dependencies=reader, responses=responses(*COMMON))
async def campaigns(collector: Service) -> dict[str, Any]:
    """All campaigns, newest first."""
    found = await collector.recent.read(Campaigns.all)
    return {"campaigns": [_listed(*each) for each in found]}


def _listed(campaign: Campaign, enrolled: int, submissions: int) -> dict[str, Any]:
    told = {key: value for key, value in campaign.full().items() if key != "plan"}
    return {**told, "enrolled": enrolled, "submissions": submissions}


@router.post(
    "",
    status_code=201,
    dependencies=operator,
    responses=responses(*COMMON, "invalid-plan", "invalid-request", "wrong-state"),
    response_model=OperatorCampaign,
)
async def create(body: CampaignBody, collector: Service) -> JSONResponse:
    """A new campaign, as a draft or open at once."""
    plan, notice = device_plan(body.plan)
    now = collector.clock.now()
    closes_at = None if body.closes_at is None else int(body.closes_at.timestamp())
    if closes_at is not None and closes_at <= now:
        raise Fault("invalid-request", "closes_at must lie ahead.", "closes_at")
    made = Campaign.new(body.name, plan, now, body.access, body.min_users, closes_at)

    def add(connection: Connection) -> Campaign:
        Campaigns.add(connection, made)
        return Campaigns.open(connection, made.id, now) if body.open else made

    created = await collector.change(add)
    return JSONResponse({**created.full(), "notice": notice}, 201)


async def _changed(collector: Service, change: Callable[[Connection], Campaign]) -> JSONResponse:
    return JSONResponse((await collector.change(change)).full())


STATES = responses(*COMMON, "wrong-state", "invalid-request")


@router.post(
    "/{campaign}/open", dependencies=operator, responses=STATES, response_model=OperatorCampaign
)
async def open_campaign(campaign: str, collector: Service) -> JSONResponse:
    """Let devices in."""
    now = collector.clock.now()
    return await _changed(collector, lambda c: Campaigns.open(c, campaign, now))


@router.post(
    "/{campaign}/close", dependencies=operator, responses=STATES, response_model=OperatorCampaign
)
async def close_campaign(campaign: str, collector: Service) -> JSONResponse:
    """Let no device in any more."""
    return await _changed(collector, lambda c: Campaigns.close(c, campaign))


@router.post(
    "/{campaign}/extend", dependencies=operator, responses=STATES, response_model=OperatorCampaign
)
async def extend_campaign(campaign: str, body: ExtendBody, collector: Service) -> JSONResponse:
    """Move the campaign's end."""
    until = None if body.closes_at is None else int(body.closes_at.timestamp())
    now = collector.clock.now()
    return await _changed(collector, lambda c: Campaigns.extend(c, campaign, until, now))


@router.delete("/{campaign}", status_code=204, dependencies=operator, responses=STATES)
async def delete_campaign(campaign: str, collector: Service) -> Response:
    """Forget a campaign, its counts and its submissions."""
    await collector.change(lambda connection: Campaigns.delete(connection, campaign))
    return Response(status_code=204)


@router.post(
    "/{campaign}/invites",
    status_code=201,
    dependencies=operator,
    responses=responses(*COMMON, "invalid-request"),
    response_model=Invites,
)
async def invites(campaign: str, body: InvitesBody, collector: Service) -> JSONResponse:
    """New invites. They are shown here, and never again."""
    now = collector.clock.now()
    codes = await collector.change(lambda c: issue_invites(c, campaign, body.count, body.days, now))
    return JSONResponse({"invites": codes}, 201)


@router.get("/{campaign}/status", dependencies=reader, responses=responses(*COMMON))
async def status(request: Request, campaign: str, collector: Service) -> Response:
    """What the page shows; 304 to whoever has it already."""
    told = await collector.status(campaign)
    tag = f'"{hashed(told["version"]).hex()[:32]}"'
    headers = {"ETag": tag, "Cache-Control": "private, no-cache"}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return JSONResponse(told, headers=headers)


@router.get(
    "/{campaign}/estimate",
    dependencies=reader,
    responses=responses(*COMMON, "not-enough-users", "invalid-request"),
)
async def estimate(
    request: Request,
    campaign: str,
    collector: Service,
    token: Token,
    method: Text = None,
    statistic: Text = None,
    post_processing: Text = None,
) -> Response:
    """The Estimate as it is now; parameters in a method's name are for operators."""
    found = await collector.campaign(campaign)
    question = Question.of(found.plan, method or None, statistic or None, post_processing or None)
    if question.costly:
        await need_operator(request, collector, token)
    text = await collector.estimate(found, question)
    return Response(text, media_type="application/json")


@router.get(
    "/{campaign}/summary",
    dependencies=reader,
    responses={**responses(*COMMON), 200: {"content": {PARQUET: {}}}},
    response_class=Response,
)
async def summary(campaign: str, collector: Service) -> Response:
    """All counts as a Summary file, which merges with others of its plan."""
    found = await collector.campaign(campaign)
    data = (await collector.summary(found)).to_bytes()
    return _file(Response(data, media_type=PARQUET), f"{found.id}.summary")


@router.get(
    "/{campaign}/export",
    dependencies=operator,
    responses={**responses(*COMMON), 200: {"content": {"application/zip": {}}}},
    response_class=FileResponse,
)
async def export_campaign(campaign: str, collector: Service) -> Response:
    """Plan, counts and kept reports as one archive."""
    found = await collector.campaign(campaign)
    with tempfile.NamedTemporaryFile(suffix=".zip", delete=False) as file:
        path = Path(file.name)
    try:
        await collector.recent.read(lambda connection: export(connection, found, path))
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    gone = BackgroundTask(path.unlink, missing_ok=True)
    answer = FileResponse(path, media_type="application/zip", background=gone)
    return _file(answer, f"{found.id}.zip")


def _file(answer: Response, name: str) -> Response:
    answer.headers["content-disposition"] = f'attachment; filename="{name}"'
    return answer
