"""Values to reports: what happens on devices, for one user or for a table of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from unpoison.mechanisms.randomness import Generator, SystemGenerator
from unpoison.plan import Plan
from unpoison.plan.assignment import GroupAssigner
from unpoison.reports.values import checked_values, tiers_of
from unpoison.types import FloatArray, IntArray


@dataclass(frozen=True)
class Reports:
    """Reports as two columns: the group, and the value in the group's output domain.

    `user` says which value (by its index) a report came from; it never leaves the caller.

    >>> reports = Reports(np.array([0, 1]), np.array([0.5, -2.0]), np.array([0, 1]))
    >>> len(reports), list(reports.to_pandas().columns)
    (2, ['group', 'value'])
    """

    group: IntArray
    value: FloatArray
    user: IntArray

    def __len__(self) -> int:
        return len(self.value)

    def to_pandas(self) -> Any:
        """A DataFrame with the columns `group` and `value`."""
        import pandas as pd

        return pd.DataFrame({"group": self.group, "value": self.value})


class Reporter:
    """Perturbs users as they arrive; reports do not depend on how users are split into calls.

    >>> plan = Plan.new(epsilon=0.5, min_epsilon=0.25, low=0, high=10)
    >>> reporter = Reporter(plan, np.random.default_rng(1))
    >>> parts = [reporter.report([2.0, 3.0]).value, reporter.report([4.0]).value]
    >>> whole = Reporter(plan, np.random.default_rng(1)).report([2.0, 3.0, 4.0])
    >>> np.array_equal(np.concatenate(parts), whole.value)
    True
    """

    def __init__(self, plan: Plan, rng: Generator | None = None) -> None:
        self.plan = plan
        groups = len(plan.all_groups)
        tiers = len(plan.all_tiers)
        source: Generator = SystemGenerator() if rng is None else rng
        streams: list[Generator] = list(source.spawn(groups + tiers))
        self.streams = streams[:groups]
        # One row a group: every user of a plan reports in the same number of groups.
        self._groups_of_user = np.array([plan.groups_of_user(group) for group in range(groups)])
        self.assigners = [
            GroupAssigner(plan, tier, stream) for tier, stream in enumerate(streams[groups:])
        ]

    def report(self, values: Any, budgets: Any = None) -> Reports:
        """Reports of the next users, each with a personal budget where there are tiers."""
        inputs = self.plan.inputs_of(checked_values(self.plan, values))
        assigned = self._assign(tiers_of(self.plan, len(inputs), budgets))
        groups = self._groups_of_user[assigned]
        users = np.repeat(np.arange(len(inputs)), groups.shape[1])
        return self._perturb(inputs[users], groups.ravel(), users)

    def _assign(self, tiers: IntArray) -> IntArray:
        groups = np.empty(len(tiers), dtype=np.int64)
        for tier, assigner in enumerate(self.assigners):
            members = tiers == tier
            groups[members] = assigner.assign(int(members.sum()))
        return groups

    def _perturb(self, inputs: FloatArray, groups: IntArray, users: IntArray) -> Reports:
        """Rows in the order of users; each user's reports stand together."""
        sizes = np.array([group.reports for group in self.plan.all_groups])[groups]
        row_group, row_user = np.repeat(groups, sizes), np.repeat(users, sizes)
        value = np.empty(len(row_group))
        for group, stream in enumerate(self.streams):
            mine = inputs[groups == group]
            value[row_group == group] = perturb_group(self.plan, group, mine, stream)
        return Reports(row_group, value, row_user)


def perturb(values: Any, plan: Plan, rng: Generator | None = None, budgets: Any = None) -> Reports:
    """Reports of many users at once; with no `rng`, by the operating system's generator.

    >>> plan = Plan.new("piecewise-integer", epsilon=0.125, min_epsilon=1 / 16, low=0, high=100)
    >>> reports = perturb([20.0, 50.0, 80.0, 35.0], plan)
    >>> sorted(set(reports.group.tolist())), len(reports)
    ([0, 1], 6)
    """
    return Reporter(plan, rng).report(values, budgets)


def perturb_group(plan: Plan, group: int, inputs: FloatArray, rng: Generator) -> FloatArray:
    """Stage 2 of DAP: all reports of a group's users, user by user, from normalised values.

    >>> plan = Plan.new(epsilon=0.25, low=0, high=1)
    >>> len(perturb_group(plan, 2, np.zeros(10), np.random.default_rng(1)))
    40
    """
    repeated = np.repeat(inputs, plan.all_groups[group].reports)
    return plan.group_mechanisms[group].perturb(repeated, rng)
