"""Summaries of any size, drawn as counts: for benchmarks, where only the size matters."""

from __future__ import annotations

import numpy as np

from unpoison.plan import Plan
from unpoison.simulation import simulate
from unpoison.simulation.population import Population
from unpoison.summary import Summary

BYZANTINE_FRACTION = 0.25
INPUT_BUCKETS = 256
ATTACK = "uniform:3C/4,C"


def drawn_summary(plan: Plan, users: int, rng: np.random.Generator) -> Summary:
    """Counts of a poisoned collection: Beta(2,5) inputs, a quarter uniform on the outer eighth."""
    low, high = plan.bounds
    edges = np.linspace(low, high, INPUT_BUCKETS + 1)
    shares = np.linspace(0, 1, INPUT_BUCKETS + 1)
    middles = (shares[1:] + shares[:-1]) / 2
    weights = middles * (1 - middles) ** 4
    numbers = rng.multinomial(users, weights / weights.sum())
    population = Population((edges[1:] + edges[:-1]) / 2, numbers)
    return simulate(plan, population, ATTACK, BYZANTINE_FRACTION, rng).summary
