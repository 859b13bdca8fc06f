"""A Parquet file to a Summary, against NumPy's bincount of the same column in memory."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from unpoison.bench.result import Result, benchmarks, race
from unpoison.engines import summarise_files
from unpoison.files import ReportWriter
from unpoison.plan import Plan

ROWS = 10**7


@benchmarks.register("summarise")
def summarise() -> list[Result]:
    """10^7 rows: decoding, checking, cells and exact sums; bincount has the cells' numbers only."""
    plan = Plan.new(epsilon=1.0, min_epsilon=0.0625, low=0, high=1)
    rng = np.random.default_rng(1)
    group = rng.integers(0, len(plan.groups), ROWS)
    ends = np.array([part.output_high for part in plan.group_mechanisms])
    value = rng.uniform(-1, 1, ROWS) * ends[group]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "reports.parquet"
        with path.open("wb") as file:
            writer = ReportWriter(file, path)
            for first in range(0, ROWS, 2**20):
                writer.write(group[first : first + 2**20], value[first : first + 2**20])
            writer.close()
        cells, scale, shift = plan.cells, plan.cells / 2 / ends.max(), ends.max()

        def counted() -> object:
            return np.bincount(((value + shift) * scale).astype(np.int64), minlength=cells)

        ours, theirs = race(lambda: summarise_files([path], plan), counted, rounds=3)
    return [
        Result(
            "summarise Parquet, 10^7 rows: rows a second against bincount in memory",
            f"{ROWS / ours / 1e6:.1f} M/s",
            f"{ROWS / theirs / 1e6:.1f} M/s",
            theirs / ours,
            "how near",
            None,
        )
    ]
