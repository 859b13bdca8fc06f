"""The one plotter: panels that are declared, drawn and tabled from tidy rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unpoison.markdown import markdown_table
from unpoison.plots import new_figure

COLOURS = {
    "ostrich": "#9aa5b1",
    "trimming": "#b08800",
    "emf": "#8250df",
    "emf-star": "#1f6feb",
    "cemf-star": "#1a7f37",
}
MEASURES = {
    "squared_error": "MSE",
    "gamma_error": "|γ̂ − γ|",
    "wasserstein": "Wasserstein distance",
    "located": "found exactly",
}
"""What a panel may show, each averaged over trials."""


@dataclass(frozen=True)
class Panel:
    """One measure against one column, for the rows in which some columns have given values.

    >>> panel = Panel("MSE", "squared_error", where={"dataset": "taxi"})
    >>> rows = pa.table({"dataset": ["taxi", "other"], "squared_error": [1.0, 2.0]})
    >>> panel.rows(rows).num_rows
    1
    """

    title: str
    measure: str
    where: Mapping[str, Any] = field(default_factory=dict)
    against: str = "epsilon"
    floor: bool = False
    logarithmic: bool = True

    def rows(self, table: pa.Table) -> pa.Table:
        """The rows that the panel is about."""
        for column, value in self.where.items():
            table = table.filter(pc.equal(table[column], value))
        return table

    def lines(self, table: pa.Table) -> dict[str, dict[float, float]]:
        """Each method's (and collection's) mean of the measure at every place."""
        rows = with_measures(self.rows(table))
        found: dict[str, dict[float, list[float]]] = {}
        columns = (rows[name].to_pylist() for name in ("method", "collection", self.against))
        for method, collection, at, value in zip(
            *columns, rows[self.measure].to_pylist(), strict=True
        ):
            if value is not None:
                name = method if collection == "grouped" else f"{method} (ungrouped)"
                found.setdefault(name, {}).setdefault(at, []).append(value)
        return {
            name: {at: float(np.mean(values)) for at, values in sorted(line.items())}
            for name, line in found.items()
        }

    def floors(self, table: pa.Table) -> dict[float, float]:
        """The mean floor at every place."""
        rows = self.rows(table)
        pairs = zip(rows[self.against].to_pylist(), rows["floor"].to_pylist(), strict=True)
        found: dict[float, list[float]] = {}
        for at, floor in pairs:
            found.setdefault(at, []).append(floor)
        return {at: float(np.mean(floors)) for at, floors in sorted(found.items())}


def with_measures(rows: pa.Table) -> pa.Table:
    """Rows with what follows from their columns: |γ̂ − γ|, of those that estimate γ.

    >>> rows = pa.table({"byzantine_fraction": [0.25], "gamma": [0.5], "side": ["right"]})
    >>> with_measures(rows)["gamma_error"].to_pylist()
    [0.25]
    """
    apart = pc.abs(pc.subtract(rows["byzantine_fraction"], rows["gamma"]))
    blind = pc.and_(pc.equal(rows["side"], "none"), pc.equal(rows["byzantine_fraction"], 0.0))
    nothing = pa.scalar(None, pa.float64())
    return rows.append_column("gamma_error", pc.if_else(blind, nothing, apart))


def draw(title: str, panels: Sequence[Panel], table: pa.Table) -> Any:
    """A figure with the panels in rows of at most four.

    >>> rows = {"method": ["emf"], "collection": ["grouped"], "epsilon": [1.0], "floor": [0.1]}
    >>> rows |= {"squared_error": [0.5], "byzantine_fraction": [0.2], "gamma": [0.25]}
    >>> rows |= {"side": ["right"]}
    >>> figure = draw("An experiment", [Panel("MSE", "squared_error")], pa.table(rows))
    >>> figure.axes[0].get_title()
    'MSE'
    """
    figure, axes = new_figure(len(panels), width=4.2, height=3.6, across=4)
    names: dict[str, Any] = {}
    for axis, panel in zip(axes, panels, strict=True):
        _draw_panel(axis, panel, table)
        names |= dict(zip(*reversed(axis.get_legend_handles_labels()), strict=True))
    figure.legend(names.values(), names.keys(), loc="outside lower center", ncols=4, frameon=False)
    figure.suptitle(title, fontsize=12)
    return figure


def _draw_panel(axis: Any, panel: Panel, table: pa.Table) -> None:
    lines = panel.lines(table)
    for name, line in lines.items():
        colour = COLOURS.get(name.removesuffix(" (ungrouped)"))
        style = "--" if name.endswith("(ungrouped)") else "-"
        axis.plot(
            list(line),
            list(line.values()),
            style,
            color=colour,
            marker="o",
            markersize=4,
            label=name,
        )
    if panel.floor:
        floors = panel.floors(table)
        axis.plot(list(floors), list(floors.values()), ":", color="black", label="floor")
    places = list(panel.floors(table))
    if places:
        axis.set_xscale("log", base=2)
        axis.set_xticks(places, [f"{at:g}" for at in places])
        axis.minorticks_off()
    if panel.logarithmic and any(value > 0 for line in lines.values() for value in line.values()):
        axis.set_yscale("log")
    axis.set_title(panel.title, fontsize=10)
    axis.set_xlabel(SYMBOLS.get(panel.against, panel.against))
    axis.set_ylabel(MEASURES[panel.measure])
    axis.grid(alpha=0.25)
    axis.spines[["top", "right"]].set_visible(False)


SYMBOLS = {"epsilon": "ε", "gamma": "γ"}


def markdown(panels: Sequence[Panel], table: pa.Table) -> str:
    """A table for each panel: a row a method, a column a place.

    >>> rows = {"method": ["emf"], "collection": ["grouped"], "epsilon": [1.0], "floor": [0.1]}
    >>> rows |= {"squared_error": [0.5], "byzantine_fraction": [0.2], "gamma": [0.25]}
    >>> rows |= {"side": ["right"]}
    >>> print(markdown([Panel("MSE", "squared_error")], pa.table(rows)).splitlines()[-1])
    | emf | 0.5 |
    """
    return "\n\n".join(_markdown(panel, table) for panel in panels)


def _markdown(panel: Panel, table: pa.Table) -> str:
    lines = panel.lines(table)
    if panel.floor:
        lines = {**lines, "floor": panel.floors(table)}
    places = sorted({at for line in lines.values() for at in line})
    sign = SYMBOLS.get(panel.against, panel.against)
    heads = [MEASURES[panel.measure].replace("|", "\\|"), *(f"{sign} = {at:g}" for at in places)]
    rows = [
        [name, *(f"{line[at]:.3g}" if at in line else "–" for at in places)]
        for name, line in lines.items()
    ]
    return f"**{panel.title}**\n\n{markdown_table([heads, *rows])}"
