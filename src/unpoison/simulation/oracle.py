"""The oracle: the best estimate of someone who knows which users attack."""

from __future__ import annotations

from dataclasses import replace

from unpoison.defences import defences
from unpoison.estimate import Estimate
from unpoison.estimate.statistic import Statistic
from unpoison.protocols.unfiltered import unfiltered_answer
from unpoison.simulation.ground_truth import Simulation

ORACLE = "oracle"
"""The name of the oracle among methods; only simulations have it."""


def oracle_estimate(run: Simulation, statistic: Statistic | None = None) -> Estimate:
    """The Estimate from the honest reports alone, all groups with their best weights.

    >>> import numpy as np
    >>> from unpoison import Plan, simulate
    >>> plan, values = Plan.new(epsilon=0.5, low=0, high=1), np.full(5000, 0.25)
    >>> run = simulate(plan, values, "point:C", 0.3, np.random.default_rng(1))
    >>> bool(abs(oracle_estimate(run).mean - 0.25) < 0.5)
    True
    """
    summary = run.honest_summary or run.summary
    statistic = statistic or Statistic.of(summary.plan)
    answer = defences["ostrich"]().estimate(summary, ORACLE, statistic)
    unfiltered = unfiltered_answer(summary, summary.tiers_with_reports).post_processed(statistic)
    if unfiltered.frequencies is None:
        return replace(answer, mean=unfiltered.mean)
    return replace(answer, frequencies=unfiltered.frequencies)
