"""Many simulated devices that take part in a campaign over HTTP, some of which attack."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from unpoison.attacks import parse_attack
from unpoison.client import Device, Enrolment, Ledger, Policy, Transport
from unpoison.client.ledger import Draw
from unpoison.exact import exact
from unpoison.floor import Inputs
from unpoison.plan import Plan
from unpoison.truth import Truth
from unpoison.types import FloatArray

THREADS = 16
Advance = Callable[[int], None]


@dataclass(frozen=True, eq=False)
class Fleet:
    """Devices with a value and an invite each; those in `attackers` send poison instead.

    Honest ones run the client as a real device does, with a ledger in memory. Attackers enrol like
    all others, and then send what they like in the group that they were given.

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
    def truth(self) -> Truth:
        """What there is to know about the honest devices."""
        return Truth(self.plan, Inputs(self.plan.normalise(self.values[~self.attackers])))

    @property
    def policy(self) -> Policy:
        """What each device allows: just this campaign."""
        return Policy(
            low=self.plan.low,
            high=self.plan.high,
            categories=self.plan.categories,
            max_epsilon=self.plan.epsilon,
            lifetime_epsilon=self.plan.epsilon,
        )

    def report(
        self, collector: str, campaign: str, invites: Sequence[str], advance: Advance
    ) -> None:
        """Let all devices report, some at a time; each thread keeps one connection."""
        shares = np.array_split(np.arange(len(self.values)), THREADS)

        def some(devices: np.ndarray) -> None:
            with Transport(collector) as transport:
                for device in devices.tolist():
                    self._report_one(collector, campaign, device, invites[device], transport)
                    advance(1)

        with ThreadPoolExecutor(THREADS) as pool:
            for done in [pool.submit(some, share) for share in shares]:
                done.result()

    def _report_one(
        self, collector: str, campaign: str, number: int, invite: str, transport: Transport
    ) -> None:
        with Ledger(None) as ledger:
            device = Device(collector, self.policy, ledger, transport)
            if not self.attackers[number]:
                device.report(campaign, float(self.values[number]), invite)
                return
            enrolment = device.enrol(campaign, invite)
            entry = ledger.entry(device.collector, campaign)
            if entry is not None:
                draw = Draw(
                    enrolment.ticket,
                    enrolment.groups,
                    self._poison(enrolment, number),
                    enrolment.epsilon,
                )
                device.send(ledger.record(entry, draw, exact(self.plan.epsilon)), invite)

    def _poison(self, enrolment: Enrolment, number: int) -> tuple[int, ...]:
        """As many cells as the ticket asks for, where the attack wants them."""
        attack, rng = parse_attack(self.attack), np.random.default_rng([self.seed, number])
        cells: list[int] = []
        for group in enrolment.groups:
            reports = self.plan.all_groups[group].reports
            poison = attack.poison(self.truth.target(group), reports, rng)
            cells += [int(cell) for cell in poison]
        return tuple(cells)
