"""Files: what a path stands for, and outputs that appear whole or not at all."""

from __future__ import annotations

import glob
import os
import secrets
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from unpoison.errors import InvalidFile, InvalidParameter
from unpoison.summary import METADATA_KEY

SUFFIXES = (".parquet", ".csv")


def expand(paths: Iterable[str | Path], suffixes: Sequence[str] = SUFFIXES) -> list[Path]:
    """Files, folders and globs to a list of files, each once, in order.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     for name in ("b.csv", "a.parquet", "notes.txt"):
    ...         Path(folder, name).touch()
    ...     [path.name for path in expand([folder, Path(folder, "*.csv")])]
    ['a.parquet', 'b.csv']
    """
    found: dict[Path, Path] = {}
    for each in paths:
        for path in _matches(Path(each), suffixes):
            found.setdefault(path.resolve(), path)
    return list(found.values())


def _matches(path: Path, suffixes: Sequence[str]) -> list[Path]:
    if path.is_dir():
        return _inside(path, suffixes)
    if path.exists():
        return [path]
    matched = sorted(Path(each) for each in glob.glob(str(path), recursive=True))
    if not matched:
        raise InvalidFile(path, "does not exist")
    return [file for match in matched for file in _matches(match, suffixes)]


def _inside(folder: Path, suffixes: Sequence[str]) -> list[Path]:
    """The folder's files with one of the suffixes, at any depth; hidden ones do not count."""
    inside = [
        path
        for path in sorted(folder.rglob("*"))
        if path.suffix.lower() in suffixes and path.name[0] != "." and path.is_file()
    ]
    if not inside:
        raise InvalidFile(folder, f"holds no {' or '.join(suffixes)} file")
    return inside


def is_summary(path: Path) -> bool:
    """Whether a file is a summary: a Parquet file with our footer.

    >>> from tempfile import TemporaryDirectory
    >>> from unpoison import Plan, Summary
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "day.parquet")
    ...     Summary.empty(Plan.new(epsilon=0.25, low=0, high=1)).save(path)
    ...     is_summary(path)
    True
    """
    try:
        metadata = pq.read_schema(path).metadata
    except (pa.ArrowException, OSError):
        return False
    return METADATA_KEY in (metadata or {})


def check_input(path: Path) -> None:
    """Refuse a path that is not a file.

    >>> check_input(Path("nowhere.csv"))
    Traceback (most recent call last):
        ...
    unpoison.errors.InvalidFile: nowhere.csv: does not exist
    """
    if not path.is_file():
        raise InvalidFile(path, "is a folder, not a file" if path.exists() else "does not exist")


def check_output(
    path: str | Path | None, name: str = "output", suffixes: Sequence[str] | None = None
) -> None:
    """Refuse, before any work is done, a path that nothing can be written to.

    >>> check_output("reports.txt", suffixes=SUFFIXES)
    Traceback (most recent call last):
        ...
    unpoison.errors.InvalidParameter: output must end in .parquet or .csv; received reports.txt
    """
    if path is None:
        return
    target = Path(path)
    if suffixes is not None and target.suffix.lower() not in suffixes:
        raise InvalidParameter(name, f"must end in {' or '.join(suffixes)}", target)
    if not target.parent.is_dir():
        raise InvalidParameter(name, "must be in a folder that exists", target)
    if target.is_dir():
        raise InvalidParameter(name, "must be a file, not a folder", target)
    if target.exists() and not target.is_file():
        raise InvalidParameter(name, "must be a file, not a device or pipe", target)
    if not os.access(target.parent, os.W_OK):
        raise InvalidParameter(name, "must be in a folder that can be written to", target)


@contextmanager
def whole_file(path: str | Path) -> Iterator[IO[bytes]]:
    """Write to a neighbour and rename at the end: the file appears whole or not at all.

    A file that is replaced keeps its permissions, and a link to it stays a link.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     target = Path(folder, "answer.txt")
    ...     with whole_file(target) as file:
    ...         written, there = file.write(b"42"), target.exists()
    ...     there, target.exists()
    (False, True)
    """
    check_output(path)
    target = Path(path).resolve()
    draft = target.parent / f".unpoison-{secrets.token_hex(8)}"
    try:
        with draft.open("xb") as file:
            if target.exists():
                draft.chmod(target.stat().st_mode & 0o777)
            yield file
            file.flush()
            os.fsync(file.fileno())
        draft.replace(target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def name_once(draft: Path, path: Path) -> None:
    """Give a finished file its name, unless there is one of that name (FileExistsError).

    A second name never takes the place of a file; where files have only one, a copy does not.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     draft = Path(folder, "draft")
    ...     draft.touch()
    ...     name_once(draft, draft.with_name("keys"))
    ...     draft.with_name("keys").exists()
    True
    """
    try:
        os.link(draft, path)
    except FileExistsError:
        raise
    except (OSError, NotImplementedError, AttributeError):
        copy = os.open(
            path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0), 0o600
        )
        with open(copy, "wb") as file:
            file.write(draft.read_bytes())
            file.flush()
            os.fsync(file.fileno())


class ReportWriter:
    """Writes reports as Parquet or CSV, by the ending of the path, batch by batch.

    Used in a `with` statement: it is then closed before its file, whatever happens.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "reports.csv")
    ...     with path.open("wb") as file, ReportWriter(file, path) as writer:
    ...         writer.write(np.array([0, 1]), np.array([0.5, -2.0]))
    ...     pacsv.read_csv(path).to_pydict()
    {'group': [0, 1], 'value': [0.5, -2.0]}
    """

    def __init__(
        self, file: IO[bytes], path: str | Path, *, whole: bool = False, users: bool = False
    ) -> None:
        check_output(path, suffixes=SUFFIXES)
        value = pa.int64() if whole else pa.float64()
        fields = [("group", pa.int32()), ("value", value)]
        self.schema = pa.schema([("user", pa.string()), *fields] if users else fields)
        csv = Path(path).suffix.lower() == ".csv"
        self.writer = (pacsv.CSVWriter if csv else pq.ParquetWriter)(file, self.schema)

    def write(self, group: np.ndarray, value: np.ndarray, user: Any = None) -> None:
        """Append rows."""
        columns = {"user": user, "group": group, "value": value}
        arrays = [pa.array(columns[each.name]).cast(each.type) for each in self.schema]
        self.writer.write_batch(pa.record_batch(arrays, schema=self.schema))

    def close(self) -> None:
        """Finish the file."""
        self.writer.close()

    def __enter__(self) -> ReportWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
