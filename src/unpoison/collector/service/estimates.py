"""Estimates of campaigns: made in a process of their own, kept until counts change."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import Any

from unpoison.collector.campaigns.campaigns import Campaign, parsed_plan
from unpoison.collector.campaigns.tallies import summary_of_counts
from unpoison.collector.faults import Fault
from unpoison.errors import InvalidParameter, UnpoisonError
from unpoison.estimate.methods import default_method, estimate_summary, find_method
from unpoison.estimate.statistic import Statistic
from unpoison.plan import Plan
from unpoison.summary import Summary

KEPT = 64
MOST_QUESTIONS = 8
POLITENESS = 10
"""Reports are answered first: an estimate can wait, a device gives up."""
MOST_SECONDS = 120.0
Observe = Callable[[float], None]


@dataclass(frozen=True)
class Question:
    """Which estimate is wanted, in full, so that one question has one spelling.

    >>> from unpoison import Plan
    >>> plan = Plan.new("piecewise-integer", low=0, high=1)
    >>> Question.of(plan) == Question.of(plan, "joint", "mean"), Question.of(plan, "emf*").method
    (True, 'emf-star')
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
    ) -> Question:
        """What was asked, if there is such a method and the plan can answer it."""
        try:
            asked = Statistic.of(plan, statistic, post_processing)
            chosen = find_method(method or default_method(plan)).name
        except InvalidParameter as fault:
            raise Fault("invalid-request", f"No estimate: {fault}.", fault.parameter) from None
        return cls(chosen, asked.name, asked.post_processing if plan.categorical else None)

    @property
    def costly(self) -> bool:
        """Whether whoever asks has a say in how long the answer takes."""
        return ":" in self.method


def answered(plan_json: str, counts: Any, question: Question) -> str:
    """The Estimate of counts as JSON: what the other process does.

    >>> import numpy as np
    >>> from unpoison import Plan, simulate
    >>> plan = Plan.new("piecewise-integer", epsilon=1.0, min_epsilon=0.5, low=0, high=1)
    >>> run = simulate(plan, np.full(2000, 0.3), rng=np.random.default_rng(1))
    >>> answered(plan.to_json(), run.summary.counts, Question("ostrich", "mean"))[:21]
    '{"method": "ostrich",'
    """
    summary = summary_of_counts(parsed_plan(plan_json), counts)
    return estimate_summary(
        summary,
        question.method,
        statistic=question.statistic,
        post_processing=question.post_processing,
    ).to_json()


class Analyst:
    """Answers questions, one at a time; equal questions about equal counts are answered once.

    >>> Analyst().answers
    OrderedDict()
    """

    def __init__(self, observe: Observe | None = None) -> None:
        self.observe: Observe = observe or (lambda seconds: None)
        self.answers: OrderedDict[tuple[str, int, Question], str] = OrderedDict()
        self.running: dict[tuple[str, Question], asyncio.Task[str]] = {}
        self.turn = asyncio.Lock()
        self.pool: ProcessPoolExecutor | None = None

    async def answer(self, campaign: Campaign, summary: Summary, question: Question) -> str:
        """The Estimate as JSON; a question that is being answered for fewer reports is joined."""
        users = int(summary.total_users)
        if users < campaign.min_users:
            message = f"{users} users have reported; estimates begin at {campaign.min_users}."
            raise Fault("not-enough-users", message)
        key = (campaign.id, int(summary.counts.sum()), question)
        if key in self.answers:
            self.answers.move_to_end(key)
            return self.answers[key]
        task = self.running.get((campaign.id, question))
        if task is None:
            if len(self.running) >= MOST_QUESTIONS:
                raise Fault("unavailable", "Too many estimates are being made: try again later.")
            task = asyncio.create_task(self._made(campaign, summary, question))
            self.running[campaign.id, question] = task
            task.add_done_callback(lambda made: self._ended(made, campaign.id, question))
        return await asyncio.shield(task)

    def _ended(self, task: asyncio.Task[str], campaign: str, question: Question) -> None:
        """A fault that nobody waits for any more is no fault: it must not be logged as one."""
        self.running.pop((campaign, question), None)
        if not task.cancelled():
            task.exception()

    async def _made(self, campaign: Campaign, summary: Summary, question: Question) -> str:
        async with self.turn:
            started = time.monotonic()
            text = await self._from_process(campaign, summary, question)
            self.observe(time.monotonic() - started)
        self.answers[campaign.id, int(summary.counts.sum()), question] = text
        if len(self.answers) > KEPT:
            self.answers.popitem(last=False)
        return text

    async def _from_process(self, campaign: Campaign, summary: Summary, question: Question) -> str:
        """The answer; a process that takes too long, or has died, is replaced by another."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(MOST_SECONDS):
                return await loop.run_in_executor(
                    self._process(), answered, campaign.plan_json, summary.counts, question
                )
        except (TimeoutError, BrokenProcessPool):
            await asyncio.to_thread(self._end_process)
            raise Fault("unavailable", "The estimate was interrupted: ask again.") from None
        except UnpoisonError as fault:
            raise Fault("invalid-request", f"No estimate: {fault}.") from None

    def _process(self) -> ProcessPoolExecutor:
        """Started when it is first needed, afresh if it has died."""
        if self.pool is None:
            context = multiprocessing.get_context("spawn")
            self.pool = ProcessPoolExecutor(1, mp_context=context, initializer=_follow_server)
        return self.pool

    def close(self) -> None:
        """Stop; estimates that are being made or waited for are given up."""
        for task in self.running.values():
            task.cancel()
        self._end_process()

    def _end_process(self) -> None:
        if self.pool is not None:
            for process in list((self.pool._processes or {}).values()):
                process.terminate()
            self.pool.shutdown(wait=True, cancel_futures=True)
            self.pool = None


def _follow_server() -> None:
    """Whoever presses Ctrl-C means the server, which then stops us; if it is killed, we end too."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(os, "nice"):
        os.nice(POLITENESS)
    threading.Thread(target=_end_with_server, daemon=True).start()


def _end_with_server() -> None:
    server = multiprocessing.parent_process()
    if server is not None:
        server.join()
        os._exit(1)
