"""Collections drawn as counts: honest users and attackers fall into groups as from an urn."""

from __future__ import annotations

import numpy as np

from unpoison.attacks import Attack
from unpoison.errors import InvalidParameter
from unpoison.plan import Plan
from unpoison.plan.assignment import group_sizes
from unpoison.reports.values import checked_values
from unpoison.simulation.ground_truth import Simulation, Truth
from unpoison.simulation.inputs import Inputs
from unpoison.simulation.population import Population
from unpoison.summary import Summary
from unpoison.summary.summary import FIXED_POINT
from unpoison.types import FloatArray, IntArray


def draw_collection(
    plan: Plan,
    population: Population,
    attack: Attack,
    byzantine_fraction: float,
    rng: np.random.Generator,
) -> Simulation:
    """A collection whose cost does not grow with the number of users.

    It is distributed as if every report were drawn, but for two things: the sum of a group's
    reports is that of the middles of their cells, and numbers that `Population.of` had to put into
    buckets are the buckets' means (the truth is about these, too).

    >>> from unpoison.attacks import parse_attack
    >>> plan = Plan.new(epsilon=0.5, min_epsilon=0.25, low=0, high=1)
    >>> crowd = Population(np.array([0.25, 0.5]), np.array([10**8, 10**8]))
    >>> attack, rng = parse_attack("uniform:3C/4,C"), np.random.default_rng(1)
    >>> int(draw_collection(plan, crowd, attack, 0.25, rng).summary.total_users)
    200000000
    """
    if plan.protocol != "dap" or plan.tiers:
        raise InvalidParameter("population", "must be of a dap plan without tiers", plan.protocol)
    inputs = plan.normalise(checked_values(plan, population.values))
    users = population.users
    attackers = round(byzantine_fraction * users) if attack.active else 0
    honest = population.numbers - _urn(population.numbers, attackers, rng)
    truth = Truth(plan, Inputs(inputs, honest))
    sizes = group_sizes(plan.groups, users)
    hostile = _urn(sizes, attackers, rng)
    kept = np.zeros((len(sizes), plan.cells), dtype=np.int64)
    poison = np.zeros_like(kept)
    for group, members in enumerate(_split(honest, sizes - hostile, rng)):
        part, reports = plan.group_mechanisms[group], plan.groups[group].reports
        kept[group] = part.draw_counts(inputs, members * reports, rng)
        if hostile[group]:
            number = int(hostile[group]) * reports
            poison[group] = attack.poison_counts(truth.target(group), number, rng)
    honest_users = (sizes - hostile).astype(np.float64)
    good, bad = (Summary(plan, counts, _sums(plan, counts)) for counts in (kept, poison))
    return truth.beside(good, bad, attackers / users, honest_users)


def _urn(numbers: IntArray, drawn: int, rng: np.random.Generator) -> IntArray:
    """How many of each kind are among `drawn` that are taken without putting back."""
    return rng.multivariate_hypergeometric(numbers, drawn, method="marginals")


def _split(numbers: IntArray, sizes: IntArray, rng: np.random.Generator) -> list[IntArray]:
    """All users of all kinds, divided at random into groups of given sizes."""
    parts, left = [], numbers
    for size in sizes[:-1]:
        parts.append(_urn(left, int(size), rng))
        left = left - parts[-1]
    return [*parts, left]


def _sums(plan: Plan, counts: IntArray) -> tuple[int, ...]:
    middles: list[FloatArray] = [part.bucket_values(part.grid()) for part in plan.group_mechanisms]
    return tuple(
        round(float(row @ values) * FIXED_POINT)
        for row, values in zip(counts, middles, strict=True)
    )
