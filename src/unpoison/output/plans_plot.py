"""The picture of the planner's comparison: error, detection and worst case of every plan."""

from __future__ import annotations

from typing import Any

import numpy as np

from unpoison.output.figure import HONEST, OBSERVED, POISON, hide_frame, new_figure
from unpoison.planner import Comparison


def draw_plans(comparison: Comparison) -> Any:
    """A figure with the error, the detectable share and the worst case of every plan.

    The recommended plan is in colour; dots are errors with nobody attacking.

    >>> from unpoison.planner import Prediction, Setting, candidates
    >>> plan = candidates(1.0, 0.5, low=0, high=1)[0]
    >>> line = Prediction(plan, 0.02, 0.018, 0.01, 2.0, 0.05, 0.25)
    >>> figure = draw_plans(Comparison((line,), Setting(1000, tolerate=0.25)))
    >>> [text.get_text() for text in figure.axes[0].get_yticklabels()]
    ['ε0 0.5, equal users']
    """
    lines = comparison.lines[::-1]
    figure, axes = new_figure(3, width=4.2, height=1.6 + 0.3 * len(lines), across=3)
    colours = [HONEST if line is comparison.recommended else OBSERVED for line in lines]
    positions = np.arange(len(lines))
    share = f"{100 * comparison.setting.tolerate:.3g} %"
    columns = [
        ([line.error for line in lines], f"error with {share} attacking"),
        ([100 * line.detectable for line in lines], "smallest share that is noticed, %"),
        ([line.worst_case for line in lines], f"worst case of {share} attackers"),
    ]
    for axis, (lengths, title) in zip(axes, columns, strict=True):
        axis.barh(positions, np.nan_to_num(lengths), color=colours)
        axis.set_xlabel(title)
        axis.set_yticks(positions, [""] * len(lines))
        hide_frame(axis)
    axes[0].set_yticks(positions, [line.candidate.label for line in lines])
    quiet = [line.quiet_error for line in lines]
    axes[0].plot(quiet, positions, "o", color="black", markersize=4, label="nobody attacks")
    if comparison.target_error is not None:
        axes[0].axvline(comparison.target_error, color=POISON, linestyle=":", label="target")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="upper left", ncols=2, frameon=False)
    figure.suptitle(f"{comparison.setting.users:,} users; recommended plan in blue", fontsize=11)
    return figure
