"""The picture of many categories: the most frequent and the pushed ones, with intervals."""

from __future__ import annotations

from typing import Any

import numpy as np

from unpoison.estimate import Estimate
from unpoison.estimate.ranking import shown_categories
from unpoison.output.figure import HONEST, POISON, hide_frame, new_figure
from unpoison.simulation import Simulation

ROW_HEIGHT = 0.24
"""Inches for each category: its name in eight points, and a little air."""
OTHER_HEIGHT = 1.3
"""Inches for the title and the axis below."""


def draw_ranking(
    estimate: Estimate, title: str, run: Simulation | None = None, top: int | None = None
) -> Any:
    """A figure with a bar for each category that is shown, the most frequent at the top.

    >>> from unpoison.estimate.estimate import Byzantine
    >>> attackers = Byzantine(0.1, categories=("milk",))
    >>> frequencies = {"tea": 0.3, "coffee": 0.7, "milk": 0.0}
    >>> answer = Estimate("joint", 0.0, attackers, frequencies=frequencies)
    >>> len(draw_ranking(answer, "Drinks").axes[0].patches)
    3
    """
    names = shown_categories(estimate, top)
    frequencies, pushed = estimate.frequencies or {}, set(estimate.byzantine.categories or ())
    height = OTHER_HEIGHT + ROW_HEIGHT * len(names)
    figure, (axis,) = new_figure(1, width=6.4, height=height, across=1)
    rows = np.arange(len(names))
    colours = [POISON if name in pushed else HONEST for name in names]
    axis.barh(rows, [frequencies[name] for name in names], 0.7, color=colours, alpha=0.75)
    intervals = estimate.fit.get("frequency_intervals")
    if intervals:
        lows, highs = np.array([intervals[name] for name in names]).T
        axis.hlines(rows, lows, highs, color="black", linewidth=0.9, label="95 % interval")
    if run is not None and run.frequencies is not None:
        truth = [run.frequencies[name] for name in names]
        axis.plot(truth, rows, "|", color="black", markersize=9, label="truth")
    labels = [f"{name} (pushed)" if name in pushed else name for name in names]
    axis.set_yticks(rows, labels, fontsize=8)
    axis.invert_yaxis()
    axis.set_xlim(0, None)
    axis.set_xlabel("frequency among honest users")
    if axis.get_legend_handles_labels()[0]:
        axis.legend(frameon=False, fontsize=9, loc="lower right")
    hide_frame(axis)
    figure.suptitle(title, fontsize=11)
    return figure
