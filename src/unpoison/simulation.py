"""Simulated collections: honest users, colluding attackers, and the truth beside the Summary."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from unpoison.attacks import Attack, Target, parse_attack
from unpoison.binning import Binner
from unpoison.errors import InvalidParameter
from unpoison.floor import cramer_rao, oracle_floor
from unpoison.grouping import partition
from unpoison.plan import Plan
from unpoison.reports import checked_values, perturb_group, tiers_of
from unpoison.summary import Summary
from unpoison.types import FloatArray, IntArray

USERS_AT_ONCE = 2**15
Advance = Callable[[int], None]


@dataclass(frozen=True)
class Simulation:
    """One collection: its Summary, the honest users' mean, and the floor of any error.

    `floor` is the oracle floor of linear estimators for PM, and the Cramér-Rao bound for SW.

    >>> plan = Plan.new(epsilon=1.0, min_epsilon=0.5, low=0, high=1)
    >>> run = simulate(plan, np.full(1000, 0.25), "point:C", 0.2, np.random.default_rng(1))
    >>> run.truth, run.byzantine_fraction, bool(run.floor > 0)
    (0.25, 0.2, True)
    """

    summary: Summary
    truth: float
    floor: float
    cramer_rao: float
    byzantine_fraction: float


def simulate(
    plan: Plan,
    values: Any,
    attack: str | Attack = "none",
    byzantine_fraction: float = 0.25,
    rng: np.random.Generator | None = None,
    *,
    budgets: Any = None,
    shared_poison: bool = True,
    advance: Advance | None = None,
) -> Simulation:
    """Collect from `values` (one a user, natural units), a share of whom attack.

    The truth is the mean of those who do not. In the baseline, attackers send the same value in
    both reports, as the paper assumes, unless `shared_poison` is off. `advance` is told how many
    users have been done.

    >>> plan = Plan.new(epsilon=1.0, min_epsilon=0.25, low=0, high=1)
    >>> run = simulate(plan, np.linspace(0, 1, 10_000), "point:C", 0.1, np.random.default_rng(1))
    >>> run.summary.total_users, round(run.truth, 2)
    (10000.0, 0.5)
    """
    crowd = Crowd.draw(plan, values, attack, byzantine_fraction, rng, budgets, shared_poison)
    binner = Binner(plan)
    for group, reports, users in crowd.reports():
        binner.add_group(group, reports)
        if advance is not None:
            advance(users)
    return crowd.simulation(binner.summary())


@dataclass(frozen=True)
class Crowd:
    """Users with their groups and roles drawn; `members[t]` are the users of group t.

    >>> plan = Plan.new(epsilon=0.5, min_epsilon=0.25, low=0, high=1)
    >>> crowd = Crowd.draw(plan, np.full(100, 0.25), "point:C", 0.2, np.random.default_rng(1))
    >>> int(crowd.attackers.sum()), [len(users) for users in crowd.members], crowd.honest_mean
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

    @classmethod
    def draw(
        cls,
        plan: Plan,
        values: Any,
        attack: str | Attack,
        byzantine_fraction: float,
        rng: np.random.Generator | None,
        budgets: Any = None,
        shared_poison: bool = True,
    ) -> Crowd:
        """Choose at random who attacks and who is in which group."""
        if not 0 <= byzantine_fraction < 0.5:
            rule = "must be in [0, 1/2): more attackers than that outvote the honest users"
            raise InvalidParameter("byzantine_fraction", rule, byzantine_fraction)
        if plan.categorical:
            raise InvalidParameter("plan", "must have numerical values to simulate", plan.mechanism)
        attack = parse_attack(attack)
        inputs = plan.normalise(checked_values(plan, values))
        if len(inputs) < len(plan.all_groups):
            raise InvalidParameter("values", "must be at least one a group", len(inputs))
        streams = (rng or np.random.default_rng()).spawn(len(plan.all_groups) + 2)
        attackers = np.zeros(len(inputs), dtype=bool)
        count = round(byzantine_fraction * len(inputs)) if attack.active else 0
        attackers[streams[-1].permutation(len(inputs))[:count]] = True
        tiers = tiers_of(plan, len(inputs), budgets)
        members = partition(plan, tiers, streams[-2])
        seeds = streams[-1].integers(2**63, size=len(members)).tolist()
        return cls(
            plan, inputs, attack, attackers, tiers, members, streams[:-2], seeds, shared_poison
        )

    @property
    def honest_mean(self) -> float:
        """O, normalised."""
        return float(self.inputs[~self.attackers].mean())

    def reports(self) -> Iterator[tuple[int, FloatArray, int]]:
        """(group, reports, users done) chunk by chunk: honest users first, then the attackers."""
        for group, members in enumerate(self.members):
            honest = self.inputs[members[~self.attackers[members]]]
            for first in range(0, len(honest), USERS_AT_ONCE):
                chunk = honest[first : first + USERS_AT_ONCE]
                reports = perturb_group(self.plan, group, chunk, self.streams[group])
                yield group, reports, len(chunk)
            yield group, self._poison(group), len(members) - len(honest)

    def simulation(self, summary: Summary) -> Simulation:
        """The summary with truth and floor."""
        honest = np.array([float((~self.attackers[each]).sum()) for each in self.members])
        inputs, tiers = self.inputs[~self.attackers], self.tiers[~self.attackers]
        bound = cramer_rao(self.plan, inputs, honest, tiers)
        linear = self.plan.group_mechanisms[0].unbiased
        return Simulation(
            summary=summary,
            truth=self.plan.natural(self.honest_mean),
            floor=oracle_floor(self.plan, inputs, honest, tiers) if linear else bound,
            cramer_rao=bound,
            byzantine_fraction=float(self.attackers.mean()),
        )

    def _poison(self, group: int) -> FloatArray:
        """What the attackers of a group send, as often as its honest users.

        In the baseline with shared poison, the second report repeats the value of the first.
        """
        attackers = int(self.attackers[self.members[group]].sum())
        count = attackers * self.plan.all_groups[group].reports
        if not count:
            return np.empty(0)
        repeats = self.plan.protocol == "baseline" and self.shared_poison and group % 2 == 1
        source = group - 1 if repeats else group
        target, own = self._target(source), self._target(group)
        reports = self.attack.poison(
            target, count, np.random.default_rng(self.poison_seeds[source])
        )
        return own.report(own.mechanism.place(target.position_of(reports))) if repeats else reports

    def _target(self, group: int) -> Target:
        return Target(self.plan.group_mechanisms[group], self.honest_mean)
