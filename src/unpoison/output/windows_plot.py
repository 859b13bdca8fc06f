"""The picture of estimates over time: mean and attackers' share of every window."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from unpoison.estimate import Estimate
from unpoison.output.figure import (
    HONEST,
    OBSERVED,
    POISON,
    axis_label,
    hide_frame,
    new_figure,
)
from unpoison.summary.windows import Window, utc_datetime


def draw_over_time(answers: Sequence[tuple[Window, Estimate]]) -> Any:
    """A figure with the mean and the attackers' share of every window, with their intervals.

    >>> from unpoison import Plan, estimate, simulate
    >>> plan = Plan.new(epsilon=0.5, min_epsilon=0.25, low=0, high=1)
    >>> run = simulate(plan, np.full(2000, 0.3), rng=np.random.default_rng(1))
    >>> figure = draw_over_time([(Window(0, 3_600_000_000), estimate(run.summary))])
    >>> [axis.get_ylabel() for axis in figure.axes]
    ['mean', 'attackers, %']
    """
    figure, axes = new_figure(2, width=9.0, height=2.8, across=1)
    middles = [utc_datetime((window.start + window.end) // 2) for window, _ in answers]
    means = [answer.mean for _, answer in answers]
    shares = [100 * answer.byzantine.fraction for _, answer in answers]
    mean_intervals = [answer.interval for _, answer in answers]
    share_intervals = [answer.byzantine.interval for _, answer in answers]
    _draw_line(axes[0], middles, means, mean_intervals, HONEST)
    _draw_line(axes[1], middles, shares, share_intervals, POISON, scale=100)
    unfiltered = [answer.fit.get("unfiltered_mean") for _, answer in answers]
    if all(mean is not None for mean in unfiltered):
        axes[0].plot(middles, unfiltered, ":", color=OBSERVED, label="without a filter")
        axes[0].legend(frameon=False, fontsize=9)
    unit = answers[0][1].unit if answers else None
    titles = (axis_label("mean", unit), axis_label("attackers", "%"))
    for axis, title in zip(axes, titles, strict=True):
        axis.set_ylabel(title)
        axis.tick_params(axis="x", labelrotation=20)
        hide_frame(axis)
    axes[1].set_ylim(bottom=0)
    return figure


def _draw_line(
    axis: Any,
    times: Sequence[Any],
    values: Sequence[float],
    intervals: Sequence[tuple[float, float] | None],
    colour: str,
    scale: float = 1.0,
) -> None:
    """A line over time, with a band where there are intervals."""
    lows = [scale * interval[0] if interval else np.nan for interval in intervals]
    highs = [scale * interval[1] if interval else np.nan for interval in intervals]
    if any(interval is not None for interval in intervals):
        axis.fill_between(times, lows, highs, color=colour, alpha=0.2, linewidth=0)
    axis.plot(times, values, "o-", color=colour, markersize=3)
