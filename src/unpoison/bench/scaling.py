"""How the time to estimate grows with the number of users."""

from __future__ import annotations

import numpy as np

from unpoison.bench.beta_summaries import draw_beta_summary
from unpoison.bench.result import Result, benchmarks, duration, seconds
from unpoison.plan import Plan
from unpoison.protocols import estimate_dap

USERS = (10**4, 10**5, 10**6, 10**7, 10**8)
"""Ten times as many on each line, from the smallest collections worth estimating to large ones."""


@benchmarks.register("scaling")
def scaling() -> list[Result]:
    """Measure EMF* from a Summary at ε = 1, ε0 = 1/16; each line beside a tenth of the users."""
    plan = Plan.new(epsilon=1.0, min_epsilon=0.0625, low=0, high=1)
    rng = np.random.default_rng(1)
    results: list[Result] = []
    before = None
    for users in USERS:
        summary = draw_beta_summary(plan, users, rng)
        taken = min(seconds(lambda s=summary: estimate_dap(s, ["emf-star"])) for _ in range(2))  # type: ignore[misc]
        results.append(
            Result(
                f"estimate, EMF*, {users:.0e} users".replace("e+0", "e"),
                duration(taken),
                "–" if before is None else duration(before),
                None if before is None else taken / before,
                "how it grows",
                None,
            )
        )
        before = taken
    return results
