"""Report files: reading in batches, and writing."""

from __future__ import annotations

import gc
import importlib
import tempfile
import tracemalloc
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unpoison import Plan, Summary, perturb, summarise
from unpoison.cli import run
from unpoison.engines import summarise_files
from unpoison.errors import InvalidFile, InvalidReport
from unpoison.reports import reading
from unpoison.reports.reading import read_batches
from unpoison.reports.writing import REPORT_SUFFIXES, ReportWriter

PLAN = Plan.new(epsilon=1.0, min_epsilon=0.25, low=0, high=1)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("UNPOISON_DATA", raising=False)
    return tmp_path


def write_table(path: str | Path, columns: dict[str, Any], rows: int | None = None) -> Path:
    table = pa.table(columns)
    if Path(path).suffix == ".parquet":
        pq.write_table(table, path, row_group_size=rows)
    else:
        pacsv.write_csv(table, path)
    return Path(path)


def column(path: Path, name: str, *, text: bool = False) -> np.ndarray:
    parts = [batch.columns[name] for batch in read_batches(path, [name], [name] if text else [])]
    return np.concatenate(parts)


# Reading


@pytest.mark.parametrize("batch_rows", [1, 7, 100, 10_000])
@pytest.mark.parametrize("row_group", [3, 64, 1000])
def test_parquet_batches_are_the_column(
    monkeypatch: pytest.MonkeyPatch, batch_rows: int, row_group: int
) -> None:
    monkeypatch.setattr(reading, "BATCH_ROWS", batch_rows)
    values = np.random.default_rng(1).random(1000)
    path = write_table("x.parquet", {"x": values, "y": values * 2}, row_group)
    batches = list(read_batches(path, ["y", "x"]))
    assert all(len(batch.columns["x"]) <= batch_rows for batch in batches)
    check_batches(batches, values, path)


