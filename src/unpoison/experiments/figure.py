"""The picture of an experiment: its panels side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from unpoison.experiments.panel import MEASURES, SYMBOLS, UNGROUPED_SUFFIX, Panel
from unpoison.output.figure import hide_frame, new_figure

COLOURS = {
    "ostrich": "#9aa5b1",
    "trimming": "#b08800",
    "emf": "#8250df",
    "emf-star": "#1f6feb",
    "cemf-star": "#1a7f37",
    "oracle": "#24292f",
    "joint": "#cf222e",
    "k-means": "#bc4c00",
    "emf-k-means": "#0a7d8c",
}
"""The colour of each method, the same in every picture."""
FRACTIONS = ("located", "covered")
"""Measures from 0 to 1, drawn on the whole of that scale."""
LONG_NAME, MANY_NAMES = 6, 8
"""Characters of a name, and number of names, from which labels of the axis are turned."""


def draw(title: str, panels: Sequence[Panel], table: pa.Table) -> Any:
    """A figure with the panels in rows of three or four.

    >>> rows = {"method": ["emf"], "collection": ["grouped"], "epsilon": [1.0], "floor": [0.1]}
    >>> rows |= {"squared_error": [0.5], "byzantine_fraction": [0.2], "gamma": [0.25]}
    >>> rows |= {"side": ["right"]}
    >>> figure = draw("An experiment", [Panel("MSE", "squared_error")], pa.table(rows))
    >>> figure.axes[0].get_title()
    'MSE'
    """
    across = 3 if len(panels) in (5, 6) else 4
    figure, axes = new_figure(len(panels), width=4.2, height=3.6, across=across)
    # Panels with lines of the same kind share one legend.
    shared = len({panel.by for panel in panels}) == 1
    handles: dict[str, Any] = {}
    for axis, panel in zip(axes, panels, strict=True):
        _draw_panel(axis, panel, table)
        handles |= dict(zip(*reversed(axis.get_legend_handles_labels()), strict=True))
        if not shared:
            axis.legend(frameon=False, fontsize=8)
    if shared:
        figure.legend(
            handles.values(), handles.keys(), loc="outside lower center", ncols=4, frameon=False
        )
    figure.suptitle(title, fontsize=12)
    return figure


def _draw_panel(axis: Any, panel: Panel, table: pa.Table) -> None:
    lines = panel.lines(table)
    all_x = list(panel.floors(table))
    numeric = all(isinstance(x, float) for x in all_x)
    # Names stand at 0, 1, 2, … on the axis, numbers at themselves.
    position = {x: x if numeric else number for number, x in enumerate(all_x)}
    for name, line in lines.items():
        points = {"marker": "o", "markersize": 4, "label": name, "color": _colour(name)}
        style = "--" if name.endswith(UNGROUPED_SUFFIX) else "-"
        axis.plot([position[x] for x in line], list(line.values()), style, **points)
    if panel.floor:
        floors = panel.floors(table)
        at = [position[x] for x in floors]
        axis.plot(at, list(floors.values()), ":", color="black", label="floor")
    if all_x:
        _label_axis(axis, panel, position, numeric)
    if panel.logarithmic and any(value > 0 for line in lines.values() for value in line.values()):
        axis.set_yscale("log")
    if panel.measure in FRACTIONS:
        axis.set_ylim(0, 1.05)
    axis.set_title(panel.title, fontsize=10)
    axis.set_ylabel(MEASURES[panel.measure])
    axis.grid(alpha=0.25)
    hide_frame(axis)


def _colour(name: str) -> str | None:
    """The colour of a method; other lines get matplotlib's next one."""
    return COLOURS.get(name.removesuffix(UNGROUPED_SUFFIX))


def _label_axis(axis: Any, panel: Panel, position: Mapping[Any, Any], numeric: bool) -> None:
    names = [panel.label(x) for x in position]
    # Budgets and shares are chosen by doubling, or nearly so.
    if numeric and all(x > 0 for x in position):
        axis.set_xscale("log", base=2)
    long = max(len(name) for name in names) > LONG_NAME
    turn = {"rotation": 60 if len(names) > MANY_NAMES else 30, "ha": "right"} if long else {}
    axis.set_xticks(list(position.values()), names, fontsize=8, **turn)
    axis.minorticks_off()
    axis.set_xlabel(SYMBOLS.get(panel.against, "" if not numeric else panel.against))
