"""One cell of an experiment: a collection, how it is attacked, and who estimates it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from unpoison._version import __version__
from unpoison.datasets import Sample, datasets
from unpoison.estimate.options import FilterOptions
from unpoison.estimate.statistic import Statistic
from unpoison.plan import Plan
from unpoison.simulation import Population, Trial, run_trials

COLLECTION = ("dataset", "users", "mechanism", "epsilon", "min_epsilon", "attack", "gamma")
"""The fields that reports depend on: cells that agree in them see the same collections."""


@dataclass(frozen=True)
class Cell:
    """A collection, an attack and methods: all that its rows depend on, and so its key and seeds.

    Means are in natural units, but errors are on the mechanism's input domain, [−1, 1] for PM:
    `unit` is what they were divided by (its square, if they are squared).

    Adding cells, methods or trials to an experiment leaves the collections of the others as they
    are.

    >>> cell = Cell("beta-2-5", 2000, "piecewise", 0.5, "none", 0.0, ("ostrich",), trials=2)
    >>> [(row["method"], row["trial"]) for row in cell.run()][:2]
    [('ostrich', 0), ('ostrich', 0)]
    """

    dataset: str
    users: int
    mechanism: str
    epsilon: float
    attack: str
    gamma: float
    methods: tuple[str, ...]
    trials: int = 10
    """Collections: a mean squared error is then known to about 45 per cent."""
    min_epsilon: float = 1 / 16
    """The paper's ε0."""
    statistic: str | None = None
    options: FilterOptions = field(default_factory=FilterOptions)
    fast: bool = False
    """Whether counts are drawn directly, rather than every report."""

    @property
    def key(self) -> str:
        """A name that no other cell has, nor the same cell of another version of this library."""
        return _digest({**asdict(self), "version": __version__})[:16]

    def run(self) -> list[dict[str, Any]]:
        """The rows of all trials, each with the fields of the cell."""
        sample = self._sample()
        plan = self._plan(sample)
        rows, _ = run_trials(
            plan,
            Population.of(sample.values) if self.fast else sample.values,
            self.attack,
            self.gamma,
            self.methods,
            trials=self.trials,
            rng=np.random.default_rng(self._seed(*COLLECTION)),
            options=self.options,
            statistic=Statistic.of(plan, self.statistic),
            shared=True,
        )
        return self._rows(rows, plan)

    def _rows(self, trials: list[Trial], plan: Plan) -> list[dict[str, Any]]:
        """Trials with the fields of the cell, as rows."""
        shared = {**self._columns(), "groups": len(plan.all_groups), "unit": plan.natural_scale}
        return [
            {**shared, **_trial_columns(row), **_normalised_errors(row, plan)} for row in trials
        ]

    def _sample(self) -> Sample:
        """The users: the same for every cell with that dataset and as many users."""
        rng = np.random.default_rng(self._seed("dataset", "users"))
        return datasets[self.dataset]().draw(self.users, rng)

    def _plan(self, sample: Sample) -> Plan:
        keys: dict[str, Any] = {"low": sample.low, "high": sample.high}
        if sample.categories is not None:
            keys = {"categories": sample.categories}
        smallest = min(self.min_epsilon, self.epsilon)
        return Plan.new(self.mechanism, self.epsilon, smallest, **keys)

    def _seed(self, *names: str) -> int:
        """A seed that depends on the named fields alone."""
        return int(_digest({name: getattr(self, name) for name in names})[:16], 16)

    def _columns(self) -> dict[str, Any]:
        columns = {name: value for name, value in asdict(self).items() if name not in NOT_COLUMNS}
        return {**columns, "statistic": self.statistic or ""}


def _normalised_errors(row: Trial, plan: Plan) -> dict[str, float]:
    """Errors on the mechanism's input domain, as in the paper: comparable between datasets."""
    unit = 1.0 if plan.categorical else plan.natural_scale
    powers = {"squared_error": 2, "floor": 2, "cramer_rao": 2, "wasserstein": 1}
    return {name: getattr(row, name) / unit**power for name, power in powers.items()}


NOT_COLUMNS = ("methods", "trials", "options", "frequencies")
"""Fields of cells and trials that are no number and no name."""


def _trial_columns(row: Trial) -> dict[str, Any]:
    return {name: value for name, value in asdict(row).items() if name not in NOT_COLUMNS}


def _digest(facts: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
