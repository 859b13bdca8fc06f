"""Devices for measurements under load: enrolled, with the requests that they will send."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from unpoison.bench.load import Outcome, fire, post
from unpoison.collector.process import (
    CollectorProcess,
    accept_new_keys,
    collector_process,
)
from unpoison.plan import Plan

BATCH_SIZE = 1000
"""Submissions in a batch, as a gateway of a thousand devices sends them."""
PLAN = Plan.new("piecewise-integer", epsilon=1.0, min_epsilon=0.0625, low=0, high=100)


def _campaign(server: CollectorProcess) -> str:
    """The path of a new campaign."""
    body = {"name": "Load", "plan": PLAN.to_dict(), "open": True}
    return f"/v1/campaigns/{server.operator.post('/v1/campaigns', body)['id']}"


@contextmanager
def served(database: str | None, workers: int = 1) -> Iterator[CollectorProcess]:
    """A collector on a database, or on a new SQLite file if none is named."""
    with TemporaryDirectory() as folder:
        if database is None:
            options = []
        else:
            options = ["--database", database]
            # The database knows the keys of the server that was measured before.
            accept_new_keys(Path(folder), *options)
        with collector_process(Path(folder), *options, "--workers", str(workers)) as server:
            yield server


@dataclass(frozen=True)
class Fleet:
    """Devices with tickets, and the submissions that they will send."""

    server: CollectorProcess
    path: str
    bodies: Sequence[dict[str, Any]]
    enrolment: Outcome

    @classmethod
    def enrolled(cls, server: CollectorProcess, devices: int) -> Fleet:
        """Enrol so many devices in a new campaign, as fast as answers come."""
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
        """One request for each device."""
        return [post(f"{self.path}/reports", body) for body in self.bodies]

    def batches(self) -> list[bytes]:
        """Requests of gateways, each for many devices."""
        batches = [
            self.bodies[first : first + BATCH_SIZE]
            for first in range(0, len(self.bodies), BATCH_SIZE)
        ]
        return [post(f"{self.path}/reports/batch", {"submissions": batch}) for batch in batches]

    @property
    def values(self) -> int:
        """The number of values that all devices send."""
        return sum(len(body["values"]) for body in self.bodies)

    def counted(self) -> int:
        """The number of users whose reports the server has counted."""
        from unpoison.summary import Summary

        data = self.server.operator.download(f"{self.path}/summary")
        return round(Summary.from_bytes(data).total_users)
