"""The picture of a comparison of methods: their errors over the floor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from unpoison.output.figure import HONEST, OBSERVED, hide_frame, new_figure
from unpoison.simulation import Score
from unpoison.simulation.trial import GROUPED


def draw_comparison(scores: Sequence[Score]) -> Any:
    """A figure with the error of every method, as a multiple of the floor.

    >>> line = Score("emf", "grouped", 10, 0.5, 0.0, 0.125, 1.25, 0.25, side="right", seconds=0.1)
    >>> [text.get_text() for text in draw_comparison([line]).axes[0].get_yticklabels()]
    ['emf']
    """
    figure, (axis,) = new_figure(1, width=7.5, height=1.4 + 0.32 * len(scores), across=1)
    ranked = sorted(scores, key=lambda line: line.mse_over_floor, reverse=True)
    positions = np.arange(len(ranked))
    colours = [HONEST if line.collection == GROUPED else OBSERVED for line in ranked]
    bars = axis.barh(positions, [line.mse_over_floor for line in ranked], color=colours)
    axis.bar_label(bars, [f"{line.mse_over_floor:.3g}" for line in ranked], padding=3, fontsize=8)
    axis.set_yticks(positions, [line.label for line in ranked])
    axis.set_xscale("log")
    axis.axvline(1.0, color="black", linestyle=":")
    axis.set_xlabel("mean squared error / floor")
    axis.margins(x=0.15)
    hide_frame(axis)
    return figure
