"""Panels: one measure of an experiment's rows against one column, as lines and as a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unpoison.estimate.methods import split_method
from unpoison.estimate.significance import NOBODY_ATTACKS_LEVEL
from unpoison.simulation.trial import GROUPED

MEASURES = {
    "squared_error": "MSE",
    "over_floor": "MSE / floor",
    "covered": "intervals that cover",
    "worst_case_holds": "worst cases that hold",
    "worst_case_over_limit": "worst case / limit",
    "suspicious": f"p < {NOBODY_ATTACKS_LEVEL:g}",
    "gamma_error": "|γ̂ − γ|",
    "byzantine_fraction": "γ̂",
    "wasserstein": "Wasserstein distance",
    "located": "found exactly",
    "variance_left": "variance of x̂, left",
    "variance_right": "variance of x̂, right",
    "prediction_ratio": "predicted / measured",
    "price": "MSE / floor of ungrouped PM",
}
"""The measures that a panel may show, each averaged over trials, with their titles."""
SYMBOLS = {"epsilon": "ε", "gamma": "γ", "rate": "β", "subsets": "subsets"}
UNGROUPED_SUFFIX = " (ungrouped)"
"""Ends the names of lines that are from ungrouped collections."""
Lines = dict[str, dict[Any, float]]
"""The lines of a panel by name: each value of `against` with the mean of the measure there."""


@dataclass(frozen=True)
class Panel:
    """One measure against one column, for the rows in which some columns have given values.

    There is a line for each value of `by`; rivals have one for either collection. A row without a
    value of `against` (a method that has no such parameter) counts at every value. `labels` are the
    names under which values of columns are shown. With `floor` the floor is a line too; with
    `median` the middle row counts, where the mean would be that of a few rows that are far off.

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
    median: bool = False

    def rows(self, table: pa.Table) -> pa.Table:
        """The rows that the panel is about; a tuple allows any of its values."""
        table = with_measures(table)
        for column, value in self.where.items():
            allowed = list(value) if isinstance(value, tuple) else [value]
            kind = table[column].type
            table = table.filter(pc.is_in(table[column], pa.array(allowed, kind)))
        return table

    def lines(self, table: pa.Table) -> Lines:
        """The mean of the measure at every value of `against`, or its median, for each line."""
        rows = self.rows(table)
        all_x = [x for x in dict.fromkeys(rows[self.against].to_pylist()) if x is not None]
        values: dict[str, dict[Any, list[float]]] = {}
        columns = (self.by, "collection", self.against, self.measure)
        for line, collection, x, value in zip(
            *(rows[name].to_pylist() for name in columns), strict=True
        ):
            if value is not None:
                name = self.labels.get(line, str(line))
                name = name if collection == GROUPED else name + UNGROUPED_SUFFIX
                for counted_at in all_x if x is None else [x]:
                    values.setdefault(name, {}).setdefault(counted_at, []).append(value)
        average = np.median if self.median else np.mean
        return {
            name: self._ordered({x: float(average(line[x])) for x in line})
            for name, line in values.items()
        }

    def floors(self, table: pa.Table) -> dict[Any, float]:
        """The mean floor at every value of `against`."""
        rows = self.rows(table)
        values: dict[Any, list[float]] = {}
        pairs = zip(rows[self.against].to_pylist(), rows["floor"].to_pylist(), strict=True)
        for x, floor in pairs:
            values.setdefault(x, []).append(floor)
        values.pop(None, None)
        return self._ordered({x: float(np.mean(values[x])) for x in values})

    def _ordered(self, line: dict[Any, float]) -> dict[Any, float]:
        """Numbers in rising order, names in that of the labels, or else as they come."""
        if all(isinstance(x, float) for x in line):
            return dict(sorted(line.items()))
        if line.keys() <= self.labels.keys():
            return {x: line[x] for x in self.labels if x in line}
        return line

    def label(self, x: Any) -> str:
        """The name of a value on the axis."""
        return self.labels.get(x, f"{x:g}" if isinstance(x, float) else str(x))


def with_measures(rows: pa.Table) -> pa.Table:
    """Rows with columns that follow from their others.

    `gamma_error` is |γ̂ − γ|, of methods that estimate γ; `over_floor` the squared error in units of
    the floor; `suspicious` whether p < 0.05; `scheme` a method's name without its parameters, and
    `rate` and `subsets` are two of these.

    >>> rows = {"byzantine_fraction": [0.25], "gamma": [0.5], "side": ["right"]}
    >>> derived = with_measures(pa.table({**rows, "method": ["k-means:rate=0.5"]}))
    >>> [derived[name].to_pylist() for name in ("gamma_error", "scheme", "rate", "subsets")]
    [[0.25], ['k-means'], [0.5], [None]]
    """
    present = set(rows.column_names)
    if "scheme" in present or not {"byzantine_fraction", "method"} <= present:
        return rows
    methods = [split_method(method) for method in rows["method"].to_pylist()]
    rows = rows.append_column("scheme", pa.array([name for name, _ in methods], pa.string()))
    for parameter in ("rate", "subsets"):
        texts = [dict(parameters).get(parameter) for _, parameters in methods]
        column = [None if text is None else float(text) for text in texts]
        rows = rows.append_column(parameter, pa.array(column, pa.float64()))
    if {"squared_error", "floor"} <= set(rows.column_names):
        ratio = pc.divide(rows["squared_error"], rows["floor"])
        rows = rows.append_column("over_floor", ratio)
    if "p_value" in rows.column_names:
        low = pc.less(rows["p_value"].cast(pa.float64()), NOBODY_ATTACKS_LEVEL)
        rows = rows.append_column("suspicious", low.cast(pa.float64()))
    error = pc.abs(pc.subtract(rows["byzantine_fraction"], rows["gamma"]))
    # Defences always say so: for them this is no estimate of γ.
    finds_nobody = pc.and_(
        pc.equal(rows["side"], "none"), pc.equal(rows["byzantine_fraction"], 0.0)
    )
    missing = pa.scalar(None, pa.float64())
    return rows.append_column("gamma_error", pc.if_else(finds_nobody, missing, error))


def panel_table(panel: Panel, table: pa.Table) -> list[list[str]]:
    """A panel as rows of text, its head first.

    >>> rows = {"method": ["emf"], "collection": ["grouped"], "epsilon": [1.0], "floor": [0.1]}
    >>> rows |= {"squared_error": [0.5], "byzantine_fraction": [0.2], "gamma": [0.25]}
    >>> rows |= {"side": ["right"]}
    >>> panel_table(Panel("MSE", "squared_error"), pa.table(rows))
    [['MSE', 'ε = 1'], ['emf', '0.5']]
    """
    lines = panel.lines(table)
    if panel.floor:
        lines = {**lines, "floor": panel.floors(table)}
    all_x = list(panel.floors(table))
    sign = f"{SYMBOLS[panel.against]} = " if panel.against in SYMBOLS else ""
    heads = [MEASURES[panel.measure], *(sign + panel.label(x) for x in all_x)]
    rows = [
        [name, *(f"{line[x]:.3g}" if x in line else "–" for x in all_x)]
        for name, line in lines.items()
    ]
    return [heads, *rows]
