"""The unit of work: a part of a report file, counted by the one kernel."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from unpoison.errors import InvalidParameter, InvalidReport, UnpoisonError
from unpoison.plan import Plan
from unpoison.reports.reading import NO_TIME, Batch, read_batches
from unpoison.summary.binning import Binner
from unpoison.summary.compiled import compiled_loop
from unpoison.summary.tally import Tally
from unpoison.summary.windows import Window
from unpoison.types import IntArray

PART_ROWS = 2**22
"""Rows of a part: enough that scheduling it costs nothing beside counting it."""
MOST_WINDOWS = 10_000
"""The most windows of a run: each has its counts in memory, with the default grid 6 GB in all."""


@dataclass(frozen=True)
class Part:
    """Some row groups of a Parquet file, or a whole CSV file.

    >>> Part(Path("day.csv")).size
    0
    """

    path: Path
    row_groups: tuple[int, ...] | None = None
    rows_before: int = 0
    size: int = 0


@dataclass(frozen=True)
class Job:
    """The settings by which every part is counted: plan, invalid reports, windows of time.

    `window` is the width of windows in microseconds, over the moments in `time_column`.

    >>> Job(Plan.new(epsilon=1.0, low=0, high=1)).columns
    ['group', 'value']
    """

    plan: Plan
    drop_invalid: bool = False
    window: int | None = None
    time_column: str = "timestamp"
    compiled: bool = False
    """Whether there are so many reports that compiling the kernel's loop is worth it."""

    @property
    def columns(self) -> list[str]:
        """The columns that are read."""
        return ["group", "value", *self.times]

    @property
    def times(self) -> list[str]:
        """The columns that hold moments in time."""
        return [] if self.window is None else [self.time_column]


@dataclass(frozen=True)
class Counted:
    """The result of counting a part: summaries by window, or the fault that prevented it.

    >>> from unpoison import InvalidFile
    >>> Counted(Part(Path("day.csv")), fault=InvalidFile("day.csv", "is empty")).tally
    {}
    """

    part: Part
    tally: Tally = field(default_factory=dict)
    fault: UnpoisonError | None = None


def parts_of(path: Path) -> list[Part]:
    """A file in parts that can be counted apart, each with some millions of rows.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "day.parquet")
    ...     pq.write_table(pa.table({"group": [0] * 9}), path, row_group_size=3)
    ...     [part.row_groups for part in parts_of(path)]
    [(0, 1, 2)]
    """
    size = path.stat().st_size
    if path.suffix.lower() != ".parquet":
        return [Part(path, size=size)]
    try:
        with pq.ParquetFile(path) as file:
            rows = [file.metadata.row_group(n).num_rows for n in range(file.num_row_groups)]
    except (pa.ArrowException, OSError):
        return [Part(path, size=size)]
    return _cut(path, size, rows) or [Part(path, size=size)]


def _cut(path: Path, size: int, rows: list[int]) -> list[Part]:
    """Join neighbouring row groups into parts of at least PART_ROWS rows."""
    parts: list[Part] = []
    first, before, total = 0, 0, max(sum(rows), 1)
    for number in range(len(rows)):
        held = sum(rows[first : number + 1])
        if held >= PART_ROWS or number == len(rows) - 1:
            share = size * (before + held) // total - size * before // total
            parts.append(Part(path, tuple(range(first, number + 1)), before, share))
            first, before = number + 1, before + held
    return parts


def count(job: Job, part: Part) -> Counted:
    """Count one part. Faults of the file come back as values: other files must go on.

    >>> plan = Plan.new(epsilon=1.0, low=0, high=1)
    >>> str(count(Job(plan), Part(Path("nowhere.csv"))).fault)
    'nowhere.csv: cannot be read as csv ...'
    """
    binners = _Binners(job)
    try:
        for batch in read_batches(part.path, job.columns, times=job.times, only=part.row_groups):
            binners.add(batch, part)
    except UnpoisonError as fault:
        return Counted(part, fault=fault)
    return Counted(part, binners.tally())


class _Binners:
    """A kernel for every window that there are reports of."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.binners: dict[Window | None, Binner] = {}
        if job.window is None:
            self._binner(None)

    def tally(self) -> Tally:
        return {
            window: replace(binner.summary(), window=window)
            for window, binner in self.binners.items()
        }

    def add(self, batch: Batch, part: Part) -> None:
        group, value = batch.columns["group"], batch.columns["value"]
        try:
            if self.job.window is None:
                self._binner(None).add(group, value)
            else:
                self._add_windows(group, value, batch.columns[self.job.time_column])
        except InvalidReport as fault:
            row = fault.row - 1
            received = ", ".join(f"{name} {batch.shown(name, row)}" for name in self.job.columns)
            raise fault.at(str(part.path), part.rows_before + batch.rows_before, received) from None

    def _add_windows(self, group: np.ndarray, value: np.ndarray, times: IntArray) -> None:
        width = self.job.window or 1
        numbers = np.where(times == NO_TIME, NO_TIME, times // width)
        for number in np.unique(numbers) if len(numbers) else []:
            rows = np.flatnonzero(numbers == number)
            if number == NO_TIME:
                self._without_time(rows)
                continue
            window = Window(int(number) * width, (int(number) + 1) * width)
            try:
                self._binner(window).add(group[rows], value[rows])
            except InvalidReport as fault:
                raise InvalidReport(
                    fault.rule, fault.received, int(rows[fault.row - 1]) + 1
                ) from None

    def _without_time(self, rows: IntArray) -> None:
        """Reports that belong to no window."""
        if not self.job.drop_invalid:
            rule = f"{self.job.time_column} must be a moment"
            raise InvalidReport(rule, "nothing", int(rows[0]) + 1)
        self._binner(None).invalid += len(rows)

    def _binner(self, window: Window | None) -> Binner:
        if window not in self.binners:
            if len(self.binners) >= MOST_WINDOWS:
                rule = f"must be long enough for at most {MOST_WINDOWS} windows"
                raise InvalidParameter("window", rule, "a shorter one")
            loop = compiled_loop() if self.job.compiled else None
            self.binners[window] = Binner(self.job.plan, self.job.drop_invalid, loop)
        return self.binners[window]
