"""The Summary: all that any estimator may look at."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np

from unpoison.errors import IncompatibleSummaries, InvalidFile, InvalidParameter
from unpoison.plan import Plan
from unpoison.summary.windows import Window
from unpoison.types import FloatArray, IntArray

FIXED_POINT = 2**32
"""Parts of a report unit in which sums are kept: whole numbers add up in any order alike."""
METADATA_KEY = b"unpoison.summary"
FORMAT = 1
"""Raised when a file of this version could be misread by an earlier one."""


@dataclass(frozen=True, eq=False)
class Summary:
    """Counts per group and cell, exact sums, and how many reports were left out as invalid.

    `sums` are whole numbers of 2^-32ths of a report unit, so merging is associative to the bit.
    Reports of a part that has no window make a sum that has none.

    >>> plan = Plan.new(epsilon=0.125, low=0, high=10)
    >>> empty = Summary.empty(plan)
    >>> (empty + empty) == empty
    True
    """

    plan: Plan
    counts: IntArray
    sums: tuple[int, ...]
    invalid: int = 0
    window: Window | None = None
    """The time in which the reports were made, if they were counted by windows of time."""

    def __post_init__(self) -> None:
        shape = (len(self.plan.all_groups), self.plan.cells)
        if self.counts.shape != shape or len(self.sums) != shape[0]:
            raise InvalidParameter("counts", f"must have the shape {shape}", self.counts.shape)
        if (self.counts < 0).any() or self.invalid < 0:
            raise InvalidParameter("counts", "must not be negative", "a negative count")
        self.counts.setflags(write=False)

    @classmethod
    def empty(cls, plan: Plan) -> Summary:
        """A summary of no reports: the neutral element of `+`."""
        groups = len(plan.all_groups)
        return cls(plan, np.zeros((groups, plan.cells), dtype=np.int64), (0,) * groups)

    @property
    def reports(self) -> IntArray:
        """The number of reports in each group."""
        return np.asarray(self.counts.sum(axis=1))

    @property
    def users(self) -> FloatArray:
        """The number of users in each group: its reports over the reports that each user sends."""
        reports_per_user = np.array([group.reports for group in self.plan.all_groups])
        return np.asarray(self.reports / reports_per_user)

    @property
    def total_users(self) -> float:
        """The number of users, each counted once however many groups they report in."""
        return float(self.users[list(self.plan.groups_that_count_users)].sum())

    @property
    def tiers_with_reports(self) -> list[list[int]]:
        """The groups of every tier that somebody is in."""
        tiers = [list(self.plan.tier_groups(tier)) for tier in range(len(self.plan.all_tiers))]
        return [groups for groups in tiers if self.counts[groups].any()]

    def sum(self, group: int) -> float:
        """The sum of a group's reports."""
        return self.sums[group] / FIXED_POINT

    def decoded_average(self, group: int) -> float:
        """The plain average of a group's decoded reports, from the exact sum; normalised."""
        average = self.sum(group) / float(self.reports[group])
        return float(self.plan.group_mechanisms[group].decode(np.array(average)))

    def __add__(self, other: Summary) -> Summary:
        if not isinstance(other, Summary):
            return NotImplemented
        if self.plan.fingerprint != other.plan.fingerprint:
            raise IncompatibleSummaries(
                "summaries can be merged only if their plans are equal; received plans "
                f"{self.plan.fingerprint[:12]} and {other.plan.fingerprint[:12]}"
            )
        sums = tuple(a + b for a, b in zip(self.sums, other.sums, strict=True))
        counts, invalid = self.counts + other.counts, self.invalid + other.invalid
        return Summary(self.plan, counts, sums, invalid, _joint_window([self, other]))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Summary):
            return NotImplemented
        return (
            self.plan.fingerprint == other.plan.fingerprint
            and self.sums == other.sums
            and self.invalid == other.invalid
            and self.window == other.window
            and bool(np.array_equal(self.counts, other.counts))
        )

    __hash__ = None  # type: ignore[assignment]

    def to_bytes(self) -> bytes:
        """The file form: Parquet rows (group, cell, count), with plan and sums in the footer."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        group, cell = np.nonzero(self.counts)
        head = {
            "format": FORMAT,
            "plan": self.plan.to_dict(),
            # As text: JSON readers elsewhere would turn numbers above 2^53 into floats.
            "sums": [str(total) for total in self.sums],
            "reports": self.reports.tolist(),
            "invalid": self.invalid,
            **({} if self.window is None else {"window": [self.window.start, self.window.end]}),
        }
        columns = {
            "group": group.astype(np.int32),
            "cell": cell.astype(np.int32),
            "count": self.counts[group, cell],
        }
        table = pa.table(columns).replace_schema_metadata({METADATA_KEY: json.dumps(head)})
        buffer = io.BytesIO()
        pq.write_table(table, buffer, compression="zstd")
        return buffer.getvalue()

    @classmethod
    def from_bytes(cls, data: bytes, source: object = "summary") -> Summary:
        """Read the file form."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            # No partitioning: a folder called group=1 must not add a column.
            table = pq.read_table(pa.BufferReader(data), partitioning=None, use_threads=False)
        except (pa.ArrowException, OSError) as fault:
            raise InvalidFile(source, f"is not a summary ({_first_line(fault)})") from None
        metadata = table.schema.metadata or {}
        if METADATA_KEY not in metadata:
            raise InvalidFile(source, "is a Parquet file, but not a summary")
        try:
            return cls._from_parts(json.loads(metadata[METADATA_KEY]), table)
        except (ArithmeticError, LookupError, TypeError, ValueError) as fault:
            reason = _first_line(fault)
            raise InvalidFile(source, f"cannot be read as a summary ({reason})") from None

    @classmethod
    def _from_parts(cls, head: dict[str, Any], table: Any) -> Summary:
        """The summary that footer and rows say; any fault in them is an error."""
        if head["format"] != FORMAT:
            raise ValueError(f"its format is {head['format']}; known is {FORMAT}")
        plan = Plan.from_dict(head["plan"])
        counts = np.zeros((len(plan.all_groups), plan.cells), dtype=np.int64)
        group, cell, count = (table[name].to_numpy() for name in ("group", "cell", "count"))
        if any(column.dtype.kind not in "iu" for column in (group, cell, count)):
            raise TypeError("its columns must hold whole numbers")
        if (group < 0).any() or (cell < 0).any():
            raise IndexError("a group or cell is negative")
        np.add.at(counts, (group, cell), count)
        if counts.sum(axis=1).tolist() != head["reports"]:
            raise ValueError("its counts do not add up to its number of reports")
        window = Window(*map(int, head["window"])) if "window" in head else None
        sums = tuple(int(total) for total in head["sums"])
        return cls(plan, counts, sums, int(head["invalid"]), window)

    def save(self, path: str | Path) -> None:
        """Write the file form, whole or not at all."""
        from unpoison.system.atomic_files import whole_file

        with whole_file(path) as file:
            file.write(self.to_bytes())

    @classmethod
    def load(cls, path: str | Path) -> Summary:
        """Read a summary file."""
        try:
            data = Path(path).read_bytes()
        except OSError as fault:
            raise InvalidFile(path, f"cannot be read ({fault.strerror})") from None
        return cls.from_bytes(data, path)


def _joint_window(parts: list[Summary]) -> Window | None:
    """The window of all reports; none if some have none."""
    windows = [part.window for part in parts if part.window is not None or part.counts.any()]
    present = [window for window in windows if window is not None]
    return reduce(Window.hull, present) if present and len(present) == len(windows) else None


def _first_line(fault: Exception) -> str:
    return str(fault).splitlines()[0] if str(fault) else type(fault).__name__


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
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        metadata = pq.read_schema(path).metadata
    except (pa.ArrowException, OSError):
        return False
    return METADATA_KEY in (metadata or {})
