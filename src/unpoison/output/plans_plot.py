"""The picture of the planner's comparison: error, worst case and detection of every plan."""

from __future__ import annotations

from typing import Any

import numpy as np

from unpoison.output.figure import (
    HONEST,
    OBSERVED,
    POISON,
    axis_label,
    hide_frame,
    new_figure,
)
from unpoison.planner import Comparison


def draw_plans(comparison: Comparison) -> Any:
    """A figure with the error, the worst case and the detectable share of every plan.

    The recommended plan is in colour. Errors have two standard errors on either side; dots are
    errors with nobody attacking. The worst case is what is possible from the truth on.

    >>> from unpoison.planner import PredictedError, Prediction, Setting, Situation, candidates
    >>> plan = candidates(1.0, 0.5, low=0, high=1)[0]
    >>> situation, error = Situation("poison", "uniform"), PredictedError(0.02, 0.001, 8)
    >>> line = Prediction(plan, situation, error, True, 0.01, 2.0, 0.05, 0.1, (-0.2, 0.25))
    >>> figure = draw_plans(Comparison((line,), Setting(1000, tolerate=0.25)))
    >>> [text.get_text() for text in figure.axes[0].get_yticklabels()]
    ['ε0 0.5, equal users']
    """
    lines = comparison.lines[::-1]
    figure, axes = new_figure(3, width=4.2, height=1.6 + 0.3 * len(lines), across=3)
    colours = [HONEST if line is comparison.recommended else OBSERVED for line in lines]
    positions, share = np.arange(len(lines)), f"{100 * comparison.setting.tolerate:.3g} %"
    lows = [np.zeros(len(lines)), [line.worst_case[0] for line in lines], np.zeros(len(lines))]
    lengths = [
        [line.error for line in lines],
        [line.worst_case_width for line in lines],
        np.nan_to_num([100 * line.detectable for line in lines]),
    ]
    unit = comparison.recommended.candidate.plan.unit
    titles = [
        axis_label(f"error with {share} attacking, worst of those tried", unit),
        axis_label(f"possible whatever {share} of users send", unit),
        "smallest share that is noticed, %",
    ]
    for axis, low, length, title in zip(axes, lows, lengths, titles, strict=True):
        axis.barh(positions, length, left=low, color=colours)
        axis.set_xlabel(title)
        axis.set_yticks(positions, [""] * len(lines))
        hide_frame(axis)
    _mark_errors(axes[0], comparison)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="upper left", ncols=3, frameon=False)
    title = f"{comparison.setting.users:,} users; recommended plan in blue"
    # Beside the legend, not over it.
    figure.suptitle(title, fontsize=11, x=0.98, horizontalalignment="right")
    return figure


def _mark_errors(axis: Any, comparison: Comparison) -> None:
    """The plans' names, how well errors are known, errors with nobody attacking, the target."""
    lines = comparison.lines[::-1]
    positions = np.arange(len(lines))
    axis.set_yticks(positions, [line.candidate.label for line in lines])
    errors, doubled = [line.error for line in lines], [2 * line.standard_error for line in lines]
    axis.errorbar(
        errors, positions, xerr=doubled, fmt="none", color="black", label="± 2 standard errors"
    )
    quiet = [line.quiet_error for line in lines]
    axis.plot(quiet, positions, "o", color="black", markersize=4, label="nobody attacks")
    if comparison.target_error is not None:
        axis.axvline(comparison.target_error, color=POISON, linestyle=":", label="target")
