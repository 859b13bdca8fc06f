"""Many simulated devices that take part in a campaign over HTTP, some of which attack."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from unpoison.attacks import parse_attack
from unpoison.client import (
    Device,
    Draw,
    Enrolment,
    Exchange,
    Ledger,
    Policy,
    Response,
    Transport,
    decode_response,
    submission,
)
from unpoison.errors import CollectorRefused
from unpoison.mechanisms.exact import exact
from unpoison.plan import Plan
from unpoison.simulation.ground_truth import GroundTruth
from unpoison.simulation.honest_inputs import HonestInputs
from unpoison.types import FloatArray

THREADS = 16
"""Gateways that report at the same time; they mostly wait for answers."""
DEVICES_PER_GATEWAY = 100
"""Devices whose submissions a gateway hands in together."""
Advance = Callable[[int], None]


class Gateway:
    """A connection that many devices share, with a cache of what it has read.

    >>> class Collector:
    ...     requests = 0
    ...     def exchange(self, method, path, body=None):
    ...         self.requests += 1
    ...         return Response(200, b"{}")
    >>> collector = Collector()
    >>> gateway = Gateway(collector)
    >>> for _ in range(3):
    ...     answer = gateway.exchange("GET", "/v1/campaigns/k3v9x2m4q7w1")
    >>> collector.requests
    1
    """

    def __init__(self, transport: Exchange) -> None:
        self.transport = transport
        self.answers: dict[str, Response] = {}

    def exchange(self, method: str, path: str, body: bytes | None = None) -> Response:
        """Send a request to the collector; a repeated GET is answered from the cache."""
        if method != "GET":
            return self.transport.exchange(method, path, body)
        if path not in self.answers:
            self.answers[path] = self.transport.exchange(method, path, body)
        return self.answers[path]

    def send(self, campaign: str, submissions: Sequence[dict[str, Any]]) -> None:
        """Hand in the submissions of devices; the refusal of any of them is an error."""
        body = json.dumps({"submissions": list(submissions)}).encode()
        path = f"/v1/campaigns/{campaign}/reports/batch"
        answer = decode_response(self.exchange("POST", path, body))
        for result in answer["results"]:
            if result["status"] != "accepted":
                raise CollectorRefused(200, result["error"]["code"], result["error"]["message"])


@dataclass(frozen=True, eq=False)
class Fleet:
    """Devices with a value and an invite each; those in `attackers` send poison instead.

    Honest ones run the client as a real device does, with a ledger in memory. Attackers enrol like
    all others, and then send what they like in the group that they were given. Gateways hand in the
    submissions of a hundred devices at a time.

    >>> plan = Plan.new("piecewise-integer", epsilon=1.0, low=0, high=1)
    >>> fleet = Fleet(plan, np.array([0.25, 0.75]), np.array([False, True]), "point:C")
    >>> fleet.truth.mean
    -0.5
    """

    plan: Plan
    values: FloatArray
    attackers: np.ndarray
    attack: str
    seed: int = 1

    @cached_property
    def truth(self) -> GroundTruth:
        """The statistics of the honest devices' values."""
        honest = self.plan.inputs_of(self.values[~self.attackers])
        return GroundTruth(self.plan, HonestInputs(honest), float(self.attackers.mean()))

    @cached_property
    def policy(self) -> Policy:
        """The policy of every device: it allows just this campaign."""
        return Policy(
            low=self.plan.low,
            high=self.plan.high,
            step=self.plan.step,
            categories=self.plan.categories,
            max_epsilon=self.plan.epsilon,
            lifetime_epsilon=self.plan.epsilon,
        )

    def report(
        self, collector: str, campaign: str, invites: Sequence[str], advance: Advance
    ) -> None:
        """Let all devices report, through as many gateways at a time as there are threads."""
        gateways = max(1, len(self.values) // DEVICES_PER_GATEWAY)

        def report_through_gateway(devices: np.ndarray) -> None:
            with Transport(collector) as transport:
                gateway = Gateway(transport)
                submissions = []
                for number in map(int, devices):
                    device = Device(collector, self.policy, Ledger(None), gateway)
                    invitation = (campaign, invites[number])
                    submissions.append(self._submission(device, number, invitation))
                gateway.send(campaign, submissions)
            advance(len(devices))

        with ThreadPoolExecutor(THREADS) as pool:
            batches = np.array_split(np.arange(len(self.values)), gateways)
            for done in [pool.submit(report_through_gateway, batch) for batch in batches]:
                done.result()

    def _submission(
        self, device: Device, number: int, invitation: tuple[str, str]
    ) -> dict[str, Any]:
        """The submission of a device that has enrolled; its ledger is in memory only."""
        with device.ledger as ledger:
            enrolment = device.enrol(*invitation)
            if not self.attackers[number]:
                return submission(device.draw(enrolment, float(self.values[number])))
            entry = ledger.entry(device.collector, invitation[0])
            if entry is None:
                raise LookupError("a device that has enrolled is in its ledger")
            cells = self._poison(enrolment, number)
            draw = Draw(enrolment.ticket, enrolment.groups, cells, enrolment.epsilon)
            return submission(ledger.record(entry, draw, exact(self.plan.epsilon)))

    def _poison(self, enrolment: Enrolment, number: int) -> tuple[int, ...]:
        """The attack's cells, as many as the ticket asks for."""
        attack, rng = parse_attack(self.attack), np.random.default_rng([self.seed, number])
        cells: list[int] = []
        for group in enrolment.groups:
            reports = self.plan.all_groups[group].reports
            poison = attack.poison(self.truth.target(group), reports, rng)
            cells += [int(cell) for cell in poison]
        return tuple(cells)
