"""The Collector: what one server process holds, and what it does for devices and operators."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, suppress
from functools import partial
from typing import Any, NamedTuple, TypeVar

from pydantic import SecretStr
from sqlalchemy import Connection

from unpoison.collector.campaigns.audit import AuditEntry, record
from unpoison.collector.campaigns.campaign import BY_TOKEN, Campaign
from unpoison.collector.campaigns.campaigns import Campaigns, no_such_campaign
from unpoison.collector.campaigns.enrolment import EnrolmentRequest, IssuedTicket, enrol_all
from unpoison.collector.campaigns.estimate_history import store_estimate
from unpoison.collector.campaigns.group_balance import expected_reporters
from unpoison.collector.campaigns.group_counters import group_counters_of
from unpoison.collector.campaigns.locks import lock_campaigns
from unpoison.collector.campaigns.status import status
from unpoison.collector.campaigns.submissions import Submission, submit_all
from unpoison.collector.campaigns.tallies import Tallies
from unpoison.collector.campaigns.tickets import Ticket, device_hash
from unpoison.collector.campaigns.token_issuers import TokenIssuer
from unpoison.collector.clock import DAY, Clock, iso
from unpoison.collector.credentials import hashed, is_campaign_id
from unpoison.collector.faults import Fault
from unpoison.collector.service.alarm_watch import AlarmWatch
from unpoison.collector.service.estimates import CampaignEstimator, CollectedCounts, EstimateRequest
from unpoison.collector.service.key_ring import KeyRing
from unpoison.collector.service.metrics import Metrics
from unpoison.collector.service.rejections import RejectionCounter
from unpoison.collector.service.shared_limits import SharedLimit
from unpoison.collector.service.signing_keys import SigningKey
from unpoison.collector.service.worker_role import WorkerRole
from unpoison.collector.settings import Settings
from unpoison.collector.storage.database import Database
from unpoison.collector.storage.forwarded_writes import ForwardedCommit
from unpoison.collector.storage.operator_tokens import Operator, holder_of, stored_operators
from unpoison.collector.storage.rate_buckets import TokenRequest
from unpoison.collector.storage.read_cache import ReadCache
from unpoison.collector.storage.writer import Batching, Writer
from unpoison.summary import Summary

CHECKED_INLINE = 64
"""Submissions of one request that are checked on the event loop. Checking more of them would hold
up all other requests; a thread, which takes longer to start than a few checks, does it then."""
LARGE_BODIES = 2
"""Large bodies that are parsed, checked and stored at once: one is parsed while another is being
committed, and parsed they take four times their size each."""
Result = TypeVar("Result")


class ReceivedSubmission(NamedTuple):
    """A submission as it came over the network, unchecked.

    >>> ReceivedSubmission("ticket", "device", [3]).values
    [3]
    """

    ticket: str
    device: str
    values: Sequence[int]


class Collector:
    """One server process without its network and its periodic jobs (`Housekeeper`).

    >>> from unpoison.collector.storage.temporary_database import temporary_database
    >>> async def holder(token: str) -> Operator | None:
    ...     with temporary_database() as database:
    ...         async with Collector(Settings.load(), database, ["a key"]) as collector:
    ...             return await collector.operator(token)
    >>> asyncio.run(holder("a guess")) is None
    True
    """

    def __init__(
        self,
        settings: Settings,
        database: Database,
        keys: KeyRing | Sequence[str],
        clock: Clock | None = None,
        role: WorkerRole | None = None,
    ) -> None:
        self.settings, self.database = settings, database
        self.clock = clock or Clock()
        self.role = role or WorkerRole()
        # Plain texts are for examples and tests: keys that never change.
        self.keys = keys if isinstance(keys, KeyRing) else KeyRing([SigningKey(k) for k in keys])
        self.signer = self.keys.signer(self.clock.now())
        self.metrics = Metrics()
        batching = Batching(settings.batch_size, settings.batch_delay, settings.queue_size)
        # What one process forwards and another commits is counted once: where it waits, its queue,
        # and where it is committed, its transaction.
        observe = None if self.role.forwards else self.metrics.committed
        address = self.role.writer if self.role.forwards else None
        commit = None if address is None else ForwardedCommit(address)
        self.writer = Writer(database, self.clock, batching, observe, _lock_all_campaigns, commit)
        if self.role.answers:
            self.metrics.watch_queue(lambda: self.writer.waiting)
        self.estimator = CampaignEstimator(self.metrics.estimated)
        self.read_cache = ReadCache(database, self.clock, self.role.changes)
        has_webhook = settings.webhook_url is not None
        self.alarms = AlarmWatch(self.writer, self.read_cache, self.clock, has_webhook)
        self.rejections = RejectionCounter()
        self.open_enrolments = self._limit("open enrolment", settings.enrolments_per_hour, 3600)
        self.wrong_invites = self._limit("wrong invite", settings.guesses_per_minute, 60)
        self.wrong_tokens = self._limit("wrong token", settings.guesses_per_minute, 60)
        self.large_bodies = asyncio.Semaphore(LARGE_BODIES)
        """Held by a request with a large body from its parsing to its answer."""
        self.stored_estimates: dict[str, str] = {}
        """The last estimate that was stored for the page, by campaign."""
        self.stack = AsyncExitStack()

    def _limit(self, action: str, most: int, seconds: float) -> SharedLimit:
        """A limit by address that all servers of the database share."""
        # The oldest key: all servers have it, also while a new one is being handed out.
        return SharedLimit(
            action, most, seconds, self.clock, self.writer, lambda: self.keys.oldest.encode()
        )

    async def __aenter__(self) -> Collector:
        await self.stack.enter_async_context(self.writer)
        self.stack.push_async_callback(self._write_last_rejections)
        self.stack.callback(self.estimator.close)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop in the reverse order: the writer last, so that all that is queued is committed."""
        await self.stack.aclose()

    async def _write_last_rejections(self) -> None:
        # A database that did not answer before is not waited for once more.
        if not self.writer.failing:
            with suppress(Fault):
                await self.rejections.write(self.writer)

    async def operator(self, token: str) -> Operator | None:
        """The operator who holds a token, if anybody does."""
        stored = await self.read_cache.get("operators", stored_operators)
        setting = self.settings.operator_token
        from_settings = [] if setting is None else [_operator_of_settings(setting)]
        return holder_of(token, [*stored, *from_settings])

    async def campaign(self, campaign: str) -> Campaign:
        """A campaign as it was at most a second ago; transactions read it again."""
        if is_campaign_id(campaign):
            cached = await self.read_cache.get(
                f"campaign {campaign}", lambda connection: Campaigns.find(connection, campaign)
            )
            if cached is not None:
                return cached
        raise no_such_campaign()

    async def token_issuer(self, campaign: Campaign) -> TokenIssuer | None:
        """The issuer of a campaign's tokens, if its devices need them; it never changes."""
        if campaign.access != BY_TOKEN:
            return None
        return await self.read_cache.get(
            f"issuer {campaign.id}", lambda connection: TokenIssuer.find(connection, campaign.id)
        )

    async def status(self, campaign: str) -> dict[str, Any]:
        """A campaign's status for the page, from the read cache."""
        cached = await self.campaign(campaign)
        return await self.read_cache.get(
            f"status {campaign}", lambda connection: status(connection, cached)
        )

    async def change(self, function: Callable[[Connection], Result], entry: AuditEntry) -> Result:
        """Make a change for an operator, who sees it in the next response, and write it down."""
        now = self.clock.now()

        def change_and_record(connection: Connection) -> Result:
            result = function(connection)
            record(connection, entry, now)
            return result

        try:
            return await self.writer.call(change_and_record)
        finally:
            self.read_cache.clear()

    async def note(self, entry: AuditEntry) -> None:
        """Write down what an operator does without a change, such as an export."""
        now = self.clock.now()
        await self.writer.call(lambda connection: record(connection, entry, now))

    async def enrol(
        self,
        campaign: Campaign,
        device: str,
        tier: int,
        invite: str | None,
        token: str | None = None,
        previous: str | None = None,
    ) -> dict[str, Any]:
        """A ticket for a device; `previous` is the one that it had, if it was refused."""
        if not 0 <= tier < len(campaign.plan.all_tiers):
            raise Fault("unknown-tier", field="tier")
        code = None if invite is None else hashed(invite)
        issuer = await self.token_issuer(campaign)
        # Before the transaction: to verify a signature takes longer than the rest of an enrolment.
        spending = None if issuer is None else issuer.checked_hash(token)
        had = None if previous is None else self._genuine(campaign, device, previous)
        request = EnrolmentRequest(campaign, device_hash(device), tier, code, spending, had)
        issued: IssuedTicket | Fault = (await self.writer.apply(enrol_all, [request]))[0]
        if isinstance(issued, Fault):
            raise issued
        self.metrics.enrolments.inc()
        return self._signed_ticket(campaign, issued)

    def _genuine(self, campaign: Campaign, device: str, text: str) -> Ticket | None:
        """A ticket that was issued to this device in this campaign; None for any other text."""
        try:
            ticket = self.signer.read(text)
            ticket.check(campaign.id, device)
        except Fault:
            return None
        return ticket

    def _signed_ticket(self, campaign: Campaign, issued: IssuedTicket) -> dict[str, Any]:
        lifetime = int(self.settings.ticket_days * DAY)
        expires_at = issued.expires_at(lifetime, self.clock.now())
        ticket = Ticket(campaign.id, issued.number, issued.group, issued.device, expires_at)
        return {
            "ticket": self.signer.sign(ticket),
            "campaign": campaign.id,
            "fingerprint": campaign.plan.fingerprint,
            "tier": campaign.plan.tier_of(issued.group),
            "groups": [
                {"group": group, "reports": campaign.reports[group]}
                for group in campaign.plan.groups_of_user(issued.group)
            ],
            "expires_at": iso(expires_at),
        }

    async def submit(
        self, campaign: Campaign, received: Sequence[ReceivedSubmission]
    ) -> list[Fault | None]:
        """Check, store and count submissions; None for each that was counted, else why not."""
        check = partial(self._check_all, campaign, received, self.clock.now())
        checked = check() if len(received) <= CHECKED_INLINE else await asyncio.to_thread(check)
        valid = [outcome for outcome in checked if isinstance(outcome, Submission)]
        stored = iter(await self.writer.apply(submit_all, valid) if valid else [])
        faults = [
            next(stored) if isinstance(outcome, Submission) else outcome for outcome in checked
        ]
        self.metrics.accepted.inc(faults.count(None))
        return faults

    def _check_all(
        self, campaign: Campaign, received: Sequence[ReceivedSubmission], now: int
    ) -> list[Submission | Fault]:
        return [self._check(campaign, submission, now) for submission in received]

    def _check(
        self, campaign: Campaign, received: ReceivedSubmission, now: int
    ) -> Submission | Fault:
        try:
            ticket = self.signer.read(received.ticket)
            ticket.check(campaign.id, received.device)
            return Submission.checked(campaign, ticket, received.device, received.values, now)
        except Fault as fault:
            return fault.without_trace()

    async def summary(self, campaign: Campaign) -> Summary:
        """A campaign's counts as a Summary."""
        return await self.read_cache.read(lambda connection: Tallies.summary(connection, campaign))

    async def collected(self, campaign: Campaign) -> CollectedCounts:
        """A campaign's counts, and how many users of each group were to report."""

        def read(connection: Connection) -> CollectedCounts:
            # Counters come last: whoever is in the Summary is then among those who enrolled.
            summary = Tallies.summary(connection, campaign)
            counters = group_counters_of(connection, campaign.id)
            return CollectedCounts(summary, expected_reporters(campaign.plan, counters))

        return await self.read_cache.read(read)

    async def estimate(self, campaign: Campaign, request: EstimateRequest | None = None) -> str:
        """The Estimate as JSON; those by the default method are stored for the page's chart."""
        # In a thread: the first request loads all methods, and devices are served meanwhile.
        default = await asyncio.to_thread(EstimateRequest.of, campaign.plan)
        collected = await self.collected(campaign)
        text = await self.estimator.estimate(campaign, collected, request or default)
        # A cached estimate is the same object as when it was stored, and not stored again.
        if request in (None, default) and self.stored_estimates.get(campaign.id) is not text:
            with suppress(Fault):
                now = self.clock.now()
                store = partial(store_estimate, campaign=campaign.id, text=text, now=now)
                await self.writer.call(store)
                self.stored_estimates[campaign.id] = text
                await self.alarms.judge()
        return text

    def reject(self, campaign: str, fault: Fault) -> None:
        """Count a refusal; `campaign` is whatever the request had in its place."""
        self.metrics.rejected.labels(fault.code).inc()
        self.rejections.count(campaign, fault.code)


def _operator_of_settings(token: SecretStr) -> Operator:
    """The operator of the setting `operator_token`, for automation."""
    return Operator("settings", token_hash=hashed(token.get_secret_value()))


def _lock_all_campaigns(connection: Connection, requests: Sequence[Any]) -> None:
    """Lock all campaigns that a transaction is about before it handles the first request."""
    about_campaigns = [request for request in requests if not isinstance(request, TokenRequest)]
    lock_campaigns(connection, [request.campaign.id for request in about_campaigns])