@pytest.mark.parametrize("block", [256, 4096, 10**6])
def test_csv_batches_are_the_column(monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    monkeypatch.setattr(reading, "BLOCK_BYTES", block)
    values = np.random.default_rng(1).random(1000)
    path = write_table("x.csv", {"x": values, "y": values * 2})
    batches = list(read_batches(path, ["y", "x"]))
    assert (len(batches) == 1) == (block == 10**6)
    check_batches(batches, values, path)


def check_batches(batches: list[reading.Batch], values: np.ndarray, path: Path) -> None:
    """Nothing is lost, doubled or moved, and the bytes add up."""
    x, y = (np.concatenate([batch.columns[name] for batch in batches]) for name in ("x", "y"))
    np.testing.assert_array_equal(x, values)
    np.testing.assert_array_equal(y, values * 2)
    ends = np.cumsum([len(batch.columns["x"]) for batch in batches]).tolist()
    assert [batch.rows_before for batch in batches] == [0, *ends[:-1]]
    read = [batch.bytes_read for batch in batches]
    assert read == sorted(read)
    assert read[-1] == path.stat().st_size


NUMBERS: dict[str, tuple[Any, list[float]]] = {
    "float64": (pa.array([1.5, -2.0]), [1.5, -2.0]),
    "float32": (pa.array([1.5, -2.0], pa.float32()), [1.5, -2.0]),
    "float16": (pa.array([np.float16(1.5)], pa.float16()), [1.5]),
    "int8": (pa.array([1, -2], pa.int8()), [1, -2]),
    "uint64": (pa.array([1, 2**53], pa.uint64()), [1, 2**53]),
    "decimal": (pa.array([Decimal("1.25"), None]), [1.25, np.nan]),
    "dictionary": (pa.array([0.5, 0.25, 0.5]).dictionary_encode(), [0.5, 0.25, 0.5]),
    "whole dictionary": (pa.array([7, 3, None]).dictionary_encode(), [7, 3, np.nan]),
    "nulls": (pa.array([1.5, None, -2.0]), [1.5, np.nan, -2.0]),
    "whole nulls": (pa.array([1, None, 2**62]), [1, np.nan, 2.0**62]),
    "only nulls": (pa.nulls(2), [np.nan, np.nan]),
    "specials": (pa.array([np.nan, np.inf, -np.inf]), [np.nan, np.inf, -np.inf]),
}


@pytest.mark.parametrize("kind", NUMBERS)
def test_parquet_numbers_of_every_kind(kind: str) -> None:
    written, expected = NUMBERS[kind]
    read_back = column(write_table("x.parquet", {"x": written}), "x")
    assert read_back.dtype.kind in "iuf"
    np.testing.assert_array_equal(read_back.astype(np.float64), expected)


def test_numbers_keep_their_precision() -> None:
    """A float32 report at the end of the domain is valid only if it is compared as float32."""
    path = write_table("x.parquet", {"x": pa.array([0.1], pa.float32())})
    assert column(path, "x").dtype == np.float32


CELLS = {
    **{"1": 1.0, "-1.5": -1.5, "+2": 2.0, "1e3": 1000.0, ".5": 0.5, "5.": 5.0, " 7 ": 7.0},
    **{"1E-2": 0.01, '"8"': 8.0, "inf": np.inf, "-Infinity": -np.inf, "007": 7.0},
    **{"": np.nan, "NaN": np.nan, "NA": np.nan, "null": np.nan, "abc": np.nan, "1_0": np.nan},
    **{"0x10": np.nan, "1e": np.nan, '"1,5"': np.nan, "1 2": np.nan, "--1": np.nan, "∞": np.nan},
}


@pytest.mark.parametrize("cell", CELLS)
def test_csv_numbers_as_people_write_them(cell: str) -> None:
    """The same whether or not another cell of the batch is no number."""
    for neighbour in ("1", "none"):
        Path("x.csv").write_text(f"x,y\n{cell},0\n{neighbour},0\n2,0\n")
        numbers = column(Path("x.csv"), "x")
        assert len(numbers) == 3
        np.testing.assert_array_equal(numbers[0], CELLS[cell])


def test_a_csv_column_may_begin_with_whole_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Types must not be guessed from the first block, not even those of other columns."""
    monkeypatch.setattr(reading, "BLOCK_BYTES", 512)
    cells = ["1"] * 1000 + ["2.5"] * 10 + ["x"]
    Path("x.csv").write_text("x,other\n" + "".join(f"{cell},{cell}\n" for cell in cells))
    numbers = column(Path("x.csv"), "x")
    np.testing.assert_array_equal(numbers, [1.0] * 1000 + [2.5] * 10 + [np.nan])


def test_blank_lines_are_missing_values_only_where_they_can_be() -> None:
    Path("one.csv").write_text("x\n1\n\n3\n")
    np.testing.assert_array_equal(column(Path("one.csv"), "x"), [1, np.nan, 3])
    Path("two.csv").write_text("x,y\n1,2\n\n3,4\n\n")
    np.testing.assert_array_equal(column(Path("two.csv"), "x"), [1, 3])


TEXTS: dict[str, tuple[Any, list[str]]] = {
    "text": (pa.array(["a", "NA", "", None, "007"]), ["a", "NA", "", "", "007"]),
    "dictionary": (pa.array(["a", "b", "a"]).dictionary_encode(), ["a", "b", "a"]),
    "whole numbers": (pa.array([7, None]), ["7", ""]),
}


@pytest.mark.parametrize("suffix", REPORT_SUFFIXES)
@pytest.mark.parametrize("kind", TEXTS)
def test_text_is_kept_as_it_is(kind: str, suffix: str) -> None:
    written, expected = TEXTS[kind]
    path = write_table(f"x{suffix}", {"x": written, "y": np.arange(len(written))})
    assert column(path, "x", text=True).tolist() == expected


def test_lists_are_no_text() -> None:
    path = write_table("x.parquet", {"x": [[1], [2]]})
    with pytest.raises(InvalidFile, match=r"x\.parquet: has list.* which must hold text"):
        column(path, "x", text=True)


def test_a_name_may_be_asked_for_twice() -> None:
    for suffix in REPORT_SUFFIXES:
        path = write_table(f"x{suffix}", {"x": [1.0, 2.0]})
        (batch,) = read_batches(path, ["x", "x"])
        assert batch.columns["x"].tolist() == [1.0, 2.0]


@pytest.mark.slow
@given(
    rows=st.integers(1, 300),
    bad=st.integers(0, 299),
    batch=st.integers(1, 64),
    suffix=st.sampled_from(REPORT_SUFFIXES),
)
@settings(max_examples=60, deadline=None)
def test_an_invalid_row_has_its_number_in_any_batch(
    rows: int, bad: int, batch: int, suffix: str
) -> None:
    bad %= rows
    value = np.zeros(rows)
    value[bad] = 99.0
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "BATCH_ROWS", batch)
        patch.setattr(reading, "BLOCK_BYTES", 16 * batch)
        columns = {"group": np.zeros(rows, dtype=np.int32), "value": value}
        path = write_table(Path(name) / f"reports{suffix}", columns, 50)
        with pytest.raises(InvalidReport) as caught:
            summarise_files([path], PLAN)
        assert caught.value.row == bad + 1
        assert str(caught.value).startswith(f"{path}: row {bad + 1}: value must be in ")
        kept = summarise_files([path], PLAN, drop_invalid=True)
    assert kept.invalid == 1
    assert kept.reports.tolist() == [rows - 1, 0, 0]


def test_a_reason_never_quotes_the_file() -> None:
    for message in (
        "In CSV column #0: CSV conversion error to int64: invalid value '98765'",
        "CSV parse error: Row #3: Expected 2 columns, got 3: 98765,4,5",
        "something\n98765",
    ):
        assert "98765" not in reading._reason(pa.ArrowInvalid(message), ".csv")


# Memory


def peak_memory(work: Callable[[], object]) -> int:
    """The most that Python (NumPy included) held at any time."""
    gc.collect()
    tracemalloc.start()
    work()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def write_reports(path: Path, rows: int) -> None:
    """Many reports, in one row group."""
    value = np.random.default_rng(1).uniform(-4, 4, rows)
    columns = {"group": np.zeros(rows, dtype=np.int32), "value": value}
    write_table(path, columns, rows)


@pytest.mark.slow
@pytest.mark.parametrize(("suffix", "rows"), [(".parquet", 1_000_000), (".csv", 400_000)])
def test_memory_does_not_grow_with_the_file(
    monkeypatch: pytest.MonkeyPatch, suffix: str, rows: int
) -> None:
    """Four times the rows take no more: a few batches, far less than the file."""
    monkeypatch.setattr(reading, "BATCH_ROWS", 2**14)
    monkeypatch.setattr(reading, "BLOCK_BYTES", 2**15)
    peaks = []
    for factor in (1, 4):
        path = Path(f"{factor}{suffix}")
        write_reports(path, factor * rows)
        peaks.append(peak_memory(partial(summarise_files, [path], PLAN)))
    assert summarise_files([path], PLAN).reports.sum() == 4 * rows
    assert peaks[1] < 1.5 * peaks[0] + 2**20
    assert peaks[1] < path.stat().st_size / 4


@pytest.mark.slow
def test_arrow_does_not_hold_a_whole_row_group() -> None:
    write_reports(Path("x.parquet"), 4_000_000)
    gc.collect()
    at_rest, held = pa.total_allocated_bytes(), []
    for _ in read_batches(Path("x.parquet"), ["group", "value"]):
        held.append(pa.total_allocated_bytes() - at_rest)
    assert len(held) == 16
    assert max(held) < Path("x.parquet").stat().st_size / 2


@pytest.mark.slow
def test_perturbing_does_not_hold_all_reports() -> None:
    Path("plan.json").write_text(PLAN.to_json())
    arguments = ["perturb", "values.parquet", "-c", "x", "-p", "plan.json", "-o", "r.parquet"]
    peaks = []
    for factor in (1, 4):
        values = np.random.default_rng(1).random(factor * 2**19)
        write_table("values.parquet", {"x": values}, len(values))
        del values
        peaks.append(peak_memory(partial(run, arguments)))
    assert peaks[1] < 1.1 * peaks[0] + 2**20


# Writing


@pytest.mark.parametrize("suffix", REPORT_SUFFIXES)
@pytest.mark.parametrize("users", [False, True])
@pytest.mark.parametrize("whole", [False, True])
def test_reports_come_back_as_they_were_written(suffix: str, users: bool, whole: bool) -> None:
    rng = np.random.default_rng(1)
    group = rng.integers(0, 5, 1000)
    value = np.floor(rng.random(1000) * 100) if whole else rng.standard_cauchy(1000)
    user = np.array([f"user {place}, ü" for place in range(1000)], dtype=object)
    path = Path(f"reports{suffix}")
    with path.open("wb") as file, ReportWriter(file, path, whole=whole, users=users) as writer:
        for part in np.array_split(np.arange(1000), [10, 11, 700]):
            writer.write(group[part], value[part], user[part] if users else None)
    np.testing.assert_array_equal(column(path, "group"), group)
    np.testing.assert_array_equal(column(path, "value"), value)
    table = pq.read_table(path) if suffix == ".parquet" else pacsv.read_csv(path)
    assert table.column_names == (["user"] if users else []) + ["group", "value"]
    assert pa.types.is_integer(table["value"].type) == whole
    if users:
        assert column(path, "user", text=True).tolist() == user.tolist()


@pytest.mark.parametrize("suffix", REPORT_SUFFIXES)
def test_no_reports_are_still_a_table(suffix: str) -> None:
    path = Path(f"reports{suffix}")
    with path.open("wb") as file, ReportWriter(file, path):
        pass
    assert summarise_files([path], PLAN) == Summary.empty(PLAN)


@pytest.mark.parametrize("suffix", REPORT_SUFFIXES)
def test_files_and_memory_give_the_same_summary(suffix: str) -> None:
    values = np.random.default_rng(1).random(5000)
    reports = perturb(values, PLAN, np.random.default_rng(2))
    path = write_table(f"reports{suffix}", {"group": reports.group, "value": reports.value})
    assert summarise(path, PLAN) == summarise(reports, PLAN)
    assert summarise([str(path)], PLAN) == summarise(reports, PLAN)


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", ["piecewise", "square-wave-integer"])
@pytest.mark.parametrize("suffix", REPORT_SUFFIXES)
def test_a_seed_gives_the_same_reports_in_any_batches(
    monkeypatch: pytest.MonkeyPatch, mechanism: str, suffix: str
) -> None:
    values = np.random.default_rng(1).random(500)
    plan = Plan.new(mechanism, epsilon=1.0, min_epsilon=0.25, low=0, high=1)
    Path("plan.json").write_text(plan.to_json())
    path = write_table(f"values{suffix}", {"x": values}, 77)
    expected = perturb(values, plan, np.random.default_rng(9))
    command = importlib.import_module("unpoison.cli.perturb")
    for rows in (1, 13, 100, 1000):
        monkeypatch.setattr(reading, "BATCH_ROWS", rows)
        monkeypatch.setattr(reading, "BLOCK_BYTES", 64 * rows)
        monkeypatch.setattr(command, "REPORTS_AT_ONCE", 3 * rows)
        common = ["perturb", str(path), "-c", "x", "-p", "plan.json", "--seed", "9"]
        assert run([*common, "-o", f"reports{suffix}"]) == 0
        written = Path(f"reports{suffix}")
        np.testing.assert_array_equal(column(written, "group"), expected.group)
        np.testing.assert_array_equal(column(written, "value"), expected.value)
