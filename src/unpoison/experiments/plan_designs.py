"""Collections by plans of several designs: how ε0 and the groups' shares change an estimate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from unpoison.datasets import Sample
from unpoison.estimate import Estimate
from unpoison.estimate.methods import estimates
from unpoison.experiments.cell import COLLECTION, Cell
from unpoison.plan import Plan
from unpoison.plan.budgets import half_first
from unpoison.planner.candidates import shared_out
from unpoison.protocols.joint import JOINT
from unpoison.simulation import Population, simulate
from unpoison.simulation.oracle_floor import HonestUsers, oracle_floor
from unpoison.simulation.trial import GROUPED, compare_with_truth
from unpoison.simulation.trials import ungrouped
from unpoison.types import FloatArray

EQUAL = "equal"
SHARES: dict[str, Callable[[int], FloatArray]] = {
    EQUAL: np.ones,
    "half first": lambda groups: np.array(half_first(groups)),
    "half last": lambda groups: np.array(half_first(groups)[::-1]),
}
"""Weights by which users are shared out: alike, or half of them at the largest or smallest ε."""


@dataclass(frozen=True)
class DesignCell(Cell):
    """Collections by a plan of one design, estimated by the joint filter.

    Errors are squares over the floor of ungrouped PM with nobody attacking, the price of
    robustness; widths are on [−1, 1].

    >>> values = {"dataset": "beta-2-5", "users": 5000, "mechanism": "piecewise", "trials": 1}
    >>> attack = {"attack": "point:C", "gamma": 0.2, "methods": (JOINT,), "fast": True}
    >>> design = {"min_epsilon": 0.25, "smallest": "ε/4", "shares": "half first"}
    >>> row = DesignCell(epsilon=1.0, **design, **values, **attack).run()[0]
    >>> row["design"], row["groups"], row["price"] > 0
    ('ε/4, half first', 3, True)
    """

    shares: str = EQUAL
    smallest: str = "1/16"
    """The way ε0 follows from ε, in words: 1/16 may be the paper's ε0, or a sixteenth of ε = 1."""

    def run(self) -> list[dict[str, Any]]:
        """A row for every trial."""
        sample = self._sample()
        plan, population = self._plan(sample), Population.of(sample.values)
        # The same for all designs: differences between them are then not those of collections.
        names = [name for name in COLLECTION if name != "min_epsilon"]
        streams = np.random.default_rng(self._seed(*names)).spawn(self.trials)
        rows: list[dict[str, Any]] = []
        for trial, stream in enumerate(streams):
            run = simulate(plan, population, self.attack, self.gamma, stream)
            answer = estimates(run.summary, [JOINT], self.options)[JOINT]
            compared = compare_with_truth(trial, GROUPED, run, run, answer, 0.0)
            (row,) = self._rows([compared], plan)
            floor = _unprotected(plan, population) / plan.natural_scale**2
            widths = {"price": row["squared_error"] / floor, **_widths(answer, plan)}
            rows.append({**row, **widths, "design": f"{self.smallest}, {self.shares}"})
        return rows

    def _plan(self, sample: Sample) -> Plan:
        equal = super()._plan(sample)
        return shared_out(equal, SHARES[self.shares](len(equal.groups)))


def _unprotected(plan: Plan, population: Population) -> float:
    """The floor with one group, all of ε and nobody attacking."""
    inputs, users = plan.inputs_of(population.values), np.array([float(population.users)])
    return oracle_floor(HonestUsers(ungrouped(plan), inputs, users, numbers=population.numbers))


def _widths(answer: Estimate, plan: Plan) -> dict[str, float]:
    """Widths of the interval and of the worst case, on [−1, 1]; of all values if there is none."""
    case = answer.worst_case
    ranges = {
        "interval_width": answer.interval,
        "worst_case_width": None if case is None else case.mean_range,
    }
    return {
        name: (ends[1] - ends[0]) / plan.natural_scale
        for name, given in ranges.items()
        for ends in [given or plan.bounds]
    }
