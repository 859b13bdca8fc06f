"""What a path on the command line stands for, and whether it can be read or written."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from unpoison.errors import InvalidFile, InvalidParameter


def expand(paths: Iterable[str | Path], suffixes: Sequence[str]) -> list[Path]:
    """Files, folders and globs to a list of files, each once, in order.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     for name in ("b.csv", "a.parquet", "notes.txt"):
    ...         Path(folder, name).touch()
    ...     [path.name for path in expand([folder, Path(folder, "*.csv")], [".csv", ".parquet"])]
    ['a.parquet', 'b.csv']
    """
    by_target: dict[Path, Path] = {}
    for name in paths:
        for path in _matches(Path(name), suffixes):
            # Links and other spellings of one file count once, under the name that came first.
            by_target.setdefault(path.resolve(), path)
    return list(by_target.values())


def _matches(path: Path, suffixes: Sequence[str]) -> list[Path]:
    if path.is_dir():
        return _inside(path, suffixes)
    if path.exists():
        return [path]
    # A name with brackets may be a file's own: only what does not exist is taken as a pattern.
    matches = sorted(Path(name) for name in glob.glob(str(path), recursive=True))
    if not matches:
        raise InvalidFile(path, "does not exist")
    return [file for match in matches for file in _matches(match, suffixes)]


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

    >>> check_output("reports.txt", suffixes=[".parquet", ".csv"])
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
