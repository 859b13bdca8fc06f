"""The collector without its network: campaigns, enrolment, submissions, estimates."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, suppress
from functools import partial
from typing import Any, TypeVar

from sqlalchemy import Connection

from unpoison.collector.campaigns import status as history
from unpoison.collector.campaigns.campaigns import Campaign, Campaigns
from unpoison.collector.campaigns.counters import count_rejections
from unpoison.collector.campaigns.enrolment import Enrol, Seat, enrol_all
from unpoison.collector.campaigns.locks import lock_campaigns
from unpoison.collector.campaigns.submissions import Submission, submit_all
from unpoison.collector.campaigns.tallies import Tallies
from unpoison.collector.campaigns.tickets import Ticket, TicketSigner, device_mark
from unpoison.collector.clock import DAY, Clock, iso
from unpoison.collector.credentials import hashed, is_campaign_id, is_one_of
from unpoison.collector.faults import Fault
from unpoison.collector.service.estimates import Analyst, Question
from unpoison.collector.service.housekeeping import Housekeeper
from unpoison.collector.service.metrics import Metrics
from unpoison.collector.service.rate_limits import RateLimit
from unpoison.collector.settings import Settings
from unpoison.collector.storage.database import Database
from unpoison.collector.storage.operator_tokens import operator_hashes
from unpoison.collector.storage.read_cache import Recent
from unpoison.collector.storage.writer import Batching, Writer
from unpoison.summary import Summary

FEW = 64
"""Submissions that are checked on the spot; more are checked beside the event loop."""
Result = TypeVar("Result")
Given = tuple[str, str, Sequence[int]]
"""A submission as it came: ticket, device, values."""


class Collector:
    """Everything that one server process holds.

    >>> from unpoison.collector.campaigns.temporary import scratch_database
    >>> async def campaigns() -> list:
    ...     with scratch_database() as database:
    ...         async with Collector(Settings.load(), database, ["a key"]) as collector:
    ...             return await collector.recent.read(Campaigns.all)
    >>> asyncio.run(campaigns())
    []
    """

    def __init__(
        self,
        settings: Settings,
        database: Database,
        keys: Sequence[str],
        clock: Clock | None = None,
    ) -> None:
        self.settings, self.database = settings, database
        self.clock = clock or Clock()
        self.signer = TicketSigner(keys)
        self.metrics = Metrics()
        batching = Batching(settings.batch_size, settings.batch_delay, settings.queue_size)
        observe = self.metrics.committed
        self.writer = Writer(database, self.clock, batching, observe, _lock)
        self.metrics.watch_queue(lambda: self.writer.waiting)
        self.analyst = Analyst(self.metrics.estimated)
        self.recent = Recent(database, self.clock)
        self.enrolments = RateLimit(settings.enrolments_per_hour, 3600, self.clock)
        self.guesses = RateLimit(settings.guesses_per_minute, 60, self.clock)
        self.wrong_tokens = RateLimit(settings.guesses_per_minute, 60, self.clock)
        self.one_large_body = asyncio.Lock()
        self.rejected: Counter[tuple[str, str]] = Counter()
        self.written: dict[str, str] = {}
        self.stack = AsyncExitStack()

    async def __aenter__(self) -> Collector:
        await self.stack.enter_async_context(self.writer)
        self.stack.push_async_callback(self._write_last_rejections)
        self.stack.callback(self.analyst.close)
        await self.stack.enter_async_context(Housekeeper(self))
        return self

    async def __aexit__(self, *_: object) -> None:
        """Commit what waits, and stop."""
        await self.stack.aclose()

    async def _write_last_rejections(self) -> None:
        """Before the end; a database that does not answer is not waited for again."""
        if not self.writer.failing:
            with suppress(Fault):
                await self.write_rejections()

    async def is_operator(self, token: str) -> bool:
        """Whether a token is one of the operators'."""
        hashes = await self.recent.get("operators", operator_hashes)
        given = self.settings.operator_token
        extra = [] if given is None else [hashed(given.get_secret_value())]
        return is_one_of(token, [*hashes, *extra])

    async def campaign(self, campaign: str) -> Campaign:
        """A campaign as it was at most a second ago; transactions look again."""
        if is_campaign_id(campaign):
            found = await self.recent.get(
                f"campaign {campaign}", lambda connection: Campaigns.find(connection, campaign)
            )
            if found is not None:
                return found
        raise Fault("not-found", "There is no such campaign.")

    async def status(self, campaign: str) -> dict[str, Any]:
        """What the page shows."""
        found = await self.campaign(campaign)
        return await self.recent.get(
            f"status {campaign}", lambda connection: history.status(connection, found)
        )

    async def change(self, function: Callable[[Connection], Result]) -> Result:
        """A change that an operator makes."""
        try:
            return await self.writer.call(function)
        finally:
            self.recent.forget()

    async def enrol(
        self, campaign: Campaign, device: str, tier: int, invite: str | None
    ) -> dict[str, Any]:
        """A ticket for a device."""
        if not 0 <= tier < len(campaign.plan.all_tiers):
            raise Fault("unknown-tier", field="tier")
        code = None if invite is None else hashed(invite)
        request = Enrol(campaign, device_mark(device), tier, code)
        seat: Seat | Fault = (await self.writer.apply(enrol_all, [request]))[0]
        if isinstance(seat, Fault):
            raise seat
        self.metrics.enrolments.inc()
        return self._ticket(campaign, seat)

    def _ticket(self, campaign: Campaign, seat: Seat) -> dict[str, Any]:
        lifetime = int(self.settings.ticket_days * DAY)
        expires_at = seat.expires_at(lifetime, self.clock.now())
        ticket = Ticket(campaign.id, seat.number, seat.group, seat.device, expires_at)
        return {
            "ticket": self.signer.sign(ticket),
            "campaign": campaign.id,
            "fingerprint": campaign.plan.fingerprint,
            "tier": campaign.plan.tier_of(seat.group),
            "groups": [
                {"group": group, "reports": campaign.reports[group]}
                for group in campaign.groups_with(seat.group)
            ],
            "expires_at": iso(expires_at),
        }

    async def submit(self, campaign: Campaign, given: Sequence[Given]) -> list[Fault | None]:
        """Submissions, each counted (None) or refused for itself."""
        check = partial(self._all_checked, campaign, given, self.clock.now())
        checked = check() if len(given) <= FEW else await asyncio.to_thread(check)
        valid = [each for each in checked if isinstance(each, Submission)]
        results = iter(await self.writer.apply(submit_all, valid) if valid else [])
        told = [next(results) if isinstance(each, Submission) else each for each in checked]
        self.metrics.accepted.inc(sum(each is None for each in told))
        return told

    def _all_checked(
        self, campaign: Campaign, given: Sequence[Given], now: int
    ) -> list[Submission | Fault]:
        return [self._checked(campaign, each, now) for each in given]

    def _checked(self, campaign: Campaign, given: Given, now: int) -> Submission | Fault:
        text, device, values = given
        try:
            ticket = self.signer.read(text)
            ticket.check(campaign.id, device)
            return Submission.checked(campaign, ticket, device, values, now)
        except Fault as fault:
            return fault

    async def summary(self, campaign: Campaign) -> Summary:
        """All counts of a campaign."""
        return await self.recent.read(lambda connection: Tallies.summary(connection, campaign))

    async def estimate(self, campaign: Campaign, question: Question | None = None) -> str:
        """The Estimate as JSON; the usual ones are written down for the page."""
        usual = Question.of(campaign.plan)
        summary = await self.summary(campaign)
        text = await self.analyst.answer(campaign, summary, question or usual)
        if question in (None, usual) and self.written.get(campaign.id) is not text:
            with suppress(Fault):
                now = self.clock.now()
                keep = partial(history.keep_estimate, campaign=campaign.id, text=text, now=now)
                await self.writer.call(keep)
                self.written[campaign.id] = text
        return text

    def reject(self, campaign: str, fault: Fault) -> None:
        """Count a refusal, by its cause; a campaign's name may be whatever somebody asked for."""
        self.metrics.rejected.labels(fault.code).inc()
        if is_campaign_id(campaign):
            self.rejected[campaign, fault.code] += 1

    async def write_rejections(self) -> None:
        """Write down what was refused since the last time."""
        found, self.rejected = self.rejected, Counter()
        rows = [(campaign, cause, number) for (campaign, cause), number in found.items()]
        try:
            if rows:
                await self.writer.call(partial(count_rejections, found=rows))
        except Fault:
            self.rejected.update(found)
            raise


def _lock(connection: Connection, requests: Sequence[Any]) -> None:
    """A transaction begins with the locks of all campaigns that it is about."""
    lock_campaigns(connection, [request.campaign.id for request in requests])
