"""The runner of all experiments: cells over all cores, each saved when done, to resume a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from multiprocessing import active_children
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from unpoison.errors import InvalidFile
from unpoison.experiments.cell import Cell
from unpoison.system.atomic_files import whole_file
from unpoison.system.cores import usable_cores
from unpoison.system.processes import process_pool

Advance = Callable[[int], None]


def run_cells(
    cells: Iterable[Cell], folder: Path, workers: int | None = None, advance: Advance | None = None
) -> pa.Table:
    """The rows of all cells; those whose file is in `folder` already are not run again.

    `advance` is told of trials as cells are done.

    >>> from tempfile import TemporaryDirectory
    >>> cells = [Cell("beta-2-5", 1000, "piecewise", 0.5, "none", 0.0, ("ostrich",), trials=1)]
    >>> with TemporaryDirectory() as folder:
    ...     first = run_cells(cells, Path(folder), workers=1)
    ...     run_cells(cells, Path(folder), workers=1).equals(first)
    True
    """
    folder.mkdir(parents=True, exist_ok=True)
    distinct = list(dict.fromkeys(cells))
    advance = advance or (lambda trials: None)
    missing = [cell for cell in distinct if not _path(folder, cell).exists()]
    advance(sum(cell.trials for cell in distinct) - sum(cell.trials for cell in missing))
    _run(missing, folder, workers or usable_cores(), advance)
    if not distinct:
        return pa.table({})
    tables = [_read(_path(folder, cell)) for cell in distinct]
    return pa.concat_tables(tables, promote_options="permissive")


def _run(cells: list[Cell], folder: Path, workers: int, advance: Advance) -> None:
    if min(workers, len(cells)) <= 1:
        for cell in cells:
            _run_and_save(cell, folder)
            advance(cell.trials)
        return
    # So that no long cell starts last and keeps one core busy alone.
    longest_first = sorted(cells, key=_work, reverse=True)
    with process_pool(workers) as pool:
        try:
            futures: dict[Future[None], Cell] = {
                pool.submit(_run_and_save, cell, folder): cell for cell in longest_first
            }
            for done in as_completed(futures):
                done.result()
                advance(futures[done].trials)
        except BaseException:
            _stop(pool)
            raise


def _stop(pool: ProcessPoolExecutor) -> None:
    """Stop all processes at once; the cells that they were running are run again next time."""
    pool.shutdown(wait=False, cancel_futures=True)
    for process in active_children():
        process.terminate()


def _work(cell: Cell) -> float:
    """The work of a cell, about the number of its reports: larger cells are begun first."""
    return cell.users * cell.trials * cell.epsilon


def _run_and_save(cell: Cell, folder: Path) -> None:
    """Run a cell and write its rows, whole or not at all."""
    with whole_file(_path(folder, cell)) as file:
        pq.write_table(_table(cell.run()), file)


def _table(rows: list[dict[str, Any]]) -> pa.Table:
    """Rows as columns; NaN becomes null."""
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    return pa.table({name: pa.array(column, from_pandas=True) for name, column in columns.items()})


def _path(folder: Path, cell: Cell) -> Path:
    return folder / f"{cell.key}.parquet"


def _read(path: Path) -> pa.Table:
    try:
        return pq.read_table(path)
    except pa.ArrowException:
        raise InvalidFile(path, "is no result of this experiment: remove it") from None
