"""Fig. datasets: the normalised frequencies of every dataset."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from unpoison.datasets import datasets
from unpoison.experiments.base import Experiment, experiments
from unpoison.experiments.cell import Cell
from unpoison.experiments.claims import Claim
from unpoison.experiments.panel import Panel
from unpoison.experiments.paper_settings import DATASET_NAMES, users_of
from unpoison.output.figure import HONEST, hide_frame, new_figure
from unpoison.types import FloatArray

BINS = 64
"""Bars of a histogram: narrow enough for its shape, wide enough to see on a panel."""
PAPER_MEANS = {"beta-2-5": -0.3994, "beta-5-2": 0.4136, "taxi": 0.1190, "retirement": -0.6240}
"""O, the mean on [−1, 1], in the paper."""
CLOSE = 0.1
"""The distance that a mean may have from the paper's and still count as the same."""


@experiments.register("fig-datasets", order=3)
class DatasetFigure(Experiment):
    """Histograms of the datasets' values, mapped onto [−1, 1].

    >>> bool(abs(DatasetFigure().normalised("beta-2-5", quick=True).mean() + 0.4) < 0.05)
    True
    """

    title = "Fig. datasets: normalised frequencies"

    def cells(self, quick: bool) -> list[Cell]:
        """None: nothing is collected."""
        return []

    def panels(self, quick: bool) -> list[Panel]:
        """None: nothing is measured."""
        return []

    def normalised(self, dataset: str, quick: bool) -> FloatArray:
        """A dataset's values on [−1, 1]."""
        sample = datasets[dataset]().draw(users_of(dataset, quick), np.random.default_rng(1))
        share = (sample.values - sample.low) / (sample.high - sample.low)
        return np.asarray(2 * share - 1, dtype=np.float64)

    def draw(self, table: pa.Table, quick: bool) -> Any:
        """A histogram of each dataset."""
        figure, axes = new_figure(len(DATASET_NAMES), width=4.2, height=3.2, across=4)
        for axis, (dataset, name) in zip(axes, DATASET_NAMES.items(), strict=True):
            values = self.normalised(dataset, quick)
            heights, edges = np.histogram(values, BINS, (-1, 1))
            axis.stairs(heights / len(values), edges, fill=True, color=HONEST, alpha=0.7)
            axis.set_title(f"{name}, O = {values.mean():.4f}", fontsize=10)
            axis.set_xlabel("normalised value")
            axis.set_ylabel("frequency")
            hide_frame(axis)
        figure.suptitle(self.title, fontsize=12)
        return figure

    def tables(self, table: pa.Table, quick: bool) -> dict[str, list[list[str]]]:
        """Sizes of the datasets, and their means beside the paper's."""
        rows = [["dataset", "users", "O here", "O in the paper"]]
        for dataset, name in DATASET_NAMES.items():
            values = self.normalised(dataset, quick)
            rows.append(
                [name, f"{len(values):,}", f"{values.mean():.4f}", f"{PAPER_MEANS[dataset]:.4f}"]
            )
        return {"Datasets": rows}

    def claims(self, table: pa.Table, quick: bool) -> list[Claim]:
        """The means are near the paper's."""
        means = {name: float(self.normalised(name, quick).mean()) for name in DATASET_NAMES}
        shown = ", ".join(f"{label} {means[name]:.3f}" for name, label in DATASET_NAMES.items())
        near = all(abs(means[name] - PAPER_MEANS[name]) < CLOSE for name in DATASET_NAMES)
        paper = ", ".join(f"{mean:g}" for mean in PAPER_MEANS.values())
        return [Claim(f"O is {paper}", near, f"{shown} (all within {CLOSE:g})")]
