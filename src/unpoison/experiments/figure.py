"""The one plotter: panels that are declared, drawn and tabled from tidy rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unpoison.estimate.methods import split_method
from unpoison.output.figure import new_figure
from unpoison.output.markdown import markdown_table

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
MEASURES = {
    "squared_error": "MSE",
    "over_floor": "MSE / floor",
    "covered": "intervals that cover",
    "suspicious": "p < 0.05",
    "gamma_error": "|γ̂ − γ|",
    "byzantine_fraction": "γ̂",
    "wasserstein": "Wasserstein distance",
    "located": "found exactly",
    "variance_left": "variance of x̂, left",
    "variance_right": "variance of x̂, right",
}
"""What a panel may show, each averaged over trials."""
SUSPICIOUS = 0.05
SHARES = ("located", "covered")
SYMBOLS = {"epsilon": "ε", "gamma": "γ", "rate": "β", "subsets": "subsets"}
Lines = dict[str, dict[Any, float]]


@dataclass(frozen=True)
class Panel:
    """One measure against one column, for the rows in which some columns have given values.

    There is a line for each value of `by`; rivals have one for either collection. A row without a
    place (a method that has no such parameter) counts at every place. `labels` are what values of
    columns are called.

    >>> panel = Panel("MSE", "squared_error", where={"dataset": "taxi"})
    >>> rows = pa.table({"dataset": ["taxi", "other"], "squared_error": [1.0, 2.0]})
    >>> panel.rows(rows).num_rows
    1
    """

    title: str
    measure: str
    where: Mapping[str, Any] = field(default_factory=dict)
    against: str = "epsilon"
    by: str = "method"
    labels: Mapping[str, str] = field(default_factory=dict)
    floor: bool = False
    logarithmic: bool = True

    def rows(self, table: pa.Table) -> pa.Table:
        """The rows that the panel is about; a tuple allows any of its values."""
        table = with_measures(table)
        for column, value in self.where.items():
            allowed = list(value) if isinstance(value, tuple) else [value]
            kind = table[column].type
            table = table.filter(pc.is_in(table[column], pa.array(allowed, kind)))
        return table

    def lines(self, table: pa.Table) -> Lines:
        """Each line's mean of the measure at every place."""
        rows = self.rows(table)
        places = _places(rows[self.against].to_pylist())
        found: dict[str, dict[Any, list[float]]] = {}
        columns = (self.by, "collection", self.against, self.measure)
        for line, collection, at, value in zip(
            *(rows[name].to_pylist() for name in columns), strict=True
        ):
            if value is not None:
                name = self.labels.get(line, str(line))
                name = name if collection == "grouped" else f"{name} (ungrouped)"
                for place in places if at is None else [at]:
                    found.setdefault(name, {}).setdefault(place, []).append(value)
        return {name: _means(line) for name, line in found.items()}

    def floors(self, table: pa.Table) -> dict[Any, float]:
        """The mean floor at every place."""
        rows = self.rows(table)
        found: dict[Any, list[float]] = {}
        pairs = zip(rows[self.against].to_pylist(), rows["floor"].to_pylist(), strict=True)
        for at, floor in pairs:
            found.setdefault(at, []).append(floor)
        found.pop(None, None)
        return _means(found)

    def place(self, at: Any) -> str:
        """What a place on the axis is called."""
        return self.labels.get(at, f"{at:g}" if isinstance(at, float) else str(at))


def _places(column: list[Any]) -> list[Any]:
    return [place for place in dict.fromkeys(column) if place is not None]


def _means(line: dict[Any, list[float]]) -> dict[Any, float]:
    """Numbers in rising order; names in the order in which they come."""
    numeric = all(isinstance(at, float) for at in line)
    places = sorted(line) if numeric else list(line)
    return {at: float(np.mean(line[at])) for at in places}


