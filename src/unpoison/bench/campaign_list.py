"""What a collector with many campaigns spends on a list of them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from unpoison.bench.process_time import tree_seconds
from unpoison.bench.result import Result, duration
from unpoison.collector.process import CollectorProcess

CAMPAIGNS = 3000
"""Campaigns of a collector: as many as a large operator keeps over years."""
CREATORS = 8
"""Requests at once that create campaigns: a transaction then has several of them."""
PAGES = (100, 500)
"""Entries of a page: the default, and the most that a collector gives."""
REQUESTS = 20
"""Requests over which the time is averaged: the system counts it in hundredths of a second."""
MOST_SECONDS = 0.1
"""Seconds of processor time that a request may take: the operator's page sends one every four
seconds, and so takes a fortieth of a core at most."""


def campaign_list(name: str, server: CollectorProcess) -> list[Result]:
    """Measure the processor time of the server for pages of a list of many campaigns."""
    with ThreadPoolExecutor(CREATORS) as pool:
        bodies = map(_campaign, range(CAMPAIGNS))
        list(pool.map(partial(server.operator.post, "/v1/campaigns"), bodies))
    return [_page(name, server, entries) for entries in PAGES]


def _campaign(number: int) -> dict[str, Any]:
    # Plans differ, as those of real campaigns do: what is remembered by plan helps little.
    plan = {"mechanism": "piecewise-integer", "epsilon": 1, "low": 0, "high": 100 + number}
    return {"name": f"Campaign {number}", "plan": plan}


def _page(name: str, server: CollectorProcess, entries: int) -> Result:
    started = tree_seconds(server.pid)
    for _ in range(REQUESTS):
        server.operator.get(f"/v1/campaigns?limit={entries}")
    ended = tree_seconds(server.pid)
    spent = float("nan")
    if started is not None and ended is not None:
        spent = (ended - started) / REQUESTS
    what = f"collector, {name}: list of {CAMPAIGNS:,} campaigns, {entries} a page: CPU a request"
    target = f"≤ {MOST_SECONDS * 1000:g} ms"
    return Result(what, duration(spent), "–", None, target, spent <= MOST_SECONDS)
