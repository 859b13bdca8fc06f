"""Estimates of campaigns: made in a worker process, and cached until counts change."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from unpoison.collector.campaigns.campaign import Campaign, parsed_plan
from unpoison.collector.campaigns.tallies import summary_of_counts
from unpoison.collector.faults import Fault
from unpoison.collector.service.worker_process import WorkerEnded, WorkerProcess
from unpoison.errors import InvalidParameter, UnpoisonError
from unpoison.estimate.statistic import Statistic
from unpoison.plan import Plan
from unpoison.summary import Summary

CACHED_ESTIMATES = 64
"""Estimates kept as JSON, of about 20 kB each; the one used longest ago is dropped first."""
MOST_PENDING = 8
"""Estimates that may be made or wait at once. They take turns, so beyond this a caller is refused
at once and not left to wait behind all others."""
TIMEOUT_SECONDS = 120.0
"""After this long an estimate is given up: a method's parameters can make it endless."""
Observe = Callable[[float], None]
"""Hears how many seconds each estimate took."""


@dataclass(frozen=True)
class EstimateRequest:
    """Which estimate is wanted: defaults filled in, names canonical, so that equals compare equal.

    >>> from unpoison import Plan
    >>> plan = Plan.new("piecewise-integer", low=0, high=1)
    >>> EstimateRequest.of(plan) == EstimateRequest.of(plan, "joint", "mean")
    True
    >>> EstimateRequest.of(plan, "emf*").method
    'emf-star'
    """

    method: str
    statistic: str
    post_processing: str | None = None

    @classmethod
    def of(
        cls,
        plan: Plan,
        method: str | None = None,
        statistic: str | None = None,
        post_processing: str | None = None,
    ) -> EstimateRequest:
        """Check a request's parameters against the methods there are, and against the plan."""
        from unpoison.estimate.methods import default_method, find_method

        try:
            wanted = Statistic.of(plan, statistic, post_processing)
            method = find_method(method or default_method(plan)).name
        except InvalidParameter as fault:
            raise Fault("invalid-request", f"No estimate: {fault}.", fault.parameter) from None
        return cls(method, wanted.name, wanted.post_processing if plan.categorical else None)

    @property
    def costly(self) -> bool:
        """Whether the method has parameters, by which a caller can make it arbitrarily slow."""
        return ":" in self.method


class CollectedCounts(NamedTuple):
    """The reports of a campaign, and the users of each group who were to send them.

    >>> import numpy as np
    >>> plan = Plan.new("k-rr-integer", epsilon=1.0, min_epsilon=1.0, categories=["tea", "milk"])
    >>> CollectedCounts(summary_of_counts(plan, np.array([[2, 5]])), (9.0,)).enrolled
    (9.0,)
    """

    summary: Summary
    enrolled: tuple[float, ...]


def estimate_json(
    plan_json: str, counts: Any, request: EstimateRequest, enrolled: tuple[float, ...] | None = None
) -> str:
    """Estimate counts; returns the Estimate as JSON. This runs in the worker process.

    `enrolled` are the users of each group who were to report, for methods that compare them with
    those who did.

    >>> import numpy as np
    >>> from unpoison import Plan, simulate
    >>> plan = Plan.new("piecewise-integer", epsilon=1.0, min_epsilon=0.5, low=0, high=1)
    >>> run = simulate(plan, np.full(2000, 0.3), rng=np.random.default_rng(1))
    >>> estimate_json(plan.to_json(), run.summary.counts, EstimateRequest("ostrich", "mean"))[:21]
    '{"method": "ostrich",'
    """
    from unpoison.estimate.methods import FilterMethod, estimate_summary, find_method

    summary = summary_of_counts(parsed_plan(plan_json), counts)
    method = find_method(request.method)
    compares = isinstance(method, FilterMethod) and "enrolled" in method.option_names
    return estimate_summary(
        summary,
        request.method,
        **({"enrolled": enrolled} if compares and enrolled is not None else {}),
        statistic=request.statistic,
        post_processing=request.post_processing,
    ).to_json()


class CampaignEstimator:
    """Makes estimates one at a time; equal requests about equal counts are estimated once.

    >>> CampaignEstimator().cache
    OrderedDict()
    """

    def __init__(self, observe: Observe | None = None) -> None:
        self.observe: Observe = observe or (lambda seconds: None)
        self.cache: OrderedDict[tuple[str, int, EstimateRequest], str] = OrderedDict()
        """Estimates by campaign, number of reports and request; the oldest use comes first.

        Counts of a campaign only grow, so the number of reports identifies them."""
        self.pending: dict[tuple[str, EstimateRequest], asyncio.Task[str]] = {}
        self.turn = asyncio.Lock()
        self.worker: WorkerProcess | None = None

    async def estimate(
        self, campaign: Campaign, collected: CollectedCounts, request: EstimateRequest
    ) -> str:
        """The Estimate as JSON: from the cache, or made now.

        While one is being made, later callers get it too, even if more reports have come since:
        a campaign that grows all the time would otherwise never be done.
        """
        summary = collected.summary
        users = int(summary.total_users)
        if users < campaign.min_users:
            message = f"{users} users have reported; estimates begin at {campaign.min_users}."
            raise Fault("not-enough-users", message)
        key = (campaign.id, int(summary.counts.sum()), request)
        if key in self.cache:
            self.cache.move_to_end(key)
            return self.cache[key]
        task = self.pending.get((campaign.id, request))
        if task is None:
            if len(self.pending) >= MOST_PENDING:
                raise Fault("unavailable", "Too many estimates are being made: try again later.")
            task = asyncio.create_task(self._make(campaign, collected, request))
            self.pending[campaign.id, request] = task
            task.add_done_callback(lambda done: self._forget_pending(done, campaign.id, request))
        # Shielded: a caller who disconnects must not cancel the estimate of the others.
        return await asyncio.shield(task)

    def _forget_pending(
        self, task: asyncio.Task[str], campaign: str, request: EstimateRequest
    ) -> None:
        self.pending.pop((campaign, request), None)
        # Its exception is looked at, else asyncio logs it if all callers have disconnected.
        if not task.cancelled():
            task.exception()

    async def _make(
        self, campaign: Campaign, collected: CollectedCounts, request: EstimateRequest
    ) -> str:
        async with self.turn:
            started = time.monotonic()
            text = await self._from_worker(campaign, collected, request)
            self.observe(time.monotonic() - started)
        self.cache[campaign.id, int(collected.summary.counts.sum()), request] = text
        if len(self.cache) > CACHED_ESTIMATES:
            self.cache.popitem(last=False)
        return text

    async def _from_worker(
        self, campaign: Campaign, collected: CollectedCounts, request: EstimateRequest
    ) -> str:
        """Estimate in the worker process; one that takes too long or has died is replaced."""
        worker = self.worker = self.worker or WorkerProcess()
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                counts, enrolled = collected.summary.counts, collected.enrolled
                return await asyncio.to_thread(
                    worker.run, estimate_json, campaign.plan_json, counts, request, enrolled
                )
        except (TimeoutError, WorkerEnded):
            self.worker = None
            await asyncio.to_thread(worker.end)
            raise Fault("unavailable", "The estimate was interrupted: ask again.") from None
        except UnpoisonError as fault:
            raise Fault("invalid-request", f"No estimate: {fault}.") from None

    def close(self) -> None:
        """Stop; estimates that are pending are given up."""
        for task in self.pending.values():
            task.cancel()
        if self.worker is not None:
            self.worker.end()
            self.worker = None
