"""The collector under load: its server and our load generator on the same machine."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from unpoison.bench.campaign_list import campaign_list
from unpoison.bench.load import Outcome, fire, post
from unpoison.bench.result import Result, benchmarks, duration
from unpoison.collector.process import CollectorProcess, collector_process
from unpoison.errors import MissingExtra
from unpoison.plan import Plan

RATE = 1000.0
"""Submissions a second, sent one by one."""
SECONDS = 30
"""How long that goes on: the slowest per cent are then 300 submissions."""
BATCHED_DEVICES = 40_000
"""Devices that report through gateways: ten batches a gateway."""
BATCH_SIZE = 1000
"""Submissions in a batch, as a gateway of a thousand devices sends them."""
GATEWAYS = 4
"""Connections that send batches."""
MOST_P99 = 0.25
"""Seconds within which 99 % of single submissions are to be answered."""
VALUES_A_SECOND = 100_000
"""Values in batches that are to be counted each second."""
POSTGRESQL = "UNPOISON_BENCH_POSTGRESQL"
"""The environment variable with the address of a PostgreSQL database to measure too."""
PLAN = Plan.new("piecewise-integer", epsilon=1.0, min_epsilon=0.0625, low=0, high=100)


@benchmarks.register("collector", order=3)
def collector() -> list[Result]:
    """Measure enrolment, submissions and the list on SQLite, and on PostgreSQL if named."""
    if find_spec("uvicorn") is None:
        raise MissingExtra("the benchmark of the collector", "collector")
    results = _measured("SQLite", None)
    url = os.environ.get(POSTGRESQL)
    return results + (_measured("PostgreSQL", url) if url else [])


def _measured(name: str, database: str | None) -> list[Result]:
    with _served(database) as server:
        singles = _Fleet.enrolled(server, int(RATE * SECONDS))
        steady = fire(server.port, singles.requests(), RATE)
        gateway = _Fleet.enrolled(server, BATCHED_DEVICES)
        batches = fire(server.port, gateway.batches(), connections=GATEWAYS)
        return [
            _enrolment(name, singles.enrolment),
            *_steady(name, steady, singles.counted()),
            *_batched(name, batches, gateway),
            *campaign_list(name, server),
        ]


def _enrolment(name: str, outcome: Outcome) -> Result:
    rate = len(outcome.statuses) / outcome.seconds
    what = f"collector, {name}: enrolments, as fast as answers come"
    return Result(what, f"{rate:,.0f} a second", "–", None, "", None)


def _steady(name: str, outcome: Outcome, counted: int) -> list[Result]:
    sent = len(outcome.statuses)
    where = f"collector, {name}: {RATE:,.0f} submissions a second for {SECONDS} s"
    wrong = abs(sent - outcome.good) + abs(sent - counted)
    rate, slow = sent / outcome.seconds, outcome.percentile(99)
    half = duration(outcome.percentile(50))
    return [
        Result(
            f"{where}: reached", f"{rate:,.0f} a second", "–", None, "≥ 990", rate >= 0.99 * RATE
        ),
        Result(
            f"{where}: 99 % answered within (half within {half})",
            duration(slow),
            "–",
            None,
            f"≤ {MOST_P99 * 1000:g} ms",
            slow <= MOST_P99,
        ),
        Result(f"{where}: lost, or counted twice", f"{wrong}", "–", None, "0", wrong == 0),
    ]


def _batched(name: str, outcome: Outcome, fleet: _Fleet) -> list[Result]:
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


def _campaign(server: CollectorProcess) -> str:
    """The path of a new campaign."""
    body = {"name": "Load", "plan": PLAN.to_dict(), "open": True}
    return f"/v1/campaigns/{server.operator.post('/v1/campaigns', body)['id']}"


@contextmanager
def _served(database: str | None) -> Iterator[CollectorProcess]:
    with TemporaryDirectory() as folder:
        options = [] if database is None else ["--database", database]
        with collector_process(Path(folder), *options) as server:
            yield server


@dataclass(frozen=True)
class _Fleet:
    """Devices with tickets, and the submissions that they will send."""

    server: CollectorProcess
    path: str
    bodies: Sequence[dict[str, Any]]
    enrolment: Outcome

    @classmethod
    def enrolled(cls, server: CollectorProcess, devices: int) -> _Fleet:
        path = _campaign(server)
        codes = server.operator.post(f"{path}/invites", {"count": devices})["invites"]
        enrolments = [{"device": secrets.token_hex(32), "invite": code} for code in codes]
        outcome = fire(server.port, [post(f"{path}/tickets", body) for body in enrolments])
        rng = np.random.default_rng(1)
        draw = partial(rng.integers, 0, PLAN.cells)
        bodies = []
        for enrolment, answer in zip(enrolments, outcome.answers, strict=True):
            ticket = json.loads(answer)
            values = draw(ticket["groups"][0]["reports"]).tolist()
            device = enrolment["device"]
            bodies.append({"ticket": ticket["ticket"], "device": device, "values": values})
        return cls(server, path, bodies, outcome)

    def requests(self) -> list[bytes]:
        return [post(f"{self.path}/reports", body) for body in self.bodies]

    def batches(self) -> list[bytes]:
        batches = [
            self.bodies[first : first + BATCH_SIZE]
            for first in range(0, len(self.bodies), BATCH_SIZE)
        ]
        return [post(f"{self.path}/reports/batch", {"submissions": batch}) for batch in batches]

    @property
    def values(self) -> int:
        return sum(len(body["values"]) for body in self.bodies)

    def counted(self) -> int:
        """The number of users whose reports the server has counted."""
        from unpoison.summary import Summary

        data = self.server.operator.download(f"{self.path}/summary")
        return round(Summary.from_bytes(data).total_users)
