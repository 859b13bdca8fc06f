"""Whether the planner tells the truth: its predictions beside measurements."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from unpoison.experiments.base import Experiment, experiments
from unpoison.experiments.cell import Cell
from unpoison.experiments.claims import Claim
from unpoison.experiments.panel import Panel
from unpoison.experiments.planner_requests import drawn_requests

COUNT, QUICK_COUNT = 30, 1
"""Requests: of 30, a share of 90 per cent has a standard error of 5 points; one for a quick run."""
CLOSE = (0.8, 1.25)
"""The range of predicted over measured errors that is aimed at."""
SECONDS = 60.0
"""Half a minute on two cores, in seconds of the processor."""
HEADS = ["ε", "users", "attackers", "plan", "predicted", "±", "measured", "ratio", "seconds"]


@experiments.register("planner", order=16)
class PlannerFigure(Experiment):
    """Thirty requests: the error that the planner predicts, and that of fresh collections.

    >>> len(PlannerFigure().cells(quick=False))
    30
    """

    title = "Predictions of the planner beside measurements (30 requests drawn at random)"
    of_the_paper = False

    def cells(self, quick: bool) -> list[Cell]:
        """A cell for every request to the planner."""
        return list(drawn_requests(QUICK_COUNT if quick else COUNT, quick))

    def panels(self, quick: bool) -> list[Panel]:
        """Predicted over measured errors against ε, users and attackers."""
        columns = {"ε": "epsilon", "users": "users", "attackers": "gamma"}
        return [
            Panel(f"predicted / measured by {name}", "prediction_ratio", against=column)
            for name, column in columns.items()
        ]

    def tables(self, table: pa.Table, quick: bool) -> dict[str, list[list[str]]]:
        """A row for each request."""
        return {"Predicted and measured": [HEADS, *(_text(row) for row in table.to_pylist())]}

    def claims(self, table: pa.Table, quick: bool) -> list[Claim]:
        """The aims: predictions are close, advice is quick, and another seed changes nothing."""
        ratios = np.array(table["prediction_ratio"].to_pylist())
        close = float(np.mean((ratios >= CLOSE[0]) & (ratios <= CLOSE[1])))
        seconds = np.array(table["seconds"].to_pylist())
        asked_again = table.filter(table["asked_again"])
        others = np.array(asked_again["other_plan"].to_pylist())
        return [
            Claim(
                f"predicted over measured errors are {CLOSE[0]} to {CLOSE[1]} in 90 per cent",
                close >= 0.9,
                f"{close:.0%}; from {ratios.min():.2f} to {ratios.max():.2f}, "
                f"{np.median(ratios):.2f} in the middle",
            ),
            Claim(
                "advice takes less than 60 s of the processor: 30 s on two cores",
                bool(seconds.max() < SECONDS),
                f"{seconds.max():.0f} s at most, {seconds.mean():.0f} s on average",
            ),
            Claim(
                "a second seed recommends another plan in at most 1 of 5 requests",
                bool(others.mean() <= 0.2),
                f"in {int(others.sum())} of {len(others)}",
            ),
        ]


def _text(row: dict[str, float]) -> list[str]:
    return [
        f"{row['epsilon']:g}",
        f"{row['users']:,}",
        f"{100 * row['gamma']:.3g} %",
        str(row["plan"]),
        f"{row['predicted']:.3g}",
        f"{row['standard_error']:.2g}",
        f"{row['measured']:.3g}",
        f"{row['prediction_ratio']:.2f}",
        f"{row['seconds']:.0f}",
    ]
