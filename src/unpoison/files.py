"""Files: report and value columns read in batches, outputs that appear whole or not at all."""

from __future__ import annotations

import glob
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from unpoison.errors import InvalidFile, InvalidParameter
from unpoison.summary import METADATA_KEY

SUFFIXES = (".parquet", ".csv")
BATCH_ROWS = 2**18


@dataclass(frozen=True)
class Batch:
    """Some rows of a file: columns by name, and how many rows stand before them."""

    columns: dict[str, np.ndarray]
    rows_before: int
    bytes_read: int


def expand(paths: list[str | Path]) -> list[Path]:
    """Files, folders and globs to a list of files, each once, in order."""
    found: dict[Path, None] = {}
    for each in paths:
        for path in _matches(Path(each)):
            found[path] = None
    return list(found)


def _matches(path: Path) -> list[Path]:
    if path.is_dir():
        inside = sorted(each for each in path.rglob("*") if each.suffix in SUFFIXES)
        if not inside:
            raise InvalidFile(path, "holds no .parquet or .csv file")
        return inside
    if path.exists():
        return [path]
    matched = sorted(Path(each) for each in glob.glob(str(path), recursive=True))
    if not matched:
        raise InvalidFile(path, "does not exist")
    return matched


def is_summary(path: Path) -> bool:
    """Whether a file is a summary: a Parquet file with our footer."""
    try:
        metadata = pq.read_schema(path).metadata
    except (pa.ArrowException, OSError):
        return False
    return METADATA_KEY in (metadata or {})


def read_batches(
    path: Path, columns: list[str], text: Mapping[str, bool] | None = None
) -> Iterator[Batch]:
    """The named columns of a Parquet or CSV file, a batch at a time, as numbers or as `text`."""
    text = text or {}
    rows = 0
    try:
        for batch, position in _arrow_batches(path, columns):
            arrays = {name: _array(path, batch, name, text.get(name, False)) for name in columns}
            yield Batch(arrays, rows, position)
            rows += batch.num_rows
    except (pa.ArrowException, OSError, UnicodeDecodeError) as fault:
        reason = str(fault).splitlines()[0] if str(fault) else type(fault).__name__
        raise InvalidFile(
            path, f"cannot be read as {path.suffix or 'a table'} ({reason})"
        ) from None


def _arrow_batches(path: Path, columns: list[str]) -> Iterator[tuple[Any, int]]:
    if path.suffix == ".csv":
        yield from _csv_batches(path, columns)
    elif path.suffix == ".parquet":
        yield from _parquet_batches(path, columns)
    else:
        raise InvalidFile(path, f"must end in {' or '.join(SUFFIXES)}")


def _parquet_batches(path: Path, columns: list[str]) -> Iterator[tuple[Any, int]]:
    with pq.ParquetFile(path) as file:
        _require_columns(path, columns, file.schema_arrow.names)
        size, total, done = path.stat().st_size, max(file.metadata.num_rows, 1), 0
        for batch in file.iter_batches(batch_size=BATCH_ROWS, columns=columns):
            done += batch.num_rows
            yield batch, size * done // total


def _csv_batches(path: Path, columns: list[str]) -> Iterator[tuple[Any, int]]:
    if path.stat().st_size == 0:
        raise InvalidFile(path, "is empty")
    options = pacsv.ConvertOptions(strings_can_be_null=True)
    with path.open("rb") as file, pacsv.open_csv(file, convert_options=options) as reader:
        _require_columns(path, columns, reader.schema.names)
        for batch in reader:
            yield batch.select(columns), file.tell()


def _require_columns(path: Path, wanted: list[str], present: list[str]) -> None:
    for name in wanted:
        if name not in present:
            shown = ", ".join(present[:8]) + (", …" if len(present) > 8 else "")
            raise InvalidFile(path, f"has no column {name!r}; its columns are {shown}")


def _array(path: Path, batch: Any, name: str, text: bool) -> np.ndarray:
    """A column as numbers (missing ones become NaN), or as text."""
    column = batch.column(name)
    if text:
        return np.array([str(each) for each in column.to_pylist()], dtype=object)
    kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.dictionary_decode()
        kind = column.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_null(kind)):
        raise InvalidFile(path, f"has {kind} in column {name!r}, which must hold numbers")
    if column.null_count or pa.types.is_null(kind):
        column = column.cast(pa.float64())
    return np.asarray(column.to_numpy(zero_copy_only=False))


@contextmanager
def whole_file(path: str | Path) -> Iterator[IO[bytes]]:
    """Write to a neighbour and rename at the end: the file appears whole or not at all."""
    target = Path(path)
    if not target.parent.is_dir():
        raise InvalidParameter("output", "must be in a folder that exists", target)
    if target.is_dir():
        raise InvalidParameter("output", "must be a file, not a folder", target)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


class ReportWriter:
    """Writes reports as Parquet or CSV, by the ending of the path, batch by batch."""

    def __init__(self, file: IO[bytes], path: str | Path) -> None:
        self.file = file
        self.csv = Path(path).suffix == ".csv"
        if Path(path).suffix not in SUFFIXES:
            raise InvalidParameter("output", f"must end in {' or '.join(SUFFIXES)}", path)
        self.writer: Any = None

    def write(self, group: np.ndarray, value: np.ndarray, user: Any = None) -> None:
        """Append rows."""
        columns = {"group": group.astype(np.int32), "value": value}
        if user is not None:
            columns = {"user": user, **columns}
        batch = pa.record_batch(columns)
        if self.writer is None:
            kind = pacsv.CSVWriter if self.csv else pq.ParquetWriter
            self.writer = kind(self.file, batch.schema)
        self.writer.write_batch(batch)

    def close(self) -> None:
        """Finish the file."""
        if self.writer is not None:
            self.writer.close()