def with_measures(rows: pa.Table) -> pa.Table:
    """Rows with what follows from their columns.

    That is |γ̂ − γ|, of those that estimate γ; the squared error in units of the floor; whether p <
    0.05; and a method's name without its parameters, and two of these.

    >>> rows = {"byzantine_fraction": [0.25], "gamma": [0.5], "side": ["right"]}
    >>> found = with_measures(pa.table({**rows, "method": ["k-means:rate=0.5"]}))
    >>> [found[name].to_pylist() for name in ("gamma_error", "scheme", "rate", "subsets")]
    [[0.25], ['k-means'], [0.5], [None]]
    """
    present = set(rows.column_names)
    if "scheme" in present or not {"byzantine_fraction", "method"} <= present:
        return rows
    methods = [split_method(method) for method in rows["method"].to_pylist()]
    rows = rows.append_column("scheme", pa.array([name for name, _ in methods], pa.string()))
    for parameter in ("rate", "subsets"):
        texts = [dict(given).get(parameter) for _, given in methods]
        column = [None if text is None else float(text) for text in texts]
        rows = rows.append_column(parameter, pa.array(column, pa.float64()))
    if {"squared_error", "floor"} <= set(rows.column_names):
        over = pc.divide(rows["squared_error"], rows["floor"])
        rows = rows.append_column("over_floor", over)
    if "p_value" in rows.column_names:
        low = pc.less(rows["p_value"].cast(pa.float64()), SUSPICIOUS)
        rows = rows.append_column("suspicious", low.cast(pa.float64()))
    apart = pc.abs(pc.subtract(rows["byzantine_fraction"], rows["gamma"]))
    blind = pc.and_(pc.equal(rows["side"], "none"), pc.equal(rows["byzantine_fraction"], 0.0))
    nothing = pa.scalar(None, pa.float64())
    return rows.append_column("gamma_error", pc.if_else(blind, nothing, apart))


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
    shared = len({panel.by for panel in panels}) == 1
    names: dict[str, Any] = {}
    for axis, panel in zip(axes, panels, strict=True):
        _draw_panel(axis, panel, table)
        names |= dict(zip(*reversed(axis.get_legend_handles_labels()), strict=True))
        if not shared:
            axis.legend(frameon=False, fontsize=8)
    if shared:
        figure.legend(
            names.values(), names.keys(), loc="outside lower center", ncols=4, frameon=False
        )
    figure.suptitle(title, fontsize=12)
    return figure


def _draw_panel(axis: Any, panel: Panel, table: pa.Table) -> None:
    lines = panel.lines(table)
    places = list(panel.floors(table))
    numeric = all(isinstance(at, float) for at in places)
    at = {place: place if numeric else number for number, place in enumerate(places)}
    for name, line in lines.items():
        points = {"marker": "o", "markersize": 4, "label": name, "color": _colour(name)}
        style = "--" if name.endswith("(ungrouped)") else "-"
        axis.plot([at[place] for place in line], list(line.values()), style, **points)
    if panel.floor:
        floors = panel.floors(table)
        axis.plot([at[p] for p in floors], list(floors.values()), ":", color="black", label="floor")
    if places:
        _label_places(axis, panel, at, numeric)
    if panel.logarithmic and any(value > 0 for line in lines.values() for value in line.values()):
        axis.set_yscale("log")
    if panel.measure in SHARES:
        axis.set_ylim(0, 1.05)
    axis.set_title(panel.title, fontsize=10)
    axis.set_ylabel(MEASURES[panel.measure])
    axis.grid(alpha=0.25)
    axis.spines[["top", "right"]].set_visible(False)


def _colour(name: str) -> str | None:
    return COLOURS.get(name.removesuffix(" (ungrouped)"))


def _label_places(axis: Any, panel: Panel, at: Mapping[Any, Any], numeric: bool) -> None:
    names = [panel.place(place) for place in at]
    if numeric and all(place > 0 for place in at):
        axis.set_xscale("log", base=2)
    long = max(len(name) for name in names) > 6
    turn = {"rotation": 60 if len(names) > 8 else 30, "ha": "right"} if long else {}
    axis.set_xticks(list(at.values()), names, fontsize=8, **turn)
    axis.minorticks_off()
    axis.set_xlabel(SYMBOLS.get(panel.against, "" if not numeric else panel.against))


def markdown(tables: Mapping[str, Sequence[Sequence[str]]]) -> str:
    """Tables under their titles.

    >>> print(markdown({"Fruit": [["name"], ["apple"]]}))
    **Fruit**
    <BLANKLINE>
    | name |
    | --- |
    | apple |
    """
    return "\n\n".join(f"**{title}**\n\n{markdown_table(rows)}" for title, rows in tables.items())


def cells_of(panel: Panel, table: pa.Table) -> list[list[str]]:
    """A panel as rows of text, its head first.

    >>> rows = {"method": ["emf"], "collection": ["grouped"], "epsilon": [1.0], "floor": [0.1]}
    >>> rows |= {"squared_error": [0.5], "byzantine_fraction": [0.2], "gamma": [0.25]}
    >>> rows |= {"side": ["right"]}
    >>> cells_of(Panel("MSE", "squared_error"), pa.table(rows))
    [['MSE', 'ε = 1'], ['emf', '0.5']]
    """
    lines = panel.lines(table)
    if panel.floor:
        lines = {**lines, "floor": panel.floors(table)}
    places = list(panel.floors(table))
    sign = f"{SYMBOLS[panel.against]} = " if panel.against in SYMBOLS else ""
    heads = [MEASURES[panel.measure], *(sign + panel.place(at) for at in places)]
    rows = [
        [name, *(f"{line[at]:.3g}" if at in line else "–" for at in places)]
        for name, line in lines.items()
    ]
    return [heads, *rows]
