"""Engines: the same summary whatever counts, lost workers, bad files, awkward values."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.command_line import Command
from unpoison import Plan, Summary, perturb, summarise
from unpoison.engines import (
    Counted,
    DaskEngine,
    Engine,
    Job,
    LocalEngine,
    Part,
    count,
    count_files,
    counting,
    engines,
    parts_of,
    summarise_files,
    work,
)
from unpoison.errors import BadFiles, InvalidFile, InvalidParameter, InvalidReport
from unpoison.types import FloatArray, IntArray

distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.filterwarnings("ignore")  # Dask leaves sockets to the collector.
PLAN = Plan.new(epsilon=1.0, min_epsilon=0.25, low=0, high=100)
ENDS = np.array([part.output_high for part in PLAN.group_mechanisms])


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def started() -> Iterator[Callable[[str], Engine]]:
    """Registered engines by their names, started once as their classes say."""
    with ExitStack() as running:
        yield cache(lambda name: running.enter_context(engines[name].example()))


@pytest.fixture(scope="module", params=list(engines))
def engine(request: pytest.FixtureRequest, started: Callable[[str], Engine]) -> Engine:
    """Every registered engine in turn."""
    return started(request.param)


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of a few thousand rows have several parts."""
    monkeypatch.setattr(work, "PART_ROWS", 250)


def write(path: Path, group: IntArray, value: FloatArray, rows: int = 500) -> Path:
    pq.write_table(pa.table({"group": group, "value": value}), path, row_group_size=rows)
    return path


def reports(number: int = 3000, seed: int = 1) -> tuple[IntArray, FloatArray]:
    rng = np.random.default_rng(seed)
    perturbed = perturb(rng.uniform(0, 100, number), PLAN, rng)
    return perturbed.group, perturbed.value


def awkward() -> tuple[IntArray, FloatArray]:
    """Edges of cells and their neighbours, both ends, denormals, and zeros of either sign."""
    tiny = np.nextafter(0.0, 1.0)
    groups, values = [], []
    for number, part in enumerate(PLAN.group_mechanisms):
        edges = np.linspace(part.output_low, part.output_high, PLAN.cells + 1)[:: PLAN.cells // 64]
        near = np.concatenate([edges, np.nextafter(edges, -np.inf), np.nextafter(edges, np.inf)])
        odd = [part.output_low, part.output_high, tiny, -tiny, 2.0**-1030, 0.0, -0.0]
        inside = np.clip(np.concatenate([near, odd]), part.output_low, part.output_high)
        groups.append(np.full(len(inside), number))
        values.append(inside)
    return np.concatenate(groups), np.concatenate(values)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["plain", "awkward"])
def test_every_engine_gives_what_the_kernel_gives(
    engine: Engine, kind: str, tmp_path: Path
) -> None:
    group, value = reports() if kind == "plain" else awkward()
    path = write(tmp_path / "day.parquet", group, value, rows=100)
    assert len(parts_of(path)) > 1
    expected = summarise({"group": group, "value": value}, PLAN)
    summary = summarise_files([path], PLAN, engine=engine)
    assert summary == expected
    assert summary.to_bytes() == expected.to_bytes()


def test_the_kernel_puts_awkward_values_where_exact_arithmetic_does() -> None:
    group, value = awkward()
    expected = np.zeros((len(PLAN.groups), PLAN.cells), dtype=np.int64)
    for number, report_value in zip(group, value, strict=True):
        part = PLAN.group_mechanisms[number]
        per_unit = PLAN.cells / (part.output_high - part.output_low)
        place = int((float(report_value) - part.output_low) * per_unit)
        expected[number, min(place, PLAN.cells - 1)] += 1
    summary = summarise({"group": group, "value": value}, PLAN)
    assert np.array_equal(summary.counts, expected)
    exact = [sum(round(float(v) * 2**32) for v in value[group == g]) for g in range(len(ENDS))]
    assert list(summary.sums) == exact


