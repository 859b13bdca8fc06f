"""What may be wrong with clients whose reports do not fit: other budgets, and clipped reports."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from unpoison.filters.client_faults import constants
from unpoison.filters.client_faults.broken_mechanism import BrokenClient
from unpoison.filters.client_faults.clipping import ClippingClient
from unpoison.filters.client_faults.finding import ClientFault, in_groups, share_of_reports
from unpoison.filters.client_faults.lattices import usual_lattices
from unpoison.filters.client_faults.rounding import (
    NEAREST,
    ROUNDING,
    RoundingClient,
    beyond_honest,
)
from unpoison.filters.client_faults.spikes import spikes
from unpoison.filters.client_faults.wrong_budget import WrongBudgetClient
from unpoison.filters.joint import JointCounts
from unpoison.mechanisms import make
from unpoison.mechanisms.base import MAX_EPSILON, MIN_EPSILON
from unpoison.plan import Plan
from unpoison.summary import Summary

WRONG_EPSILON = "wrong-epsilon"
CLIPPED_REPORTS = "clipped-reports"


@dataclass(frozen=True, eq=False)
class Hypothesis:
    """A fault that some share of the clients may have, with the broken client of each group.

    >>> plan = Plan.new(epsilon=1.0, min_epsilon=0.25, low=0, high=1)
    >>> other = other_budgets(plan, {1: 1.0, 2: 1.0})
    >>> other.fault(0.2, 3).sentence[:70]
    'About 20 % of reports of groups 1 and 2 look like reports with epsilon'
    """

    kind: str
    clients: Mapping[int, BrokenClient]
    """The broken client of each group, by the group's number."""
    detail: dict[str, Any]
    predicate: str
    """What is said of the reports, as the predicate of a sentence about them."""

    def is_refused(self, counts: JointCounts) -> bool:
        """Whether some reports of such clients are outside of their group's domain."""
        return any(
            group in self.clients and self.clients[group].is_refused(buckets.mechanism)
            for group, buckets in zip(counts.groups, counts.buckets, strict=True)
        )

    def fault(self, share: float, all_groups: int, doubt: str = "") -> ClientFault:
        """The fault, if that share of the reports has it."""
        groups = tuple(self.clients)
        subject = share_of_reports(share) + in_groups(groups, all_groups)
        sentence = f"{subject} {self.predicate}{'' if doubt else ', not an attack'}."
        return ClientFault(self.kind, groups, share, sentence, self.detail, doubt)


def other_budgets(plan: Plan, budgets: Mapping[int, float]) -> Hypothesis:
    """Clients of some groups that use other budgets than the groups'.

    >>> plan = Plan.new(epsilon=1.0, min_epsilon=0.25, low=0, high=1)
    >>> other_budgets(plan, {1: 1.0}).detail
    {'epsilon': [1.0]}
    """
    clients = {
        group: WrongBudgetClient(make(plan.mechanism, epsilon, plan.cells))
        for group, epsilon in budgets.items()
    }
    used = [f"{epsilon:.3g}" for epsilon in budgets.values()]
    meant = [f"{plan.all_groups[group].epsilon:.3g}" for group in budgets]
    predicate = (
        f"look like reports with epsilon = {_listed(used)} instead of {_listed(meant)}: clients "
        "with an old or wrong configuration"
    )
    return Hypothesis(WRONG_EPSILON, clients, {"epsilon": list(budgets.values())}, predicate)


def _listed(names: list[str]) -> str:
    """The names, or the one that they all are."""
    return names[0] if len(set(names)) == 1 else ", ".join(names)


def clipped(plan: Plan, groups: Iterable[int], low: float, high: float) -> Hypothesis:
    """Clients that clip reports to a range.

    >>> plan = Plan.new(epsilon=1.0, min_epsilon=0.25, low=0, high=1)
    >>> clipped(plan, [0, 1], -np.inf, 1.0).predicate
    'are clipped at 1: this is a fault of clients'
    """
    clients = {group: ClippingClient(plan.group_mechanisms[group], low, high) for group in groups}
    ends = [end for end in (low, high) if np.isfinite(end)]
    where = " and ".join(f"{end:.6g}" for end in ends)
    predicate = f"are clipped at {where}: this is a fault of clients"
    detail = {
        "low": low if np.isfinite(low) else None,
        "high": high if np.isfinite(high) else None,
    }
    return Hypothesis(CLIPPED_REPORTS, clients, detail, predicate)


