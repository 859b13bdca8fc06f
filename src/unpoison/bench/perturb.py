"""Perturbing with PM against NumPy over whole arrays: time and memory."""

from __future__ import annotations

import math

import numpy as np

from unpoison.bench.result import (
    Result,
    benchmarks,
    faster,
    limit,
    peak_memory,
    race,
)
from unpoison.mechanisms import make
from unpoison.types import FloatArray

VALUES = 10**7
"""80 MB an array: more than any processor's cache, so that whole arrays go through the memory."""
EPSILON = 1.0
"""The middle one of the paper's budgets; the time hardly depends on it."""


@benchmarks.register("perturb")
def perturb() -> list[Result]:
    """Measure time and memory of PM on 10^7 values."""
    rng = np.random.default_rng(1)
    values = rng.uniform(-1, 1, VALUES)
    mechanism = make("piecewise", EPSILON)

    def ours() -> object:
        return mechanism.perturb(values, rng)

    def theirs() -> object:
        return perturb_piecewise(values, EPSILON, rng)

    fast, plain = race(ours, theirs)
    small, large = peak_memory(ours), peak_memory(theirs)
    ratio = small / large
    memory = Result(
        "perturb, PM, 10^7 values: peak memory against whole arrays",
        f"{small / 2**20:.0f} MiB",
        f"{large / 2**20:.0f} MiB",
        ratio,
        "≤ 0.5×",
        ratio <= 0.5,
    )
    return [
        faster("perturb, PM, 10^7 values: time against whole arrays", fast, plain, 1),
        memory,
        limit("perturb, PM, 10^7 values", fast, lambda: rng.random(VALUES)),
    ]


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
