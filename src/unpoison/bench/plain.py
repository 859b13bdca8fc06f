"""The plain versions: whole arrays, dense matrices, one problem at a time.

They are what the fast code is measured against, and what it is tested equal to.
"""

from __future__ import annotations

import math

import numpy as np

from unpoison.filters import GroupCounts
from unpoison.summary import Summary
from unpoison.types import BoolArray, FloatArray

PlainSolution = tuple[FloatArray, FloatArray, int]


def perturb_piecewise(values: FloatArray, epsilon: float, rng: np.random.Generator) -> FloatArray:
    """Alg. 1 as an expression over whole arrays."""
    root = math.exp(epsilon / 2)
    C = (root + 1) / (root - 1)
    left = (C + 1) / 2 * values - (C - 1) / 2
    right = left + C - 1
    within = left + (right - left) * rng.random(len(values))
    around = -C + (C + 1) * rng.random(len(values))
    outside = np.where(around < left, around, around + (right - left))
    inside = rng.random(len(values)) < root / (root + 1)
    return np.where(inside, within, outside)


def em(
    matrix: FloatArray,
    counts: FloatArray,
    support: BoolArray,
    tolerance: float,
    byzantine_fraction: float | None = None,
    max_iterations: int = 10**6,
) -> PlainSolution:
    """EMF (Alg. 2), or EMF* (Alg. 4) where a fraction is given: x̂, ŷ and the iterations."""
    start = 1 / (matrix.shape[1] + support.sum())
    x = np.full(matrix.shape[1], start)
    y = np.where(support, start, 0.0)
    before = -math.inf
    for iteration in range(max_iterations + 1):
        mixture = matrix @ x + y
        likelihood = float(np.sum(counts * np.log(mixture)))
        if abs(likelihood - before) < tolerance or iteration == max_iterations:
            return x, y, iteration
        before = likelihood
        ratio = counts / mixture
        weight_x, weight_y = x * (matrix.T @ ratio), y * ratio
        if byzantine_fraction is None:
            total = weight_x.sum() + weight_y.sum()
            x, y = weight_x / total, weight_y / total
        else:
            x = (1 - byzantine_fraction) * weight_x / weight_x.sum()
            y = byzantine_fraction * weight_y / weight_y.sum()
    raise AssertionError


def dap(summary: Summary) -> dict[str, float]:
    """The means of DAP with EMF and with EMF*, `optimal` weights, the paper's other defaults."""
    groups = [GroupCounts.of(summary, group) for group in range(len(summary.plan.groups))]
    matrices = [group.buckets.transition.dense() for group in groups]
    stops = [0.01 * math.exp(group.buckets.mechanism.epsilon) for group in groups]
    middle = (groups[0].buckets.input_edges[0] + groups[0].buckets.input_edges[-1]) / 2

    last = len(groups) - 1
    probes = {
        side: em(
            matrices[last], groups[last].counts, groups[last].support(side, middle), stops[last]
        )
        for side in ("left", "right")
    }
    side = "left" if probes["left"][0].var() < probes["right"][0].var() else "right"
    fraction = float(probes[side][1].sum())

    solutions: dict[str, list[PlainSolution]] = {"emf": [], "emf-star": []}
    for place, group in enumerate(groups):
        support = group.support(side, middle)
        known = probes[side] if place == last else None
        free = known or em(matrices[place], group.counts, support, stops[place])
        solutions["emf"].append(free)
        solutions["emf-star"].append(
            em(matrices[place], group.counts, support, stops[place], fraction)
        )
    return {scheme: _mean(summary, groups, each) for scheme, each in solutions.items()}


def _mean(summary: Summary, groups: list[GroupCounts], solutions: list[PlainSolution]) -> float:
    """Eq. M_t for each group, then the weights (honest reports)/Var_t."""
    means, weights = [], []
    for place, (group, (_, y, _)) in enumerate(zip(groups, solutions, strict=True)):
        mechanism, reports = group.buckets.mechanism, float(summary.reports[place])
        average = float(mechanism.decode(np.array(summary.sum(place) / reports)))
        honest = 1 - y.sum()
        means.append((average - float(y @ group.buckets.decoded_values)) / honest)
        weights.append(reports * honest / mechanism.worst_variance)
    normalised = float(np.array(weights) @ np.array(means) / np.sum(weights))
    return summary.plan.natural(normalised)
