"""The local engine: files one after the other, in constant memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from unpoison.binning import Binner
from unpoison.errors import InvalidReport
from unpoison.files import expand
from unpoison.plan import Plan
from unpoison.reading import read_batches
from unpoison.summary import Summary

Advance = Callable[[int], None]


def summarise_files(
    paths: list[str | Path],
    plan: Plan,
    *,
    drop_invalid: bool = False,
    advance: Advance | None = None,
) -> Summary:
    """Count the reports of all files; `advance` is told how many bytes have been read.

    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> plan = Plan.new(epsilon=0.25, min_epsilon=0.25, low=0, high=1)
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "day.csv")
    ...     np.savetxt(file, [[0, 0.5], [0, -1.5]], "%g", ",", header="group,value", comments="")
    ...     summarise_files([folder], plan).sum(0)
    -1.0
    """
    binner = Binner(plan, drop_invalid)
    for path in expand(paths):
        _add_file(binner, path, advance)
    return binner.summary()


def _add_file(binner: Binner, path: Path, advance: Advance | None) -> None:
    done = 0
    for batch in read_batches(path, ["group", "value"]):
        try:
            binner.add(batch.columns["group"], batch.columns["value"])
        except InvalidReport as fault:
            row = fault.row - 1
            received = f"group {batch.shown('group', row)}, value {batch.shown('value', row)}"
            raise fault.at(str(path), batch.rows_before, received) from None
        if advance is not None:
            advance(batch.bytes_read - done)
            done = batch.bytes_read
