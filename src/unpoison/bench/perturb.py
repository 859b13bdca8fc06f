"""Perturbing with PM against NumPy over whole arrays: time and memory."""

from __future__ import annotations

import numpy as np

from unpoison.bench.plain_schemes import perturb_piecewise
from unpoison.bench.result import (
    Result,
    benchmarks,
    faster,
    limit,
    peak_memory,
    race,
)
from unpoison.mechanisms import make

VALUES = 10**7
EPSILON = 1.0


@benchmarks.register("perturb")
def perturb() -> list[Result]:
    """PM on 10^7 values."""
    rng = np.random.default_rng(1)
    values = rng.uniform(-1, 1, VALUES)
    mechanism = make("piecewise", EPSILON)

    def ours() -> object:
        return mechanism.perturb(values, rng)

    def theirs() -> object:
        return perturb_piecewise(values, EPSILON, rng)

    fast, plain = race(ours, theirs)
    small, large = peak_memory(ours), peak_memory(theirs)
    share = small / large
    memory = Result(
        "perturb, PM, 10^7 values: peak memory against whole arrays",
        f"{small / 2**20:.0f} MiB",
        f"{large / 2**20:.0f} MiB",
        share,
        "≤ 0.5×",
        share <= 0.5,
    )
    return [
        faster("perturb, PM, 10^7 values: time against whole arrays", fast, plain, 1),
        memory,
        limit("perturb, PM, 10^7 values", fast, lambda: rng.random(VALUES)),
    ]
