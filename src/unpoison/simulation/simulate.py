"""`simulate`: a collection from honest users and colluding attackers, user by user or as counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from unpoison.attacks import Attack, parse_attack
from unpoison.errors import InvalidParameter
from unpoison.plan import Plan
from unpoison.simulation.direct_counts import draw_collection
from unpoison.simulation.faults import BrokenClients, Fault
from unpoison.simulation.ground_truth import Simulation
from unpoison.simulation.population import Population
from unpoison.simulation.users import SimulatedUsers

Advance = Callable[[int], None]
DEFAULT_BYZANTINE_FRACTION = 0.25
"""The share of attackers in most of the paper's experiments."""
DEFAULT_FAULTY_FRACTION = DEFAULT_BYZANTINE_FRACTION
"""The share of broken clients where a fault is given without one: that of attackers by default."""


def simulate(
    plan: Plan,
    values: Any,
    attack: str | Attack = "none",
    byzantine_fraction: float = DEFAULT_BYZANTINE_FRACTION,
    rng: np.random.Generator | None = None,
    *,
    budgets: Any = None,
    shared_poison: bool = True,
    fault: str | Fault | None = None,
    faulty_fraction: float = DEFAULT_FAULTY_FRACTION,
    advance: Advance | None = None,
) -> Simulation:
    """Collect from `values` (one a user, natural units), a share of whom attack.

    The truth is about those who do not. In the baseline, attackers send the same value in
    both reports, as the paper assumes, unless `shared_poison` is off. With a `fault`, such as
    "rounding:1", the clients of a share of the honest users are broken in that way; the truth is
    about their values all the same. `advance` is told how many users have been done.

    If `values` is a `Population`, counts are drawn directly, in a time that does not grow with the
    number of users.

    >>> plan = Plan.new(epsilon=1.0, min_epsilon=0.25, low=0, high=1)
    >>> run = simulate(plan, np.linspace(0, 1, 10_000), "point:C", 0.1, np.random.default_rng(1))
    >>> run.summary.total_users, round(run.truth, 2)
    (10000.0, 0.5)
    """
    attack, rng = checked_attack(plan, attack, byzantine_fraction), rng or np.random.default_rng()
    advance = advance or (lambda users: None)
    broken = None if fault is None else BrokenClients.of(plan, fault, faulty_fraction)
    if isinstance(values, Population):
        if budgets is not None:
            raise InvalidParameter("budgets", "cannot go with a population", "both")
        run = draw_collection(plan, values, attack, byzantine_fraction, rng, broken)
        advance(values.users)
        return run
    users = SimulatedUsers.draw(
        plan, values, attack, byzantine_fraction, rng, budgets, shared_poison, broken
    )
    return users.simulation(advance)


def checked_attack(plan: Plan, attack: str | Attack, byzantine_fraction: float) -> Attack:
    """The attack, if there can be such a share of attackers on such a plan.

    >>> checked_attack(Plan.new(epsilon=0.25, low=0, high=1), "point:C", 0.5)
    Traceback (most recent call last):
        ...
    unpoison.errors.InvalidParameter: byzantine_fraction must be in [0, 1/2): more ...
    """
    if not 0 <= byzantine_fraction < 0.5:
        rule = "must be in [0, 1/2): more attackers than that outvote the honest users"
        raise InvalidParameter("byzantine_fraction", rule, byzantine_fraction)
    parsed = parse_attack(attack)
    parsed.check_plan(plan)
    return parsed