@pytest.mark.slow
def test_many_reports_are_counted_by_the_compiled_loop(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "day.parquet", *reports())
    expected = summarise_files([path], PLAN)
    monkeypatch.setattr(counting, "WORTH_COMPILING", 1)
    jobs: list[Job] = []
    run = engine.run

    def watched(job: Job, parts: Any) -> Iterator[Counted]:
        jobs.append(job)
        return run(job, parts)

    monkeypatch.setattr(engine, "run", watched)
    assert summarise_files([path], PLAN, engine=engine) == expected
    assert [job.compiled for job in jobs] == [True]


def test_all_engines_are_known_by_name() -> None:
    assert list(engines)[:2] == ["local", "dask"]
    with pytest.raises(InvalidParameter, match="did you mean 'dask'"):
        engines["dsk"]


def test_parts_are_whole_row_groups_in_order_and_cover_the_file(tmp_path: Path) -> None:
    path = write(tmp_path / "day.parquet", *reports(), rows=300)
    parts, file = parts_of(path), pq.ParquetFile(path)
    numbers = [number for part in parts for number in part.row_groups or ()]
    assert numbers == list(range(file.num_row_groups))
    rows = [file.metadata.row_group(number).num_rows for number in numbers]
    for part in parts:
        first = (part.row_groups or (0,))[0]
        assert part.rows_before == sum(rows[:first])
    assert sum(part.size for part in parts) == path.stat().st_size


class Forgetful(Engine):
    """Counts parts in a mixed order, and some of them twice before it answers."""

    def run(self, job: Job, parts: Any) -> Iterator[Counted]:
        order = np.random.default_rng(1).permutation(len(parts))
        for place in order:
            count(job, parts[place])
            yield count(job, parts[place])


def test_the_order_of_parts_does_not_matter(tmp_path: Path) -> None:
    paths = [write(tmp_path / f"{n}.parquet", *reports(2000, n)) for n in range(4)]
    assert summarise_files(paths, PLAN, engine=Forgetful()) == summarise_files(paths, PLAN)


def slow_count(job: Job, part: Part) -> Counted:
    time.sleep(0.2)
    return count(job, part)


@pytest.mark.slow
def test_a_worker_that_is_killed_in_the_middle_loses_and_doubles_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [write(tmp_path / f"{n}.parquet", *reports(4000, n)) for n in range(3)]
    expected = summarise_files(paths, PLAN)
    monkeypatch.setattr("unpoison.engines.dask.count", slow_count)
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0", silence_logs=50
    ) as cluster:
        busy = DaskEngine(cluster.scheduler_address)
        killed: list[int] = []

        def kill_once(_: int) -> None:
            if not killed:
                victim = next(iter(cluster.workers.values()))
                killed.append(victim.process.pid)
                os.kill(victim.process.pid, signal.SIGKILL)

        summary = summarise_files(paths, PLAN, engine=busy, advance=kill_once)
    assert killed
    assert summary == expected


def damaged(path: Path) -> Path:
    """A Parquet file whose last row group cannot be decoded."""
    data = bytearray(path.read_bytes())
    last = pq.ParquetFile(path).metadata
    chunk = last.row_group(last.num_row_groups - 1).column(1)
    start = chunk.dictionary_page_offset or chunk.data_page_offset
    data[start : start + 40] = b"\xff" * 40
    path.write_bytes(bytes(data))
    return path


@pytest.mark.slow
def test_bad_files_among_good_ones_are_named_and_nothing_of_them_is_counted(
    engine: Engine, tmp_path: Path
) -> None:
    good = [write(tmp_path / f"{n:03}.parquet", *reports(300, n)) for n in range(30)]
    torn = damaged(write(tmp_path / "015-torn.parquet", *reports(3000, 99)))
    empty = tmp_path / "020-empty.csv"
    empty.touch()
    foreign = tmp_path / "025-foreign.parquet"
    pq.write_table(pa.table({"other": [1]}), foreign)
    group, value = reports(3000, 98)
    value[1700] = 1e9
    wild = write(tmp_path / "005-wild.parquet", group, value)
    every = sorted([*good, torn, empty, foreign, wild])
    with pytest.raises(BadFiles) as caught:
        count_files(every, Job(PLAN), engine)
    assert str(caught.value).startswith("4 of 34 files cannot be counted: ")
    for path in (torn, empty, foreign, wild):
        assert path.name in str(caught.value)
    assert "005-wild.parquet: row 1701: value must be" in str(caught.value)
    counted = count_files(every, Job(PLAN), engine, skip_bad_files=True)
    assert set(counted.bad) == {torn, empty, foreign, wild}
    assert counted.summary(PLAN) == summarise_files(good, PLAN)


