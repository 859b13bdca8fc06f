"""Targets for tests of attacks, and which registered attacks fit which mechanisms."""

from __future__ import annotations

import numpy as np
import pytest

from unpoison.attacks import Collection, Target, attacks
from unpoison.mechanisms import make, mechanisms

NUMERICAL = [name for name in mechanisms if not mechanisms[name].categorical]
CATEGORICAL = [name for name in mechanisms if mechanisms[name].categorical]
BUDGETS = (0.0625, 0.5, 2.0)
COUNT = 1000
"""How many poison reports a test draws, unless it says otherwise."""
DRINKS = ("tea", "coffee", "herbal tea", "7-up", "E=mc2")
DRINK_NUMBERS = np.array([8, 1, 6, 1, 4])
DRINK_SHARES = DRINK_NUMBERS / DRINK_NUMBERS.sum()
"""How many of the honest users have each drink, and how frequent each is."""

every_numerical_mechanism = pytest.mark.parametrize("mechanism", NUMERICAL)
every_categorical_mechanism = pytest.mark.parametrize("mechanism", CATEGORICAL)
every_budget = pytest.mark.parametrize("epsilon", BUDGETS)


def make_target(
    mechanism: str, epsilon: float, cells: int | None = None, rank: int = 0, groups: int = 1
) -> Target:
    """Drinks, or numbers whose honest mean is at 3/10 of the input domain; a fifth attack.

    The group has that rank among groups whose budgets are halved from each to the next.
    """
    budgets = [epsilon * 2.0 ** (rank - other) for other in range(groups)]
    known = tuple(
        make_group(mechanism, budget, cells, group, groups) for group, budget in enumerate(budgets)
    )
    part = known[rank].mechanism
    if part.categorical:
        return Collection(known, np.arange(float(len(DRINKS))), DRINK_NUMBERS, 0.2).target(rank)
    inputs = part.input_low + np.array([0.1, 0.2, 0.7]) * (part.input_high - part.input_low)
    return Collection(known, inputs, np.array([1, 2, 1]), 0.2).target(rank)


def make_group(mechanism: str, epsilon: float, cells: int | None, rank: int, groups: int) -> Target:
    """What attackers know of one group alone."""
    position = (rank, groups, rank)
    if mechanisms[mechanism].categorical:
        part = make(mechanism, epsilon, len(DRINKS))
        return Target(part, np.nan, DRINKS, DRINK_SHARES, *position)
    part = make(mechanism, epsilon, cells)
    mean = part.input_low + 0.3 * (part.input_high - part.input_low)
    return Target(part, mean, (), None, *position)


def fits(attack: str, mechanism: str) -> bool:
    """Whether the values of a mechanism are of the kind that an attack takes."""
    return attacks[attack].categorical in (None, mechanisms[mechanism].categorical)


def pairs_that_fit() -> list[tuple[str, str]]:
    """Every registered attack with every registered mechanism that it fits."""
    return [(attack, name) for attack in attacks for name in mechanisms if fits(attack, name)]


def pairs_that_do_not_fit() -> list[tuple[str, str]]:
    """Every registered attack with every registered mechanism that it does not fit."""
    return [(attack, name) for attack in attacks for name in mechanisms if not fits(attack, name)]
