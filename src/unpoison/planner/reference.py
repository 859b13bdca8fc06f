"""Reference users and attacks, on which plans are tried before there are data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy

from unpoison.plan import Plan
from unpoison.simulation.ground_truth import GroundTruth
from unpoison.simulation.honest_inputs import HonestInputs
from unpoison.simulation.oracle_floor import HonestUsers, cramer_rao, oracle_floor
from unpoison.simulation.population import Population

SHAPES = {"Beta(2,5)": (2.0, 5.0), "uniform": (1.0, 1.0), "Beta(5,2)": (5.0, 2.0)}
"""Parameters of the Beta distributions of users' values: low, even and high ones."""
DISTINCT_VALUES = 512
"""Distinct numbers that reference users have: the middles of as many equal parts of the range."""
NUMBER_ATTACKS = {
    "poison in the upper quarter of reports": "uniform:(L+3*R)/4,R",
    "poison from the honest mean to the upper end": "uniform:O,R",
    "poison at the larger half of the budgets only": "adaptive:{half},(L+7*R)/8,R",
}
CATEGORY_ATTACKS = {
    "reports of the rarest category": "maximal-gain:1",
    "reports of the rarer half of the categories": "maximal-gain:{half}",
}


def attacks_on(plan: Plan) -> dict[str, str]:
    """The attacks that a plan is to withstand, by a description; the first is the plainest.

    Attacks that look like honest users are left out: these are what the worst case is about.

    >>> list(attacks_on(Plan.new("k-rr", categories=["tea", "milk", "cocoa", "water"])).values())
    ['maximal-gain:1', 'maximal-gain:2']
    """
    attacks = CATEGORY_ATTACKS if plan.categorical else NUMBER_ATTACKS
    half = max(len(plan.categories or plan.groups) // 2, 1)
    return {name: attack.format(half=half) for name, attack in attacks.items()}


def hardest_attack(plan: Plan) -> str:
    """The description of the attack under which the joint filter is usually farthest off.

    It is the one whose poison is spread widest: most honest reports lie where it is.

    >>> hardest_attack(Plan.new(epsilon=1.0, low=0, high=10))
    'poison from the honest mean to the upper end'
    """
    return list(attacks_on(plan))[1]


@dataclass(frozen=True)
class Reference:
    """Users whose values follow a Beta distribution over the plan's range, or its categories.

    >>> plan = Plan.new(epsilon=1.0, low=0, high=10)
    >>> population = Reference("uniform", 1000).population(plan)
    >>> mean = np.average(population.values, weights=population.numbers)
    >>> population.users, round(float(mean), 2)
    (1000, 5.0)
    """

    shape: str
    users: int

    def population(self, plan: Plan) -> Population:
        """The users as distinct values with counts; with a step, on values that users can have.

        >>> plan = Plan.new(epsilon=1.0, low=1, high=5, step=1)
        >>> Reference("uniform", 1000).population(plan).values.tolist()
        [1.0, 2.0, 3.0, 4.0, 5.0]
        """
        names = plan.categories
        cells = _distinct_values(plan) if names is None else len(names)
        cumulative = scipy.special.betainc(*SHAPES[self.shape], np.linspace(0, 1, cells + 1))
        numbers = np.diff(np.rint(cumulative * self.users)).astype(np.int64)
        if names is not None:
            return Population(np.array(names), numbers)
        (low, high), middles = plan.bounds, (np.arange(cells) + 0.5) / cells
        # A lattice has a value at either end of the range.
        places = middles if plan.steps is None else np.rint(middles * plan.steps) / plan.steps
        return Population(low + (high - low) * places, numbers)

    def truth(self, plan: Plan) -> GroundTruth:
        """The ground truth if all of them are honest."""
        population = self.population(plan)
        if plan.categorical:
            inputs = np.arange(len(population.numbers), dtype=float)
        else:
            inputs = plan.inputs_of(population.values)
        return GroundTruth(plan, HonestInputs(inputs, population.numbers))

    def unprotected_error(self, plan: Plan) -> float:
        """The mean squared error with one group and nobody attacking, in natural units²: the floor.

        Numbers are reported by the Piecewise Mechanism, whatever the plan's own.

        >>> plan = Plan.new(epsilon=1.0, low=0, high=1)
        >>> error = Reference("uniform", 10_000).unprotected_error(plan)
        >>> round(error**0.5, 3)
        0.01
        """
        single = _single_group(plan)
        inputs = self.truth(single).inputs
        bound = cramer_rao if single.categorical else oracle_floor
        users = np.array([float(self.users)])
        return bound(HonestUsers(single, inputs.values, users, numbers=inputs.numbers))


def _distinct_values(plan: Plan) -> int:
    """The number of distinct values of reference users: not more than a step allows."""
    return DISTINCT_VALUES if plan.steps is None else min(DISTINCT_VALUES, plan.steps + 1)


def _single_group(plan: Plan) -> Plan:
    """A plan of one group with all of ε."""
    keys = {"epsilon": plan.epsilon, "min_epsilon": plan.epsilon}
    if plan.categories is not None:
        return Plan.new(plan.mechanism, **keys, categories=list(plan.categories))
    return Plan.new("piecewise", **keys, low=plan.low, high=plan.high, step=plan.step)
