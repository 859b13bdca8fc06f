"""The collector under load: its server and our load generator on the same machine."""

from __future__ import annotations

import os
from importlib.util import find_spec

from unpoison.bench.campaign_list import campaign_list
from unpoison.bench.fleet import BATCH_SIZE, Fleet, served
from unpoison.bench.load import Outcome, fire
from unpoison.bench.result import Result, benchmarks
from unpoison.bench.steady_rate import steady_results
from unpoison.bench.workers import workers_compared
from unpoison.errors import MissingExtra

RATE = 1000.0
"""Submissions a second, sent one by one."""
SECONDS = 30
"""How long that goes on: the slowest per cent are then 300 submissions."""
BATCHED_DEVICES = 40_000
"""Devices that report through gateways: ten batches a gateway."""
GATEWAYS = 4
"""Connections that send batches."""
VALUES_A_SECOND = 100_000
"""Values in batches that are to be counted each second."""
POSTGRESQL = "UNPOISON_BENCH_POSTGRESQL"
"""The environment variable with the address of a PostgreSQL database to measure too."""


@benchmarks.register("collector", order=3)
def collector() -> list[Result]:
    """Measure enrolment, submissions and the list on SQLite, and on PostgreSQL if named."""
    if find_spec("uvicorn") is None:
        raise MissingExtra("the benchmark of the collector", "collector")
    databases = {"SQLite": None, "PostgreSQL": os.environ.get(POSTGRESQL)}
    return [
        result
        for name, url in databases.items()
        if name == "SQLite" or url
        for result in [*_measured(name, url), *workers_compared(name, url)]
    ]


def _measured(name: str, database: str | None) -> list[Result]:
    with served(database) as server:
        singles = Fleet.enrolled(server, int(RATE * SECONDS))
        steady = steady_results(f"collector, {name}", singles, RATE)
        gateway = Fleet.enrolled(server, BATCHED_DEVICES)
        batches = fire(server.port, gateway.batches(), connections=GATEWAYS)
        return [
            _enrolment(name, singles.enrolment),
            *steady,
            *_batched(name, batches, gateway),
            *campaign_list(name, server),
        ]


def _enrolment(name: str, outcome: Outcome) -> Result:
    rate = len(outcome.statuses) / outcome.seconds
    what = f"collector, {name}: enrolments, as fast as answers come"
    return Result(what, f"{rate:,.0f} a second", "–", None, "", None)


def _batched(name: str, outcome: Outcome, fleet: Fleet) -> list[Result]:
    rate = fleet.values / outcome.seconds
    accepted = sum(answer.count(b'"accepted"') for answer in outcome.answers)
    where = f"collector, {name}: batches of {BATCH_SIZE:,} submissions"
    sent = len(fleet.bodies)
    wrong = abs(sent - accepted) + abs(sent - fleet.counted())
    target = f"≥ {VALUES_A_SECOND:,}"
    return [
        Result(
            f"{where}: values", f"{rate:,.0f} a second", "–", None, target, rate >= VALUES_A_SECOND
        ),
        Result(f"{where}: lost, or counted twice", f"{wrong}", "–", None, "0", wrong == 0),
    ]
