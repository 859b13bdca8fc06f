"""100 million reports in a Parquet file to a Summary: engines, the bare decoder, and two rivals."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from unpoison.bench.result import Result, benchmarks, best_times, duration, seconds
from unpoison.engines import DaskEngine, Job, LocalEngine, Part, parts_of, summarise_files
from unpoison.engines.dask import local_cluster
from unpoison.errors import MissingExtra
from unpoison.plan import Plan
from unpoison.reports.reading import BATCH_ROWS, BUFFER_BYTES
from unpoison.reports.writing import ReportWriter
from unpoison.summary import Summary
from unpoison.summary.manifest import digest

ROWS = 10**8
"""Enough for seconds of counting, beside which starting threads and workers takes no time."""
ROWS_AT_ONCE = 2**20
"""Rows of a row group of the file, as `perturb` writes it."""
ROUNDS = 3
"""Rounds of which the best time counts: other programs can only slow a round down."""
MOST_MEMORY = 600
"""MiB that counting may take, however many rows there are."""
PLAN = Plan.new(epsilon=1.0, min_epsilon=0.0625, low=0, high=1)
COLUMNS = ["group", "value"]


@benchmarks.register("engines", order=2)
def engines() -> list[Result]:
    """Measure the local and the Dask engine against the decoder alone, DuckDB and Polars."""
    duckdb, polars = _rivals()
    with tempfile.TemporaryDirectory() as folder, local_cluster(2) as cluster:
        path = write_reports(Path(folder) / "reports.parquet", ROWS)
        local, dask = LocalEngine(), DaskEngine(cluster.scheduler_address)
        runs: dict[str, Callable[[], object]] = {
            "local": partial(summarise_files, [path], PLAN, engine=local),
            "decoding": partial(decode, path, local.workers),
            "dask": partial(summarise_files, [path], PLAN, engine=dask),
            "DuckDB": partial(by_duckdb, duckdb, path),
            "Polars": partial(by_polars, polars, path),
            "hashing": partial(digest, path),
            "NumPy": partial(count_by_numpy, path, local),
            "one thread": partial(summarise_files, [path], PLAN, engine=LocalEngine(workers=1)),
        }
        times = best_times(runs, ROUNDS)
        costs = _costs(path, times)
        agreed = _agreement(path, local, dask, partial(by_duckdb, duckdb))
        memory = peak_memory(path)
    return [
        *_speeds(times),
        Result(
            "summarise, 10^8 rows: peak memory of the process",
            f"{memory:.0f} MiB",
            "",
            None,
            f"< {MOST_MEMORY} MiB",
            memory < MOST_MEMORY,
        ),
        *agreed,
        *costs,
    ]


def _costs(path: Path, times: dict[str, float]) -> list[Result]:
    """The measurements on which the cost model of docs/scale.md rests."""
    summary = summarise_files([path], PLAN)
    merging = min(seconds(lambda: summary + summary) for _ in range(10))
    facts = {
        "bytes a report in Parquet": f"{path.stat().st_size / ROWS:.2f}",
        "a billion reports, one thread": duration(times["one thread"] * 1e9 / ROWS),
        "hashing a billion reports, one thread": duration(times["hashing"] * 1e9 / ROWS),
        "a summary in memory": f"{summary.counts.nbytes / 2**10:.0f} KiB",
        "a summary as a file": f"{len(summary.to_bytes()) / 2**10:.0f} KiB",
        "adding two summaries": duration(merging),
    }
    return [Result(f"cost: {name}", value, "", None, "", None) for name, value in facts.items()]


def _speeds(times: dict[str, float]) -> list[Result]:
    """The ratios of times, with the least that is aimed at (0 for none)."""
    lines = [
        ("speed of local against decoding alone", "local", "decoding", 0.5),
        ("speed of local against DuckDB", "local", "DuckDB", 1.0),
        ("speed of local against Polars", "local", "Polars", 1.0),
        ("speed of local against the same without the extra `fast`", "local", "NumPy", 0),
        ("speed of dask (2 workers) against local", "dask", "local", 0.6),
        ("hashing the file for the manifest, one thread, against counting", "hashing", "local", 0),
    ]
    return [
        Result(
            f"summarise, 10^8 rows: {name}",
            duration(times[ours]),
            duration(times[theirs]),
            times[theirs] / times[ours],
            f"≥ {least:g}×" if least else "",
            times[theirs] / times[ours] >= least if least else None,
        )
        for name, ours, theirs, least in lines
    ]


def write_reports(path: Path, rows: int, seed: int = 1) -> Path:
    """Uniform reports in row groups of a million, as `perturb` writes them."""
    rng = np.random.default_rng(seed)
    ends = np.array([mechanism.output_high for mechanism in PLAN.group_mechanisms])
    with path.open("wb") as file, ReportWriter(file, path) as writer:
        for first in range(0, rows, ROWS_AT_ONCE):
            group = rng.integers(0, len(ends), min(ROWS_AT_ONCE, rows - first), dtype=np.int32)
            writer.write(group, rng.uniform(-1, 1, len(group)) * ends[group])
    return path


def write_awkward(path: Path) -> Path:
    """Edges of cells and their neighbours, both ends, denormals, zeros of either sign."""
    groups, values = [], []
    for number, mechanism in enumerate(PLAN.group_mechanisms):
        edges = np.linspace(mechanism.output_low, mechanism.output_high, PLAN.cells + 1)
        near = [edges, np.nextafter(edges, -np.inf), np.nextafter(edges, np.inf)]
        odd = [mechanism.output_low, mechanism.output_high, 2.0**-1060, -(2.0**-1060), 0.0, -0.0]
        inside = np.clip(np.concatenate([*near, odd]), mechanism.output_low, mechanism.output_high)
        groups.append(np.full(len(inside), number))
        values.append(inside)
    with path.open("wb") as file, ReportWriter(file, path) as writer:
        writer.write(np.concatenate(groups), np.concatenate(values))
    return path


def count_by_numpy(path: Path, engine: LocalEngine) -> int:
    """Count all parts by whole arrays, though the loop would be worth compiling."""
    return sum(1 for _ in engine.run(Job(PLAN), parts_of(path)))


def decode(path: Path, workers: int) -> int:
    """The limit: both columns decoded by all cores, and nothing done with them."""
    with ThreadPoolExecutor(workers) as pool:
        return sum(pool.map(_decode_part, parts_of(path)))


def _decode_part(part: Part) -> int:
    rows = 0
    with pq.ParquetFile(part.path, pre_buffer=False, buffer_size=BUFFER_BYTES) as file:
        for batch in file.iter_batches(
            batch_size=BATCH_ROWS,
            row_groups=list(part.row_groups or ()),
            columns=COLUMNS,
            use_threads=False,
        ):
            rows += batch.num_rows
    return rows


def _domains() -> list[tuple[int, float, float]]:
    """The number of each group, the lower end of its report domain, and its cells per unit."""
    return [
        (number, mechanism.output_low, PLAN.cells / (mechanism.output_high - mechanism.output_low))
        for number, mechanism in enumerate(PLAN.group_mechanisms)
    ]


def by_duckdb(duckdb: Any, path: Path) -> Any:
    """Count reports and sum values by group and cell, by an SQL query of DuckDB."""
    rows = ", ".join(f"({number}, {low!r}, {scale!r})" for number, low, scale in _domains())
    return duckdb.sql(
        f"""
        SELECT "group", least(CAST(floor((value - low) * scale) AS INTEGER), {PLAN.cells - 1})
               AS cell, count(*) AS number, sum(value) AS total
        FROM read_parquet('{path}')
        JOIN (VALUES {rows}) AS domain(number, low, scale) ON "group" = domain.number
        GROUP BY 1, 2
        """
    ).fetchnumpy()


def by_polars(polars: Any, path: Path) -> Any:
    """Count reports and sum values by group and cell, by a lazy frame of Polars."""
    column = polars.col
    numbers, lows, scales = (list(values) for values in zip(*_domains(), strict=True))
    domains = polars.LazyFrame({"group": numbers, "low": lows, "scale": scales}).cast(
        {"group": polars.Int32}
    )
    cell = ((column("value") - column("low")) * column("scale")).floor().cast(polars.Int32)
    return (
        polars.scan_parquet(path)
        .join(domains, on="group")
        .group_by("group", cell.clip(0, PLAN.cells - 1).alias("cell"))
        .agg(polars.len().alias("number"), column("value").sum().alias("total"))
        .collect(engine="streaming")
    )


def peak_memory(path: Path) -> float:
    """MiB that a process of its own holds at most while it counts a file (on Linux)."""
    code = (
        "import re, sys; from unpoison.bench.engines import PLAN; "
        "from unpoison.engines import summarise_files; summarise_files([sys.argv[1]], PLAN); "
        "print(re.search(r'VmHWM:\\s+(\\d+) kB', open('/proc/self/status').read())[1])"
    )
    command = [sys.executable, "-c", code, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return int(done.stdout) / 2**10


def _agreement(
    path: Path, local: LocalEngine, dask: DaskEngine, rival: Callable[[Path], Any]
) -> list[Result]:
    """Whether both engines agree to the bit, also on awkward values, and with the rival."""
    awkward = write_awkward(path.with_name("awkward.parquet"))
    results = []
    for name, file in (("the file", path), ("awkward values", awkward)):
        one, other = (summarise_files([file], PLAN, engine=engine) for engine in (local, dask))
        results.append(_same(f"both engines on {name}", one == other))
    rows, counts = rival(path), Summary.empty(PLAN).counts.copy()
    counts[rows["group"], rows["cell"]] = rows["number"]
    ours = summarise_files([path], PLAN, engine=local)
    results.append(_same("counts of DuckDB", bool(np.array_equal(counts, ours.counts))))
    return results


def _same(name: str, equal: bool) -> Result:
    shown = "identical" if equal else "DIFFERENT"
    return Result(f"summarise: {name}", shown, "", None, "identical", equal)


def _rivals() -> tuple[Any, Any]:
    try:
        return import_module("duckdb"), import_module("polars")
    except ImportError:
        raise MissingExtra("the benchmark engines", "bench") from None
