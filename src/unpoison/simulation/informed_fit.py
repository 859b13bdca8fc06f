"""The estimate of someone who knows what attackers send, but neither who they are nor how many.

The oracle floor is that of someone who knows every attacker. No method that sees reports alone can
be that good: even with the distribution of the poison given, its share has to be estimated along
with the honest histogram. How much that costs is the difference between this estimate and the
floor; what a method loses beyond it is due to not knowing what attackers send.
"""

from __future__ import annotations

import numpy as np

from unpoison.attacks import Attack, parse_attack
from unpoison.filters.joint import JointCounts, PoisonModel, fit
from unpoison.filters.joint.model import RANGE
from unpoison.simulation.direct_counts import inputs_of
from unpoison.simulation.ground_truth import GroundTruth, Simulation
from unpoison.simulation.honest_inputs import HonestInputs
from unpoison.simulation.population import Population
from unpoison.types import FloatArray

REFERENCE_REPORTS = 10**6
"""Poison reports of each group from which their distribution is read off: more than attackers of
most collections send, so that its noise is small beside theirs."""


def informed_mean(run: Simulation, population: Population, attack: str | Attack) -> float:
    """The honest mean of a collection that was simulated, with the poison's distribution given.

    It is given by group, as are the groups that have attackers. Shares are tied as random groups
    tie them, unless the attack places its attackers in groups.

    >>> from unpoison import Plan, simulate
    >>> plan, rng = Plan.new(epsilon=1.0, low=0, high=1), np.random.default_rng(1)
    >>> population = Population(np.array([0.3]), np.array([50_000]))
    >>> run = simulate(plan, population, "uniform:C/2,C", 0.2, rng)
    >>> round(informed_mean(run, population, "uniform:C/2,C"), 2)
    0.3
    """
    plan, parsed = run.summary.plan, parse_attack(attack)
    counts = JointCounts.of(run.summary, range(len(plan.all_groups)))
    shapes = _poison_shapes(run, counts, population, parsed)
    placed = parsed.placement(plan) is not None
    model = PoisonModel(RANGE, shapes > 0, free_shares=placed, shape=shapes)
    return plan.natural(fit(counts, model).mean(counts.values))


def _poison_shapes(
    run: Simulation, counts: JointCounts, population: Population, attack: Attack
) -> FloatArray:
    """The distribution of the poison by group and bucket; 0 in groups without attackers."""
    plan, honest = run.summary.plan, run.honest_summary or run.summary
    inputs = HonestInputs(inputs_of(plan, population), population.numbers)
    truth = GroundTruth(plan, inputs, run.byzantine_fraction)
    rng = np.random.default_rng(0)
    shapes = np.zeros(counts.counts.shape)
    for index, group in enumerate(counts.groups):
        if run.summary.reports[group] > honest.reports[group]:
            cells = attack.poison_counts(truth.target(group), REFERENCE_REPORTS, rng)
            shapes[index] = counts.buckets[index].count(cells) / REFERENCE_REPORTS
    return shapes
