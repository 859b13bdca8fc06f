"""The whole of DAP with EMF and EMF*, against a plain dense implementation."""

from __future__ import annotations

import numpy as np

from unpoison.bench import plain_schemes as plain
from unpoison.bench.result import Result, benchmarks, faster, race, same
from unpoison.plan import Plan
from unpoison.protocols import estimate_dap
from unpoison.simulation import simulate

USERS = 10**6
"""As many as the paper's synthetic datasets have."""
SCHEMES = ("emf", "emf-star")
SAME = 1e-9
"""The largest difference that rounding may make."""


@benchmarks.register("dap")
def dap() -> list[Result]:
    """Measure DAP from a Summary of 10^6 users at ε = 2 to both estimates."""
    plan = Plan.new(epsilon=2.0, min_epsilon=0.0625, low=0, high=1)
    rng = np.random.default_rng(1)
    summary = simulate(plan, rng.beta(2, 5, USERS), "uniform:3C/4,C", 0.25, rng).summary
    fast, dense = race(
        lambda: estimate_dap(summary, SCHEMES), lambda: plain.dap_schemes(summary, SCHEMES), 7
    )
    expected = plain.dap_schemes(summary, SCHEMES)
    ours = estimate_dap(summary, SCHEMES)
    gap = max(abs(ours[s].mean - plan.natural(expected[s].mean)) for s in SCHEMES)
    size = "DAP, EMF and EMF*, 10^6 users, ε = 2"
    return [
        faster(f"{size}: time", fast, dense, 2),
        same(f"{size}: largest difference of the means", gap, SAME),
    ]
