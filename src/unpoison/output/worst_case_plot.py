"""The worst case as a panel: the possible means against the share of attackers."""

from __future__ import annotations

from typing import Any

from unpoison.estimate import Estimate
from unpoison.output.figure import HONEST, OBSERVED, POISON, axis_label
from unpoison.simulation import Simulation


def draw_worst_case(axis: Any, estimate: Estimate, run: Simulation | None = None) -> None:
    """Draw the ranges of an estimate whose worst case has them for several shares.

    >>> import numpy as np
    >>> from unpoison import Plan, estimate, simulate
    >>> from unpoison.output.figure import new_figure
    >>> plan = Plan.new(epsilon=1.0, min_epsilon=0.5, low=0, high=1)
    >>> run = simulate(plan, np.full(5000, 0.3), rng=np.random.default_rng(1))
    >>> answer = estimate(run.summary, worst_case_shares=(0.0, 0.25, 0.5))
    >>> figure, axes = new_figure(1, width=5, height=4, across=1)
    >>> draw_worst_case(axes[0], answer)
    >>> axes[0].get_xlabel()
    'attackers, at most (% of a group)'
    """
    worst_case = estimate.worst_case
    if worst_case is None:
        return
    ranges = worst_case.by_share
    shares = [100 * entry.attackers_at_most for entry in ranges]
    lows, highs = [entry.low for entry in ranges], [entry.high for entry in ranges]
    axis.fill_between(shares, lows, highs, color=HONEST, alpha=0.25, label="possible means")
    for limits in ([entry.limit_low for entry in ranges], [entry.limit_high for entry in ranges]):
        axis.plot(shares, limits, color=OBSERVED, linestyle="--", linewidth=1.2)
    axis.plot([], [], color=OBSERVED, linestyle="--", label="limit, if all is hidden")
    axis.axhline(estimate.mean, color=HONEST, linewidth=1.8, label="estimate")
    if run is not None:
        axis.axhline(run.truth, color="black", linewidth=1.0, linestyle=":", label="truth")
    if worst_case.least_attackers > 0:
        axis.axvline(100 * worst_case.least_attackers, color=POISON, label="attack at least")
    axis.set_title("whatever attackers send")
    axis.set_xlabel("attackers, at most (% of a group)")
    axis.set_ylabel(axis_label("mean", estimate.unit))
    axis.set_xlim(0, max(shares))
    axis.legend(frameon=False, fontsize=8)
