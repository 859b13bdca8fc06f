"""Collections drawn directly as counts, in a time that does not grow with the number of users.

Users are known by their values alone. Who attacks and who is in which group is drawn as from an urn
(hypergeometric), and each group's counts from the mechanism's distribution.
"""

from __future__ import annotations

import numpy as np

from unpoison.attacks import Attack
from unpoison.plan import Plan
from unpoison.plan.assignment import group_sizes
from unpoison.reports.values import checked_values
from unpoison.simulation.faults import BrokenClients, Fault
from unpoison.simulation.ground_truth import GroundTruth, Simulation
from unpoison.simulation.honest_inputs import HonestInputs
from unpoison.simulation.population import Population
from unpoison.simulation.users import USERS_AT_ONCE
from unpoison.summary import Summary
from unpoison.summary.summary import FIXED_POINT
from unpoison.types import FloatArray, IntArray


def draw_collection(
    plan: Plan,
    population: Population,
    attack: Attack,
    byzantine_fraction: float,
    rng: np.random.Generator,
    broken_clients: BrokenClients | None = None,
) -> Simulation:
    """A collection whose cost does not grow with the number of users.

    It is distributed as if every report were drawn, but for two things: the sum of a group's
    reports is that of the middles of their cells, and numbers that `Population.of` had to put into
    buckets are the buckets' means, or the nearest values of a plan with a step (the truth is about
    these, too). Reports of `broken_clients` are drawn one by one.

    >>> from unpoison.attacks import parse_attack
    >>> plan = Plan.new(epsilon=0.5, min_epsilon=0.25, low=0, high=1)
    >>> population = Population(np.array([0.25, 0.5]), np.array([10**8, 10**8]))
    >>> attack, rng = parse_attack("uniform:3C/4,C"), np.random.default_rng(1)
    >>> int(draw_collection(plan, population, attack, 0.25, rng).summary.total_users)
    200000000
    """
    plan.require_one_group_and_budget()
    inputs = inputs_of(plan, population)
    users = population.users
    attackers = round(byzantine_fraction * users) if attack.active else 0
    honest = population.numbers - _draw_from_urn(population.numbers, attackers, rng)
    truth = GroundTruth(plan, HonestInputs(inputs, honest), attackers / users)
    honest_in_group, attackers_in_group = _numbers_in_groups(plan, attack, users, attackers, rng)
    honest_counts = np.zeros((len(plan.groups), plan.cells), dtype=np.int64)
    poison_counts = np.zeros_like(honest_counts)
    chances = None
    if broken_clients is not None:
        chances = broken_clients.chances(plan, inputs, population.numbers)
    for group, members in enumerate(_split_into_groups(honest, honest_in_group, rng)):
        mechanism, reports = plan.group_mechanisms[group], plan.groups[group].reports
        broken = np.zeros_like(members) if chances is None else rng.binomial(members, chances)
        honest_counts[group] = mechanism.draw_counts(inputs, (members - broken) * reports, rng)
        if broken_clients is not None:
            held, fault = np.repeat(inputs, broken), broken_clients.fault
            honest_counts[group] += _faulty_counts(truth, group, held, fault, rng)
        if attackers_in_group[group]:
            poison_reports = int(attackers_in_group[group]) * reports
            target = truth.target(group)
            poison_counts[group] = attack.poison_counts(target, poison_reports, rng)
    return truth.simulation(
        honest=Summary(plan, honest_counts, _sums(plan, honest_counts)),
        poison=Summary(plan, poison_counts, _sums(plan, poison_counts)),
        honest_users=honest_in_group.astype(np.float64),
    )


def _faulty_counts(
    truth: GroundTruth, group: int, held: FloatArray, fault: Fault, rng: np.random.Generator
) -> IntArray:
    """Draw the counts of cells from broken clients of users who hold these inputs."""
    counts = np.zeros(truth.plan.cells, dtype=np.int64)
    for first in range(0, len(held), USERS_AT_ONCE):
        chunk = held[first : first + USERS_AT_ONCE]
        reports = fault.accepted_reports(truth.plan, group, chunk, rng)
        counts += np.bincount(truth.target(group).cell_of(reports), minlength=len(counts))
    return counts


def _numbers_in_groups(
    plan: Plan, attack: Attack, users: int, attackers: int, rng: np.random.Generator
) -> tuple[IntArray, IntArray]:
    """Draw the numbers of honest users and attackers in each group, or take the attack's own."""
    placement = attack.placement(plan)
    if placement is not None:
        return placement.divide(plan, users, attackers)
    sizes = group_sizes(plan.groups, users)
    attackers_in_group = _draw_from_urn(sizes, attackers, rng)
    return sizes - attackers_in_group, attackers_in_group


def inputs_of(plan: Plan, population: Population) -> FloatArray:
    """The normalised values; the means of buckets may lie between two values of a lattice.

    >>> population = Population(np.array([0.25, 0.5]), np.array([1, 2]))
    >>> inputs_of(Plan.new(epsilon=1.0, low=0, high=1), population).tolist()
    [-0.5, 0.0]
    """
    if population.bucketed:
        return plan.inputs_of(population.values)
    return plan.inputs_of(checked_values(plan, population.values))


def _draw_from_urn(numbers: IntArray, size: int, rng: np.random.Generator) -> IntArray:
    """Draw `size` users without replacement; returns how many of each kind are among them."""
    return rng.multivariate_hypergeometric(numbers, size, method="marginals")


def _split_into_groups(
    numbers: IntArray, sizes: IntArray, rng: np.random.Generator
) -> list[IntArray]:
    """Divide users into groups at random; returns how many of each value every group has."""
    members, undivided = [], numbers
    for size in sizes[:-1]:
        members.append(_draw_from_urn(undivided, int(size), rng))
        undivided = undivided - members[-1]
    return [*members, undivided]


def _sums(plan: Plan, counts: IntArray) -> tuple[int, ...]:
    """The sums of reports in the middles of their cells, in the Summary's fixed point."""
    middles: list[FloatArray] = [
        mechanism.bucket_values(mechanism.grid()) for mechanism in plan.group_mechanisms
    ]
    return tuple(
        round(float(row @ values) * FIXED_POINT)
        for row, values in zip(counts, middles, strict=True)
    )
