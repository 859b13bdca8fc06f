"""What devices ask for: the campaign, a ticket, and to be counted."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

from unpoison.collector.campaigns import OPEN_TO_ALL
from unpoison.collector.faults import Fault
from unpoison.collector.http.access import address_of, collector_of
from unpoison.collector.http.errors import responses
from unpoison.collector.http.lean import LeanRoute
from unpoison.collector.http.models import (
    Accepted,
    BatchAnswer,
    BatchBody,
    CampaignAnswer,
    EnrolBody,
    SubmissionBody,
    TicketAnswer,
)
from unpoison.collector.service import Collector

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
    with Refusals(collector, found.id, address_of(request)) as refusals:
        refusals.check_guesses()
        if found.access == OPEN_TO_ALL:
            collector.enrolments.take(address_of(request))
        ticket = await collector.enrol(found, body.device, body.tier, body.invite)
    return JSONResponse(ticket)


@router.post("/reports", responses=responses(*TICKET_FAULTS), response_model=Accepted)
async def submit(request: Request, body: SubmissionBody, campaign: str) -> JSONResponse:
    """A ticket's reports, once; the identical submission again is answered alike."""
    collector = await collector_of(request)
    found = await collector.campaign(campaign)
    with Refusals(collector, found.id, address_of(request)):
        fault = (await collector.submit(found, [(body.ticket, body.device, body.values)]))[0]
        if fault is not None:
            raise fault
    return JSONResponse(ACCEPTED)


@router.post("/reports/batch", responses=responses(*TICKET_FAULTS), response_model=BatchAnswer)
async def submit_batch(request: Request, body: BatchBody, campaign: str) -> JSONResponse:
    """Many submissions in one request, each with a result of its own, in their order."""
    collector = await collector_of(request)
    found = await collector.campaign(campaign)
    with Refusals(collector, found.id, address_of(request)) as refusals:
        given = [(each.ticket, each.device, each.values) for each in body.submissions]
        told = await collector.submit(found, given)
        for fault in told:
            if fault is not None:
                refusals.count(fault)
    return JSONResponse({"results": [_result(fault) for fault in told]})


def _result(fault: Fault | None) -> dict[str, Any]:
    return ACCEPTED if fault is None else {"status": "refused", "error": fault.error}


class Refusals:
    """Counts what is refused, and makes whoever tries invites at speed wait.

    Tickets are not counted against an address: they cannot be guessed, and a gateway may bring many
    that have become invalid through no fault of its own.

    >>> from unpoison.collector.scratch import scratch_database
    >>> from unpoison.collector.settings import Settings
    >>> with scratch_database() as database:
    ...     collector = Collector(Settings.load(guesses_per_minute=1), database, ["a key"])
    ...     with Refusals(collector, "k3v9x2m4q7w1", "192.0.2.1") as refusals:
    ...         refusals.count(Fault("invalid-invite"))
    ...         refusals.check_guesses()
    Traceback (most recent call last):
        ...
    unpoison.collector.faults.Fault: Too many requests from this address: try again later.
    """

    def __init__(self, collector: Collector, campaign: str, address: str) -> None:
        self.collector, self.campaign, self.address = collector, campaign, address

    def __enter__(self) -> Refusals:
        return self

    def check_guesses(self) -> None:
        """Refuse an address that has guessed too often."""
        self.collector.guesses.check(self.address)

    def count(self, fault: Fault) -> None:
        """One refusal."""
        self.collector.reject(self.campaign, fault)
        if fault.code == "invalid-invite":
            self.collector.guesses.count(self.address)

    def __exit__(self, kind: object, fault: BaseException | None, trace: object) -> None:
        if isinstance(fault, Fault):
            self.count(fault)
