"""The publishers' own files: taxi trips (TLC), compensation (DataSF) and deaths by age (CDC)."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from unpoison.errors import InvalidFile
from unpoison.reports.reading import read_batches

PICKUP = ("tpep_pickup_datetime", "pickup_datetime", "Trip_Pickup_DateTime")
"""The column of pick-up times, as its name changed over the years."""
TIME = (
    r"^\d{1,4}[-/]\d{1,2}[-/]\d{1,4}[ T](?P<hour>[01]?\d|2[0-3]):(?P<minute>[0-5]\d)"
    r"(?::(?P<second>[0-5]\d)(?:\.\d*)?)?(?: ?(?P<half>[AaPp])[Mm])?$"
)
"""A date, of which nothing is kept, and a time, of 24 hours or of twice 12."""
COMPENSATION = ("Total Compensation",)
DOLLARS = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
"""A number, after currency signs and commas were removed."""
GROUP, STATE, SEX = ("Group",), ("State",), ("Sex",)
AGE, DEATHS = ("Age Group",), ("COVID-19 Deaths",)
WANTED_ROWS = {GROUP: "by total", STATE: "california", SEX: "female"}
ALL_AGES = "all ages"
MIN_GROUPS = 2
"""The fewest age groups of a table: of one category there is nothing to estimate."""


def pickup_seconds(path: Path) -> NDArray[np.int32]:
    """Pick-up times of a TLC trip file (Parquet or CSV), in seconds of the day.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "yellow_tripdata_2018-01.csv")
    ...     _ = path.write_text("VendorID,tpep_pickup_datetime\\n1,2018-01-01 00:21:05\\n")
    ...     pickup_seconds(path).tolist()
    [1265]
    """
    column = _spelt(path, PICKUP)
    rule = f"must have a date and time in column {column!r}"
    chunks = []
    for batch in read_batches(path, [column], [column]):
        cells = batch.table.column(column)
        clock = _clock if pa.types.is_timestamp(cells.type) else _clock_of_text
        seconds = clock(cells)
        _require(path, seconds.is_valid(), batch.rows_before, rule)
        chunks.append(_numpy(seconds).astype(np.int32))
    return _joined(path, chunks)


def total_compensation(path: Path) -> NDArray[np.float64]:
    """Total compensation in dollars, of every row of DataSF's "Employee Compensation".

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "Employee_Compensation.csv")
    ...     _ = path.write_text('Year,Total Compensation\\n2013,"82,146.04"\\n2014,-16.5\\n')
    ...     total_compensation(path).tolist()
    [82146.04, -16.5]
    """
    column = _spelt(path, COMPENSATION)
    chunks = []
    for batch in read_batches(path, [column], [column]):
        plain = pc.replace_substring_regex(_texts(batch.table.column(column)), "[$,]", "")
        readable = pc.match_substring_regex(plain, DOLLARS)
        _require(path, readable, batch.rows_before, f"must have a number in column {column!r}")
        chunks.append(_numpy(plain.cast(pa.float64())))
    return _joined(path, chunks)


def covid_deaths(path: Path) -> dict[str, int]:
    """Deaths of females in California, from CDC's "Provisional COVID-19 Deaths by Sex and Age".

    Each age group has one row of the whole time; all ages and suppressed counts are left out.

    >>> from tempfile import TemporaryDirectory
    >>> head = "Group,State,Sex,Age Group,COVID-19 Deaths\\n"
    >>> kept = "By Total,California,Female,"
    >>> ages = ["All Ages,42082", "Under 1 year,", "1-4 years,13", "45-54 years,2403"]
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "Provisional_COVID-19_Deaths_by_Sex_and_Age.csv")
    ...     _ = path.write_text(head + "".join(f"{kept}{row}\\n" for row in ages))
    ...     covid_deaths(path)
    {'1-4 years': 13, '45-54 years': 2403}
    """
    columns = {key: _spelt(path, key) for key in (*WANTED_ROWS, AGE, DEATHS)}
    rows: list[tuple[str, int]] = []
    for batch in read_batches(path, list(columns.values()), columns.values()):
        cells = {
            key: np.char.strip(batch.columns[name].astype(str)) for key, name in columns.items()
        }
        selected = (cells[DEATHS] != "") & (np.char.lower(cells[AGE]) != ALL_AGES)
        for key, wanted in WANTED_ROWS.items():
            selected &= np.char.lower(cells[key]) == wanted
        counts = np.char.replace(cells[DEATHS], ",", "")
        readable = pa.array(~selected | np.char.isdecimal(counts))
        fault = f"must have a whole number in column {columns[DEATHS]!r}"
        _require(path, readable, batch.rows_before, fault)
        rows += zip(cells[AGE][selected].tolist(), map(int, counts[selected]), strict=True)
    return count_table(path, rows)


def count_table(path: Path, rows: Sequence[tuple[str, int]]) -> dict[str, int]:
    """Counts by group, as they were read from a file; refused if users cannot be drawn from them.

    >>> count_table(Path("ages.csv"), [("young", 2), ("old", 5)])
    {'young': 2, 'old': 5}
    >>> count_table(Path("ages.csv"), [("old", 5), ("old", 6), ("young", 2)])
    Traceback (most recent call last):
        ...
    unpoison.errors.InvalidFile: ages.csv: must have one row a group
    """
    table = dict(rows)
    counts = list(table.values())
    if len(table) < MIN_GROUPS or "" in table or min(counts) < 0 or not any(counts):
        raise InvalidFile(path, f"must have at least {MIN_GROUPS} named groups, with counts from 0")
    if len(table) < len(rows):
        raise InvalidFile(path, "must have one row a group")
    return table


def _spelt(path: Path, names: Sequence[str]) -> str:
    """A column as the file spells it: publishers change case, spaces and underscores.

    If there is none, the usual name, which the reader then refuses.
    """
    present = {_key(column): column for column in reversed(_header(path))}
    return next((present[_key(name)] for name in names if _key(name) in present), names[0])


def _key(name: str) -> str:
    """A name without case and punctuation, by which spellings are compared."""
    return re.sub(r"[^a-z0-9]+", " ", name.lower()).strip()


def _header(path: Path) -> list[str]:
    """The names of the columns; none of an unreadable file, which the reader refuses later."""
    try:
        if path.suffix.lower() == ".parquet":
            return list(pq.read_schema(path).names)
        with path.open(encoding="utf-8-sig", newline="") as file:
            return next(csv.reader(file), [])
    except (pa.ArrowException, OSError, ValueError, csv.Error):
        return []


def _clock(times: Any) -> Any:
    """Timestamps to seconds of the day, in local time, as they are recorded."""
    minutes = pc.add(pc.multiply(pc.hour(times), 60), pc.minute(times))
    return pc.add(pc.multiply(minutes, 60), pc.second(times))


def _clock_of_text(cells: Any) -> Any:
    """Times as text to seconds of the day; other text becomes null."""
    fields = pc.extract_regex(_texts(cells), TIME)
    hour, minute, second = (_number(fields, name) for name in ("hour", "minute", "second"))
    half = pc.utf8_upper(pc.struct_field(fields, "half"))
    morning, afternoon = pc.equal(half, "A"), pc.equal(half, "P")
    # 12 am and 12 pm begin their halves of the day: 12 counts as 0 there.
    of_half = pc.case_when(pc.make_struct(pc.less(hour, 12), pc.equal(hour, 12)), hour, 0)
    hour = pc.case_when(pc.make_struct(morning, afternoon), of_half, pc.add(of_half, 12), hour)
    return pc.add(pc.multiply(pc.add(pc.multiply(hour, 60), minute), 60), second)


def _texts(cells: Any) -> Any:
    """Cells as text, without spaces around them."""
    return pc.utf8_trim_whitespace(cells.cast(pa.string()).fill_null(""))


def _require(path: Path, good: Any, rows_before: int, rule: str) -> None:
    """Refuse the first row that is not good, without repeating its content."""
    row = pc.index(good, False).as_py()
    if row >= 0:
        raise InvalidFile(path, f"row {rows_before + row + 1}: {rule}")


def _number(fields: Any, name: str) -> Any:
    """A field of times as a number; 0 where the text has none."""
    texts = pc.struct_field(fields, name)
    return pc.if_else(pc.equal(texts, ""), "0", texts).cast(pa.int64())


def _numpy(column: Any) -> NDArray[Any]:
    return np.asarray(column.to_numpy(zero_copy_only=False))


def _joined(path: Path, chunks: list[NDArray[Any]]) -> NDArray[Any]:
    if not any(map(len, chunks)):
        raise InvalidFile(path, "holds no rows")
    return np.concatenate(chunks)
