"""Routes for devices: the campaign, a ticket, and submissions."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

from unpoison.collector.campaigns.campaign import OPEN_TO_ALL, Campaign
from unpoison.collector.campaigns.invites import is_invite
from unpoison.collector.faults import Fault
from unpoison.collector.http.access import address_of, collector_of
from unpoison.collector.http.direct_route import DirectRoute
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
from unpoison.collector.service.collector import Collector, ReceivedSubmission

router = APIRouter(prefix="/v1/campaigns/{campaign}", tags=["devices"], route_class=DirectRoute)
ACCEPTED = {"status": "accepted"}
SUBMISSION_FAULTS = (
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
    """A campaign's plan and state, which a device checks before it takes part."""
    collector = await collector_of(request)
    cached = await collector.campaign(campaign)
    issuer = await collector.token_issuer(cached)
    return JSONResponse({**cached.public(), **({} if issuer is None else issuer.public())})


@router.post(
    "/tickets",
    responses=responses(
        "invalid-request",
        "invalid-invite",
        "invalid-token",
        "not-found",
        "invite-used",
        "token-used",
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
    cached = await collector.campaign(campaign)
    address = address_of(request)
    # An open campaign has no invites to count devices by; the address is all there is.
    if cached.access == OPEN_TO_ALL:
        await collector.open_enrolments.take(address)
    # A right invite is let through however many wrong ones came before: whoever shares an address
    # with its device must not be able to lock it out. Looking it up needs no transaction.
    elif collector.wrong_invites.wait(address) and not await _is_invite(collector, cached, body):
        await collector.wrong_invites.take(address)
    try:
        ticket = await collector.enrol(
            cached, body.device, body.tier, body.invite, body.token, body.ticket
        )
        return JSONResponse(ticket)
    except Fault as fault:
        if fault.code == "invalid-invite":
            await collector.wrong_invites.take(address)
        raise


async def _is_invite(collector: Collector, campaign: Campaign, body: EnrolBody) -> bool:
    code = body.invite or ""
    return await collector.read_cache.read(
        lambda connection: is_invite(connection, campaign.id, code)
    )


@router.post("/reports", responses=responses(*SUBMISSION_FAULTS), response_model=Accepted)
async def submit(request: Request, body: SubmissionBody, campaign: str) -> JSONResponse:
    """The reports of a ticket, counted once; the identical submission again is accepted too."""
    collector = await collector_of(request)
    received = ReceivedSubmission(body.ticket, body.device, body.values)
    fault = (await collector.submit(await collector.campaign(campaign), [received]))[0]
    if fault is not None:
        raise fault
    return JSONResponse(ACCEPTED)


@router.post("/reports/batch", responses=responses(*SUBMISSION_FAULTS), response_model=BatchAnswer)
async def submit_batch(request: Request, body: BatchBody, campaign: str) -> JSONResponse:
    """Many submissions in one request, each with a result of its own, in their order."""
    collector = await collector_of(request)
    cached = await collector.campaign(campaign)
    received = [ReceivedSubmission(s.ticket, s.device, s.values) for s in body.submissions]
    faults = await collector.submit(cached, received)
    # The guard counts refused requests; this request succeeds, and only parts of it are refused.
    for fault in faults:
        if fault is not None:
            collector.reject(cached.id, fault)
    return JSONResponse({"results": [_result(fault) for fault in faults]})


def _result(fault: Fault | None) -> dict[str, Any]:
    return ACCEPTED if fault is None else {"status": "refused", "error": fault.error}
