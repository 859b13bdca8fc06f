"""Reading: the columns of a report or value file, a batch at a time, in constant memory."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from unpoison.errors import InvalidFile
from unpoison.reports.writing import REPORT_SUFFIXES
from unpoison.summary.summary import METADATA_KEY

BATCH_ROWS = 2**18
"""Rows that are decoded at a time: a few MB a column, however large the file is."""
BLOCK_BYTES = 2**20
"""Bytes of a CSV file that are parsed at once; some 30 such blocks are read ahead."""
BUFFER_BYTES = 2**20
"""Bytes of a Parquet column that are read at once, however large its row groups are."""
NUMBER = r"^[+-]?(?i:\d+\.?\d*(e[+-]?\d+)?|\.\d+(e[+-]?\d+)?|inf(inity)?|nan)$"
MOMENT = r"^\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d(:?\d\d)?)?)?$"
ZONED = r"(Z|[ T].*[+-]\d\d(:?\d\d)?)$"
NO_TIME = int(np.iinfo(np.int64).min)
"""Stands for a missing moment: no moment is 290,000 years before 1970."""
FAR_SECONDS = 1e11
"""Seconds from 1970 to the year 5138: larger numbers are no seconds, and count as missing."""
RAGGED_ROW = re.compile(r"Row #(\d+): Expected (\d+) columns, got (\d+)")
Reader = Callable[[Path, list[str]], Iterator[tuple[Any, int]]]
Form = Callable[[Path, Any, str], np.ndarray]
SHOWN_CHARACTERS = 40
"""The most characters of a file's text that go into a message: it stays one line."""


@dataclass(frozen=True)
class Batch:
    """Some rows of a file: columns by name, and how many rows stand before them.

    >>> table = pa.table({"value": ["0.5", "many"]})
    >>> batch = Batch({"value": np.array([0.5, np.nan])}, rows_before=0, bytes_read=9, table=table)
    >>> batch.shown("value", 1)
    "'many'"
    """

    columns: dict[str, np.ndarray]
    rows_before: int
    bytes_read: int
    table: Any

    def shown(self, column: str, row: int) -> str:
        """A cell as the file has it, for a message."""
        cell = self.table.column(column)[row].as_py()
        if cell is None or cell == "":
            return "nothing"
        plain = not isinstance(cell, str) or re.match(NUMBER, cell.strip())
        return str(cell).strip()[:SHOWN_CHARACTERS] if plain else short(cell)


def short(text: str) -> str:
    """The beginning of a text from a file, quoted.

    >>> short("and so on " * 10)
    "'and so on and so on and so on and so on …'"
    """
    return repr(text if len(text) <= SHOWN_CHARACTERS else text[:SHOWN_CHARACTERS] + "…")


def read_batches(
    path: Path,
    columns: Sequence[str],
    text: Iterable[str] = (),
    times: Iterable[str] = (),
    only: Sequence[int] | None = None,
) -> Iterator[Batch]:
    """The named columns of a Parquet or CSV file, a batch at a time, as numbers or as `text`.

    What is missing, or is no number in a CSV file, becomes NaN; missing text becomes "". Columns in
    `times` become microseconds since 1970, with NO_TIME where there is none. `only` are the row
    groups of a Parquet file to read.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "heights.csv")
    ...     np.savetxt(path, [1.5, 2.0], header="metres", comments="")
    ...     [batch.columns["metres"].tolist() for batch in read_batches(path, ["metres"])]
    [[1.5, 2.0]]
    """
    columns = list(dict.fromkeys(columns))
    forms: dict[str, Form] = {
        **dict.fromkeys(columns, _numbers),
        **dict.fromkeys(text, _texts),
        **dict.fromkeys(times, _moments),
    }
    readers: dict[str, Reader] = {
        ".csv": _csv_batches,
        ".parquet": partial(_parquet_batches, only=only),
    }
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise InvalidFile(path, f"must end in {' or '.join(REPORT_SUFFIXES)}")
    rows = 0
    try:
        for table, position in reader(path, columns):
            arrays = {name: forms[name](path, _plain(table.column(name)), name) for name in columns}
            yield Batch(arrays, rows, position, table)
            rows += table.num_rows
    except (pa.ArrowException, OSError) as fault:
        raise InvalidFile(path, _reason(fault, path.suffix)) from None


def _reason(fault: Exception, suffix: str) -> str:
    """Why a file cannot be read, without quoting anything from the file."""
    if ragged := RAGGED_ROW.search(str(fault)):
        row, expected, received = (int(digits) for digits in ragged.groups())
        return f"row {row - 1}: must have {expected} columns, as the header; received {received}"
    line = str(fault).partition("\n")[0].partition("'")[0].rstrip(": ")
    return f"cannot be read as {suffix[1:]} ({line or type(fault).__name__})"


def _parquet_batches(
    path: Path, columns: list[str], only: Sequence[int] | None
) -> Iterator[tuple[Any, int]]:
    with pq.ParquetFile(path, pre_buffer=False, buffer_size=BUFFER_BYTES) as file:
        if METADATA_KEY in (file.schema_arrow.metadata or {}):
            raise InvalidFile(path, "is a summary, which has no reports to read")
        _require_columns(path, columns, file.schema_arrow.names)
        size, total, done = path.stat().st_size, max(file.metadata.num_rows, 1), 0
        row_groups = range(file.num_row_groups) if only is None else only
        reading = {"batch_size": BATCH_ROWS, "columns": columns, "use_threads": False}
        for batch in file.iter_batches(row_groups=list(row_groups), **reading):
            done += batch.num_rows
            yield batch, size * done // total


