"""The users of `unpoison simulate`: drawn from a dataset, or read from a column of a file."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from unpoison.cli.options import check_at_least_one
from unpoison.datasets import Sample, datasets
from unpoison.errors import InvalidFile, InvalidParameter, InvalidValue
from unpoison.output.progress import progress
from unpoison.reports.reading import read_batches
from unpoison.reports.values import fault_kind
from unpoison.system.paths import check_input


def draw_sample(dataset: str, users: int, column: str | None, rng: np.random.Generator) -> Sample:
    """Users drawn from a dataset by its name."""
    if column is not None:
        raise InvalidParameter("--values", "must be given with --column", "nothing")
    check_at_least_one("--users", users)
    return datasets[dataset]().draw(users, rng)


def read_sample(path: Path, column: str | None, categorical: bool = False) -> Sample:
    """A sample of all rows of a column: numbers with their range, or names of categories."""
    if column is None:
        raise InvalidParameter("--column", "must be given with --values", "nothing")
    check_input(path)
    values = _read_column(path, column, categorical)
    if not len(values):
        raise InvalidFile(path, "holds no rows")
    source = f"{path.name}, column {column!r}, {len(values)} rows"
    if categorical:
        return Sample(values, np.nan, np.nan, source, tuple(np.unique(values).tolist()))
    return Sample(values, float(values.min()), float(values.max()), source)


def _read_column(path: Path, column: str, categorical: bool) -> np.ndarray:
    blocks, bytes_before = [], 0
    checked = _checked_names if categorical else _checked_numbers
    with progress("Reading", path.stat().st_size) as advance:
        for batch in read_batches(path, [column], [column] if categorical else []):
            try:
                blocks.append(checked(batch.columns[column]))
            except InvalidValue as fault:
                raise fault.at(f"{path}, column {column!r}", batch.rows_before) from None
            advance(batch.bytes_read - bytes_before)
            bytes_before = batch.bytes_read
    return np.concatenate(blocks) if blocks else np.empty(0)


def _checked_numbers(column: np.ndarray) -> np.ndarray:
    numbers = column.astype(np.float64)
    finite = np.isfinite(numbers)
    if not finite.all():
        row = int(finite.argmin())
        kind = fault_kind(numbers[row], low=-np.inf)
        raise InvalidValue("values must be finite numbers", kind, row + 1)
    return numbers


def _checked_names(column: np.ndarray) -> np.ndarray:
    names = column.astype(str)
    empty = names == ""
    if empty.any():
        rule = "values must be names of categories"
        raise InvalidValue(rule, "nothing", int(empty.argmax()) + 1)
    return names