def rounded(plan: Plan, groups: Iterable[int], spacing: float) -> Hypothesis:
    """Clients that round reports.

    >>> plan = Plan.new(epsilon=1.0, min_epsilon=0.25, low=0, high=1)
    >>> rounded(plan, [0, 1], 0.5).predicate
    'are rounded to multiples of 0.5: this is a fault of clients'
    """
    mechanisms = plan.group_mechanisms
    clients = {group: RoundingClient(mechanisms[group], spacing) for group in groups}
    predicate = f"are rounded to multiples of {spacing:g}: this is a fault of clients"
    detail = {"spacing": spacing, "direction": NEAREST}
    return Hypothesis(ROUNDING, clients, detail, predicate)


@dataclass(frozen=True, eq=False)
class Hypotheses:
    """All faults that are tried on a collection.

    >>> from unpoison import simulate
    >>> plan = Plan.new(epsilon=1.0, min_epsilon=0.25, low=0, high=1)
    >>> run = simulate(plan, np.full(5000, 0.3), rng=np.random.default_rng(1))
    >>> {hypothesis.kind for hypothesis in Hypotheses(run.summary, (0, 1, 2)).all}
    {'wrong-epsilon'}
    """

    summary: Summary
    groups: tuple[int, ...]

    @cached_property
    def all(self) -> list[Hypothesis]:
        """Every hypothesis, each once."""
        budgets = [other_budgets(self._plan, budgets) for budgets in self._budgets()]
        if self._plan.categorical:
            return budgets
        return [*budgets, *self._clipped_ranges(), *self._coarse_rounding()]

    @property
    def _plan(self) -> Plan:
        return self.summary.plan

    def _budgets(self) -> list[dict[int, float]]:
        """One budget for all groups, or all budgets mistaken alike; or one group's alone."""
        own = {group: self._plan.all_groups[group].epsilon for group in self.groups}
        factors = constants.FACTORS
        usual = sorted({*own.values(), *(max(own.values()) * factor for factor in factors)})
        budgets = [dict.fromkeys(own, epsilon) for epsilon in usual]
        budgets += [{group: own[group] * factor for group in own} for factor in factors]
        if len(own) > 1:
            budgets += [{group: epsilon} for group in own for epsilon in usual]
        distinct = {}
        for candidate in budgets:
            other = {g: e for g, e in candidate.items() if e != own[g]}
            if other and all(MIN_EPSILON <= e <= MAX_EPSILON for e in other.values()):
                distinct[tuple(other.items())] = other
        return list(distinct.values())

    def _coarse_rounding(self) -> Iterator[Hypothesis]:
        """Rounding to lattices with too few points for reports to show that they are lattices."""
        group = self.groups[0]
        lattices = usual_lattices(self._plan.group_mechanisms[group])
        cell_counts = self.summary.counts[group]
        coarse = [
            lattice
            for lattice in lattices
            if len(lattice.points) < constants.LATTICE_BLOCKS
            and beyond_honest(lattice, cell_counts, constants.ROUNDING_LEVEL)
        ]
        for lattice in coarse[: constants.MOST_COARSE_LATTICES]:
            yield rounded(self._plan, self.groups, lattice.spacing)

    def _clipped_ranges(self) -> Iterator[Hypothesis]:
        """Ranges between cells that stand out in the group where they do so most."""
        ends = spikes(self.summary, self.groups)
        pairs = [*combinations(sorted(ends), 2)]
        pairs += [(-np.inf, end) for end in ends] + [(end, np.inf) for end in ends]
        domains = [self._plan.group_mechanisms[group] for group in self.groups]
        for low, high in pairs:
            # Of another range, some group would have no reports at all.
            if all(low <= domain.output_high and high >= domain.output_low for domain in domains):
                yield clipped(self._plan, self.groups, low, high)
