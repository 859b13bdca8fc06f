"""Summaries of poisoned collections of any size, drawn as counts, for benchmarks."""

from __future__ import annotations

import numpy as np

from unpoison.plan import Plan
from unpoison.simulation import simulate
from unpoison.simulation.population import Population
from unpoison.summary import Summary

BYZANTINE_FRACTION = 0.25
"""The paper's share of attackers."""
INPUT_BUCKETS = 256
"""Distinct values of the users: drawing takes time for each, and benchmarks need few."""
ATTACK = "uniform:3C/4,C"
"""The first of the paper's four ranges of poison."""


def draw_beta_summary(plan: Plan, users: int, rng: np.random.Generator) -> Summary:
    """A Summary of users with Beta(2,5) inputs, a quarter of whom send poison on [3C/4, C]."""
    low, high = plan.bounds
    edges = np.linspace(low, high, INPUT_BUCKETS + 1)
    fractions = np.linspace(0, 1, INPUT_BUCKETS + 1)
    middles = (fractions[1:] + fractions[:-1]) / 2
    weights = middles * (1 - middles) ** 4  # The density of Beta(2,5), up to a factor.
    numbers = rng.multinomial(users, weights / weights.sum())
    population = Population((edges[1:] + edges[:-1]) / 2, numbers)
    return simulate(plan, population, ATTACK, BYZANTINE_FRACTION, rng).summary
