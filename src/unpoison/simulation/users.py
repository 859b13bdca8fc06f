"""Simulated users one by one: who attacks, who is in which group, and what each sends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from unpoison.attacks import Attack, parse_attack
from unpoison.errors import InvalidParameter
from unpoison.plan import Plan
from unpoison.plan.assignment import partition
from unpoison.reports.perturbation import perturb_group
from unpoison.reports.values import checked_values, tiers_of
from unpoison.simulation.faults import BrokenClients
from unpoison.simulation.ground_truth import GroundTruth, Simulation
from unpoison.simulation.honest_inputs import HonestInputs
from unpoison.summary.binning import Binner
from unpoison.types import BoolArray, FloatArray, IntArray

USERS_AT_ONCE = 2**15
"""Honest users whose reports are drawn at a time, so that memory does not grow with users."""


@dataclass(frozen=True)
class SimulatedUsers:
    """Users with their groups and roles drawn; `members[t]` are the users of group t.

    `attackers` says of each user whether it attacks, `tiers` which tier it is in, `broken` whether
    its client is one of the `broken_clients`, where there are any. Every group has a
    stream of its own for honest noise and a seed for its poison, so that the reports of one group
    do not depend on those of another.

    >>> plan = Plan.new(epsilon=0.5, min_epsilon=0.25, low=0, high=1)
    >>> values, rng = np.full(100, 0.25), np.random.default_rng(1)
    >>> users = SimulatedUsers.draw(plan, values, "point:C", 0.2, rng)
    >>> int(users.attackers.sum()), [len(members) for members in users.members], users.truth.mean
    (20, [50, 50], -0.5)
    """

    plan: Plan
    inputs: FloatArray
    attack: Attack
    attackers: np.ndarray
    tiers: IntArray
    members: list[IntArray]
    streams: list[np.random.Generator]
    poison_seeds: list[int]
    shared_poison: bool
    broken_clients: BrokenClients | None = None
    broken: BoolArray | None = None

    @classmethod
    def draw(
        cls,
        plan: Plan,
        values: Any,
        attack: str | Attack,
        byzantine_fraction: float,
        rng: np.random.Generator,
        budgets: Any = None,
        shared_poison: bool = True,
        broken_clients: BrokenClients | None = None,
    ) -> SimulatedUsers:
        """Choose at random who attacks and who is in which group."""
        attack = parse_attack(attack)
        inputs = plan.inputs_of(checked_values(plan, values))
        if len(inputs) < len(plan.all_groups):
            raise InvalidParameter("values", "must be at least one a group", len(inputs))
        streams = rng.spawn(len(plan.all_groups) + 2)
        attackers = np.zeros(len(inputs), dtype=bool)
        count = round(byzantine_fraction * len(inputs)) if attack.active else 0
        attackers[streams[-1].permutation(len(inputs))[:count]] = True
        tiers = tiers_of(plan, len(inputs), budgets)
        placement = attack.placement(plan)
        if placement is None:
            members = partition(plan, tiers, streams[-2])
        else:
            numbers = placement.divide(plan, len(inputs), count)
            members = _placed_members(attackers, *numbers, streams[-2])
        seeds = streams[-1].integers(2**63, size=len(members)).tolist()
        broken = broken_clients.draw(plan, inputs, streams[-1]) if broken_clients else None
        return cls(
            plan,
            inputs,
            attack,
            attackers,
            tiers,
            members,
            streams[:-2],
            seeds,
            shared_poison,
            broken_clients,
            broken,
        )

    @cached_property
    def truth(self) -> GroundTruth:
        """The statistics of the honest users."""
        honest = HonestInputs(self.inputs[~self.attackers])
        return GroundTruth(self.plan, honest, float(self.attackers.mean()))

    def reports(self) -> Iterator[tuple[int, FloatArray, int]]:
        """(group, reports, users done) chunk by chunk: honest users first, then the attackers."""
        for group in range(len(self.members)):
            for reports, users in self.honest_reports(group):
                yield group, reports, users
            yield group, self.poison(group), self.attackers_in(group)

    def honest_reports(self, group: int) -> Iterator[tuple[FloatArray, int]]:
        """Reports of the honest users of a group, chunk by chunk, and how many users sent them."""
        members = self.members[group]
        honest = members[~self.attackers[members]]
        for first in range(0, len(honest), USERS_AT_ONCE):
            chunk = honest[first : first + USERS_AT_ONCE]
            yield self._reports_of(chunk, group), len(chunk)

    def _reports_of(self, users: IntArray, group: int) -> FloatArray:
        """The reports of some honest users of a group; those with broken clients come last."""
        inputs, stream = self.inputs[users], self.streams[group]
        if self.broken_clients is None or self.broken is None:
            return perturb_group(self.plan, group, inputs, stream)
        broken = self.broken[users]
        sent = perturb_group(self.plan, group, inputs[~broken], stream)
        fault = self.broken_clients.fault
        faulty = fault.accepted_reports(self.plan, group, inputs[broken], stream)
        return np.concatenate([sent, faulty])

    def attackers_in(self, group: int) -> int:
        """The number of attackers in a group."""
        return int(self.attackers[self.members[group]].sum())

    def simulation(self, advance: Callable[[int], None]) -> Simulation:
        """Count all reports, with truth and floor; `advance` is told of users that are done."""
        honest, poison = Binner(self.plan), Binner(self.plan)
        for group in range(len(self.members)):
            for reports, users in self.honest_reports(group):
                honest.add_group(group, reports)
                advance(users)
            poison.add_group(group, self.poison(group))
            advance(self.attackers_in(group))
        honest_users = [
            len(members) - self.attackers_in(group) for group, members in enumerate(self.members)
        ]
        return self.truth.simulation(
            honest=honest.summary(),
            poison=poison.summary(),
            honest_users=np.array(honest_users, dtype=np.float64),
            tiers=self.tiers[~self.attackers],
        )

    def poison(self, group: int) -> FloatArray:
        """The reports of the attackers of a group: each sends as many as an honest user.

        Where attackers report in several groups and share their poison, their reports in the later
        ones repeat the positions of the first, unless the attack is one that goes by the group.
        """
        count = self.attackers_in(group) * self.plan.all_groups[group].reports
        if not count:
            return np.empty(0)
        shared = self.shared_poison and not self.attack.by_group
        first = self.plan.groups_of_user(group)[0] if shared else group
        rng, target = np.random.default_rng(self.poison_seeds[first]), self.truth.target(first)
        reports = self.attack.poison(target, count, rng)
        if first == group:
            return reports
        own = self.truth.target(group)
        return own.report(own.mechanism.place(target.position_of(reports)))


def _placed_members(
    attackers: np.ndarray,
    honest_in_group: IntArray,
    attackers_in_group: IntArray,
    rng: np.random.Generator,
) -> list[IntArray]:
    """The users of each group: so many of the honest ones and of the attackers, at random."""
    kinds = ((~attackers, honest_in_group), (attackers, attackers_in_group))
    parts = [
        np.split(rng.permutation(np.flatnonzero(kind)), np.cumsum(numbers)[:-1])
        for kind, numbers in kinds
    ]
    return [np.concatenate(pair) for pair in zip(*parts, strict=True)]