def _csv_batches(path: Path, columns: list[str]) -> Iterator[tuple[Any, int]]:
    """Read all columns as text: types guessed from a first block would fail on a later one.

    Blank lines are skipped, but for a file of one column: there they are missing values.
    """
    present = _csv_header(path)
    _require_columns(path, columns, present)
    kinds = dict.fromkeys(columns, pa.string())
    options = pacsv.ConvertOptions(include_columns=columns, column_types=kinds)
    done = 0
    with path.open("rb") as file, _open_csv(file, options, len(present) > 1) as reader:
        for batch in reader:
            done = max(done, file.tell())
            yield batch, done


def _csv_header(path: Path) -> list[str]:
    """The names of the columns, from the whole lines among the first bytes."""
    with path.open("rb") as file:
        head = file.read(BLOCK_BYTES)
    if not head:
        raise InvalidFile(path, "is empty")
    lines = head[: max(head.rfind(b"\n"), head.rfind(b"\r")) + 1]
    with _open_csv(io.BytesIO(lines or head)) as reader:
        return list(reader.schema.names)


def _open_csv(file: IO[bytes], options: Any = None, skip_blank: bool = True) -> Any:
    """A CSV reader of one thread: with several, a fault's row number would be unknown."""
    reading = pacsv.ReadOptions(use_threads=False, block_size=BLOCK_BYTES)
    parsing = pacsv.ParseOptions(ignore_empty_lines=skip_blank)
    return pacsv.open_csv(file, reading, parsing, options)


def _require_columns(path: Path, wanted: list[str], present: list[str]) -> None:
    for name in wanted:
        if name not in present:
            raise InvalidFile(path, f"has no column {name!r}; {_column_names(present)}")
        if present.count(name) > 1:
            raise InvalidFile(path, f"has the column {name!r} more than once")


def _column_names(present: list[str]) -> str:
    """The names of the columns, unless they look like data: a value must not be repeated."""
    if any(_is_number(name) for name in present):
        return f"its {len(present)} columns have numbers for names: does it lack a header?"
    shown = ", ".join(map(short, present[:8])) + (", …" if len(present) > 8 else "")
    return f"its columns are {shown}"


def _is_number(name: str) -> bool:
    try:
        float(name)
    except ValueError:
        return False
    return True


def _plain(column: Any) -> Any:
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _numbers(path: Path, column: Any, name: str) -> np.ndarray:
    if path.suffix.lower() == ".csv":
        column = _parsed(column)
    kind = column.type
    numeric = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_null)
    if not any(is_kind(kind) for is_kind in numeric):
        raise InvalidFile(path, f"has {kind} in column {name!r}, which must hold numbers")
    if column.null_count or not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        column = column.cast(pa.float64(), safe=False)
    return np.asarray(column.to_numpy(zero_copy_only=False))


def _moments(path: Path, column: Any, name: str) -> np.ndarray:
    """Moments, dates, ISO 8601 text (UTC unless it says otherwise), or seconds since 1970."""
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        column = _parsed_moments(column)
    elif pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_null(kind):
        column = _seconds(column)
    elif pa.types.is_date(kind):
        column = column.cast(pa.timestamp("us"))
    elif not pa.types.is_timestamp(kind):
        raise InvalidFile(path, f"has {kind} in column {name!r}, which must hold moments")
    micros = column.cast(pa.timestamp("us", tz=getattr(column.type, "tz", None)), safe=False)
    return np.asarray(micros.cast(pa.int64()).fill_null(NO_TIME).to_numpy(zero_copy_only=False))


def _parsed_moments(column: Any) -> Any:
    """Text to moments; text that is none becomes null."""
    column = pc.utf8_trim_whitespace(column)
    numeric = pc.fill_null(pc.match_substring_regex(column, NUMBER), False)
    if pc.any(numeric).as_py():
        return _seconds(_parsed(column))
    zoned = pc.fill_null(pc.match_substring_regex(column, ZONED), False)
    plain = pc.match_substring_regex(column, MOMENT)
    text = pc.if_else(plain, column, None)
    with_zone = pc.if_else(zoned, text, None).cast(pa.timestamp("us", tz="UTC"))
    without = pc.if_else(zoned, None, text).cast(pa.timestamp("us"))
    return pc.coalesce(with_zone.cast(pa.int64()), without.cast(pa.int64())).cast(
        pa.timestamp("us")
    )


def _seconds(column: Any) -> Any:
    """Seconds since 1970, in a range that has a calendar."""
    numbers = column.cast(pa.float64(), safe=False)
    inside = pc.and_(pc.greater(numbers, -FAR_SECONDS), pc.less(numbers, FAR_SECONDS))
    micros = pc.if_else(inside, pc.round(pc.multiply(numbers, 1e6)), None)
    return micros.cast(pa.int64()).cast(pa.timestamp("us"))


def _texts(path: Path, column: Any, name: str) -> np.ndarray:
    try:
        texts = column.cast(pa.string())
    except pa.ArrowException:
        fault = f"has {column.type} in column {name!r}, which must hold text"
        raise InvalidFile(path, fault) from None
    return np.array(texts.fill_null("").to_pylist(), dtype=object)


def _parsed(column: Any) -> Any:
    """Text to numbers; text that is no number becomes null."""
    column = pc.utf8_trim_whitespace(column)
    with suppress(pa.ArrowInvalid):
        return column.cast(pa.float64())
    readable = pc.match_substring_regex(column, NUMBER)
    return pc.if_else(readable, column, None).cast(pa.float64())
