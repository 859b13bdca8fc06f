"""Summaries of any size, drawn as counts: for benchmarks, where only the size matters."""

from __future__ import annotations

import numpy as np

from unpoison.grouping import group_sizes
from unpoison.plan import Plan
from unpoison.summary import FIXED_POINT, Summary
from unpoison.types import FloatArray

BYZANTINE_FRACTION = 0.25
INPUT_BUCKETS = 256


def drawn_summary(plan: Plan, users: int, rng: np.random.Generator) -> Summary:
    """Counts of a poisoned collection: Beta(2,5) inputs, a quarter uniform on the top eighth."""
    reports = group_sizes(plan.groups, users) * [group.reports for group in plan.groups]
    counts = [
        rng.multinomial(each, _probabilities(plan, group)) for group, each in enumerate(reports)
    ]
    sums = [
        round(float(row @ part.bucket_values(part.grid())) * FIXED_POINT)
        for row, part in zip(counts, plan.group_mechanisms, strict=True)
    ]
    return Summary(plan, np.array(counts), tuple(sums))


def _probabilities(plan: Plan, group: int) -> FloatArray:
    mechanism = plan.group_mechanisms[group]
    edges = np.linspace(0, 1, INPUT_BUCKETS + 1)
    middles = (edges[1:] + edges[:-1]) / 2
    inputs = middles * (1 - middles) ** 4
    domain = mechanism.input_low + edges * (mechanism.input_high - mechanism.input_low)
    honest = mechanism.transition(domain, mechanism.grid()).forward(inputs / inputs.sum())
    poison = np.zeros(mechanism.cells)
    poison[-mechanism.cells // 8 :] = 1
    mixed = (1 - BYZANTINE_FRACTION) * honest + BYZANTINE_FRACTION * poison / poison.sum()
    return np.asarray(mixed / mixed.sum())