def test_one_bad_file_is_told_as_itself(tmp_path: Path) -> None:
    group, value = reports()
    value[2500] = value[1200] = 1e9
    path = write(tmp_path / "wild.parquet", group, value)
    with pytest.raises(InvalidReport, match="row 1201"):
        summarise_files([path], PLAN, engine=LocalEngine(workers=1))
    with pytest.raises(InvalidFile, match=r"cannot be read"):
        summarise_files([damaged(write(tmp_path / "torn.parquet", *reports()))], PLAN)


def test_a_scheduler_that_does_not_answer_is_refused_in_a_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("unpoison.engines.dask.CONNECT_SECONDS", 0.5)
    path = write(tmp_path / "day.parquet", *reports())
    with pytest.raises(InvalidParameter, match="scheduler must be the address"):
        summarise_files([path], PLAN, engine=DaskEngine("tcp://127.0.0.1:9"))


def test_without_the_extra_dask_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "distributed", None)
    with pytest.raises(ImportError, match=r"pip install 'unpoison\[dask\]'"):
        list(DaskEngine().run(Job(PLAN), []))


@pytest.mark.slow
def test_the_command_line_counts_with_a_cluster_that_is_there(
    unpoison: Command, started: Callable[[str], Engine]
) -> None:
    path = write(Path("day.parquet").resolve(), *reports())
    PLAN.save("plan.json")
    common = ("summarise", str(path), "-p", "plan.json")
    dask = started("dask")
    assert isinstance(dask, DaskEngine)
    cluster = ("--engine", "dask", "--scheduler", dask.scheduler)
    unpoison.done(*common, "-o", "a.summary", *cluster)
    unpoison.done(*common, "-o", "b.summary", "--workers", "2")
    assert Path("a.summary").read_bytes() == Path("b.summary").read_bytes()
    assert Summary.load("a.summary").reports.sum() == len(reports()[0])


def test_bad_files_on_the_command_line(unpoison: Command) -> None:
    PLAN.save("plan.json")
    write(Path("good.parquet"), *reports())
    Path("bad.csv").touch()
    Path("worse.csv").write_text("group\n1\n")
    every = ("summarise", "good.parquet", "bad.csv", "worse.csv", "-p", "plan.json", "-o", "s")
    refused = unpoison.refused(*every)
    assert "2 of 3 files cannot be counted: bad.csv: is empty | worse.csv: has no column" in refused
    assert not Path("s").exists()
    result = unpoison.done(*every, "--skip-bad-files", "--json").json
    assert result["files"] == 1
    assert set(result["bad_files"]) == {"bad.csv", "worse.csv"}
    assert Summary.load("s") == summarise_files(["good.parquet"], PLAN)
    assert "2 files left out, 1 counted" in unpoison.done(*every, "--skip-bad-files").out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "fault"),
    [
        (("--engine", "spark"), "engine must be one of local, dask; received 'spark'"),
        (("--scheduler", "tcp://1"), "--scheduler needs --engine dask"),
        (("--workers", "0"), "--workers must be at least 1"),
    ],
)
def test_options_of_engines_are_checked(
    unpoison: Command, options: tuple[str, ...], fault: str
) -> None:
    PLAN.save("plan.json")
    write(Path("day.parquet"), *reports(10))
    command = ("summarise", "day.parquet", "-p", "plan.json", "-o", "s", *options)
    assert fault in unpoison.refused(*command)
