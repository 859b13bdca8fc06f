"""What devices ask for: the campaign, a ticket, and to be counted."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

from unpoison.collector.campaigns.campaigns import OPEN_TO_ALL
from unpoison.collector.faults import Fault
from unpoison.collector.http.access import address_of, collector_of
from unpoison.collector.http.device_routes import LeanRoute
from unpoison.collector.http.errors import responses
from unpoison.collector.http.models import (
    Accepted,
    BatchAnswer,
    BatchBody,
    CampaignAnswer,
    EnrolBody,
    SubmissionBody,
    TicketAnswer,
)

router = APIRouter(prefix="/v1/campaigns/{campaign}", tags=["devices"], route_class=LeanRoute)
ACCEPTED = {"status": "accepted"}
TICKET_FAULTS = (
    "invalid-request",
    "invalid-ticket",
    "ticket-expired",
    "not-found",
    "ticket-used",
    "campaign-not-open",
    "wrong-number-of-values",
    "out-of-domain",
    "rate-limited",
    "unavailable",
)


@router.get("", responses=responses("not-found", "unavailable"), response_model=CampaignAnswer)
async def campaign(request: Request, campaign: str) -> JSONResponse:
    """A campaign's plan and state: what a device checks before it takes part."""
    collector = await collector_of(request)
    return JSONResponse((await collector.campaign(campaign)).public())


@router.post(
    "/tickets",
    responses=responses(
        "invalid-request",
        "invalid-invite",
        "not-found",
        "invite-used",
        "campaign-not-open",
        "unknown-tier",
        "rate-limited",
        "unavailable",
    ),
    response_model=TicketAnswer,
)
async def enrol(request: Request, body: EnrolBody, campaign: str) -> JSONResponse:
    """A ticket for a device; asking again gives the same one."""
    collector = await collector_of(request)
    found = await collector.campaign(campaign)
    address = address_of(request)
    collector.guesses.check(address)
    if found.access == OPEN_TO_ALL:
        collector.enrolments.take(address)
    try:
        return JSONResponse(await collector.enrol(found, body.device, body.tier, body.invite))
    except Fault as fault:
        if fault.code == "invalid-invite":
            collector.guesses.count(address)
        raise


@router.post("/reports", responses=responses(*TICKET_FAULTS), response_model=Accepted)
async def submit(request: Request, body: SubmissionBody, campaign: str) -> JSONResponse:
    """A ticket's reports, once; the identical submission again is answered alike."""
    collector = await collector_of(request)
    found = await collector.campaign(campaign)
    fault = (await collector.submit(found, [(body.ticket, body.device, body.values)]))[0]
    if fault is not None:
        raise fault
    return JSONResponse(ACCEPTED)


@router.post("/reports/batch", responses=responses(*TICKET_FAULTS), response_model=BatchAnswer)
async def submit_batch(request: Request, body: BatchBody, campaign: str) -> JSONResponse:
    """Many submissions in one request, each with a result of its own, in their order."""
    collector = await collector_of(request)
    found = await collector.campaign(campaign)
    given = [(each.ticket, each.device, each.values) for each in body.submissions]
    told = await collector.submit(found, given)
    for fault in told:
        if fault is not None:
            collector.reject(found.id, fault)
    return JSONResponse({"results": [_result(fault) for fault in told]})


def _result(fault: Fault | None) -> dict[str, Any]:
    return ACCEPTED if fault is None else {"status": "refused", "error": fault.error}
