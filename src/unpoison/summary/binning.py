"""The one binning kernel: reports to a partial Summary.

Every path from reports to counts goes through `Binner`, so cell edges agree bit for bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from threading import local

import numpy as np
from numpy.typing import NDArray

from unpoison.errors import InvalidReport
from unpoison.plan import Plan
from unpoison.summary import Summary
from unpoison.summary.compiled import Domains, Loop
from unpoison.summary.summary import FIXED_POINT
from unpoison.types import BoolArray, FloatArray, IntArray

BLOCK = 2**18
"""Rows that are placed at a time: larger blocks leave the cache, smaller ones cost calls."""
BATCH = 2**20
"""Rows that one bincount counts: its pass over groups × cells is shared by so many of them."""
EXACT_FLOAT = 2**53
"""Whole numbers up to this are exact in float64, and so are sums that stay below it."""
CLEARLY_INSIDE = 1 - 2.0**-40
"""Up to this part of a domain, rounding cannot hide that a value is beyond its end."""
Column = NDArray[np.generic]


class Binner:
    """Counts reports of one plan, block by block, in constant memory.

    Sums are taken in float64 over whole numbers of 2^-32ths, of so few rows at a time that their
    size stays under 2^53: that is exact in any order.

    `loop` is `compiled.compiled_loop()`, for many reports: it counts a batch in one pass. What it
    cannot count goes the usual way.

    >>> plan = Plan.new(epsilon=0.0625, low=0, high=1)
    >>> binner = Binner(plan)
    >>> binner.add(np.array([0, 0]), np.array([-1.5, 2.0]))
    >>> binner.summary().sum(0)
    0.5
    """

    def __init__(self, plan: Plan, drop_invalid: bool = False, loop: Loop | None = None) -> None:
        self.plan = plan
        self.drop_invalid = drop_invalid
        self.loop = loop
        self.groups = len(plan.all_groups)
        mechanisms = plan.group_mechanisms
        self.discrete = mechanisms[0].discrete
        self.low = np.array([mechanism.output_low for mechanism in mechanisms])
        # A cell number is at most cells − 1, while a continuous report may be the end itself.
        last = 1.0 if self.discrete else 0.0
        self.high = np.array([mechanism.output_high - last for mechanism in mechanisms])
        widths = np.array(
            [mechanism.output_high - mechanism.output_low for mechanism in mechanisms]
        )
        self.per_unit = plan.cells / widths
        self.counts = np.zeros(self.groups * plan.cells, dtype=np.int64)
        self.sums = [0] * self.groups
        self.invalid = 0
        self.scale = 1 if self.discrete else FIXED_POINT
        largest = float(np.abs([self.low, self.high]).max()) * self.scale
        self.exact_rows = max(1, min(BLOCK, int(EXACT_FLOAT / largest)))

    def add(self, group: Column, value: Column) -> None:
        """Count reports; an invalid one is an error that names its row, or is dropped.

        `group` is a column, or without dimension one group for all.
        """
        for first in range(0, len(value), BATCH):
            batch = slice(first, first + BATCH)
            self._add_batch(_part(group, batch), value[batch], first)

    def add_group(self, group: int, value: FloatArray) -> None:
        """Count reports that all belong to one group."""
        self.add(np.array(group), value)

    def summary(self) -> Summary:
        """The Summary of all reports that were added so far."""
        counts = self.counts.reshape(self.groups, self.plan.cells).copy()
        return Summary(self.plan, counts, tuple(self.sums), self.invalid)

    def _add_batch(self, group: Column, value: Column, rows_before: int) -> None:
        """Find the cells block by block, while they are in the cache; count them all at once.

        Nothing of a batch is counted if one of its rows is refused.
        """
        if self.loop is not None and self._looped(self.loop, group, value):
            return
        cells, valid, sums = np.empty(len(value), dtype=np.int64), 0, [0] * self.groups
        workspace = _workspace(min(BLOCK, len(value)))
        for first in range(0, len(value), BLOCK):
            rows = slice(first, first + BLOCK)
            block = self._loaded(workspace, _part(group, rows), value[rows], rows_before + first)
            self._locate(block, cells[valid : valid + block.size], sums)
            valid += block.size
        self.counts += np.bincount(cells[:valid], minlength=len(self.counts))
        self.sums = [old + new for old, new in zip(self.sums, sums, strict=True)]
        self.invalid += len(value) - valid

    def _looped(self, loop: Loop, group: Column, value: Column) -> bool:
        """Count a batch row by row; False if it has to be looked at more closely."""
        if not (_whole(group) and group.ndim and value.dtype.kind in "iuf"):
            return False
        kind = value.dtype if value.dtype.kind == "f" else np.dtype(np.float64)
        domains = Domains(
            low=self.low,
            high=self.high,
            least=np.asarray(self.low, dtype=kind),
            most=np.asarray(self.high, dtype=kind),
            per_unit=self.per_unit,
            cells=self.plan.cells,
            scale=float(self.scale),
            whole=self.discrete,
        )
        counts, sums = np.zeros_like(self.counts), np.zeros(self.groups, dtype=np.int64)
        if loop(group, value, domains, counts, sums) < len(value):
            return False
        self.counts += counts
        unit = FIXED_POINT // self.scale
        self.sums = [old + int(new) * unit for old, new in zip(self.sums, sums, strict=True)]
        return True

    def _loaded(
        self, workspace: _Workspace, group: Column, value: Column, rows_before: int
    ) -> _Block:
        """The valid rows of a block, with their places; others are refused or left out.

        Only rows that are not clearly inside their domains need a closer look.
        """
        if _whole(group) and _within(group, self.groups):
            block = self._placed(workspace, group, value)
            doubtful = self._doubtful(block)
            if self._validity(_part(group, doubtful), value[doubtful])[1].all():
                self._clip(block, doubtful)
                return block
        in_plan, valid = self._validity(group, value)
        if not valid.all():
            if not self.drop_invalid:
                self._refuse(group, value, in_plan, int(np.argmin(valid)), rows_before)
            group, value = _part(group, valid), value[valid]
        block = self._placed(workspace, group, value)
        self._clip(block, self._doubtful(block))
        return block

    def _placed(self, workspace: _Workspace, group: Column, value: Column) -> _Block:
        """The distances of reports from the low ends of their domains, in cells."""
        block = workspace.block(len(value))
        np.copyto(block.group, group, casting="unsafe")
        np.copyto(block.value, value, casting="unsafe")
        np.take(self.low, block.group, out=block.spare, mode="clip")
        np.subtract(block.value, block.spare, out=block.place)
        np.take(self.per_unit, block.group, out=block.spare, mode="clip")
        np.multiply(block.place, block.spare, out=block.place)
        return block

    def _doubtful(self, block: _Block) -> IntArray:
        """The rows that may be invalid, or beyond an end by rounding."""
        place, limit = block.place, CLEARLY_INSIDE * self.plan.cells
        if self.discrete:
            return np.flatnonzero(~((place >= 0) & (place < limit) & (place == np.floor(place))))
        if not len(place) or (place.min() >= 0 and place.max() < limit):
            return np.empty(0, dtype=np.intp)
        return np.flatnonzero(~((place >= 0) & (place < limit)))

    def _clip(self, block: _Block, rows: IntArray) -> None:
        """Move rows that are beyond an end by rounding to it."""
        if len(rows):
            group = block.group[rows]
            value = np.clip(block.value[rows], self.low[group], self.high[group])
            block.value[rows] = value
            block.place[rows] = (value - self.low[group]) * self.per_unit[group]

    def _validity(self, group: Column, value: Column) -> tuple[BoolArray, BoolArray]:
        """Which rows name a group of the plan, and which of those are in its domain.

        Bounds are compared in the column's own precision, so that reports stored as float32 may
        stand exactly at the end of the domain.
        """
        in_plan = (group >= 0) & (group < self.groups)  # type: ignore[operator]
        if group.dtype.kind == "f":
            in_plan &= group == np.floor(group)
        index = np.where(in_plan, group, 0).astype(np.int64)
        kind = value.dtype if value.dtype.kind == "f" else np.dtype(np.float64)
        number: FloatArray = np.asarray(value, dtype=kind)
        low: FloatArray = np.asarray(self.low, dtype=kind)
        high: FloatArray = np.asarray(self.high, dtype=kind)
        valid = in_plan & (number >= low[index])
        valid &= number <= high[index]
        if self.discrete:
            valid &= number == np.floor(number)
        return in_plan, valid

    def _refuse(
        self, group: Column, value: Column, in_plan: BoolArray, row: int, rows_before: int
    ) -> None:
        named, exists = (np.broadcast_to(column, value.shape)[row] for column in (group, in_plan))
        if not exists:
            rule = f"group must be a whole number from 0 to {self.groups - 1}"
            raise InvalidReport(rule, named, rows_before + row + 1)
        at = int(named)
        kind = "a whole number " if self.discrete else ""
        rule = f"value must be {kind}in [{self.low[at]:g}, {self.high[at]:g}] in group {at}"
        raise InvalidReport(rule, value[row], rows_before + row + 1)

    def _locate(self, block: _Block, cells: IntArray, sums: list[int]) -> None:
        """The cell of each report, numbered over all groups; its value goes into `sums`."""
        np.copyto(cells, block.place, casting="unsafe")
        # A report at the high end would begin a cell that does not exist: it goes to the last one.
        np.minimum(cells, self.plan.cells - 1, out=cells)
        np.multiply(block.value, float(self.scale), out=block.spare)
        np.rint(block.spare, out=block.spare)
        for group, total in enumerate(self._totals(block)):
            sums[group] += total * (FIXED_POINT // self.scale)
        np.multiply(block.group, self.plan.cells, out=block.group)
        np.add(cells, block.group, out=cells)

    def _totals(self, block: _Block) -> list[int]:
        """The sum of `spare` in each group, some rows at a time."""
        totals = [0] * self.groups
        for first in range(0, block.size, self.exact_rows):
            rows = slice(first, first + self.exact_rows)
            added = np.bincount(block.group[rows], block.spare[rows], self.groups)
            totals = [old + int(new) for old, new in zip(totals, added, strict=True)]
        return totals


@dataclass(frozen=True)
class _Block:
    """Views of a workspace for as many reports as a block has."""

    group: IntArray
    value: FloatArray
    place: FloatArray
    spare: FloatArray

    @property
    def size(self) -> int:
        return len(self.value)


class _Workspace:
    """Arrays for one block, used again for the next: allocating them costs more than counting."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.group = np.empty(size, dtype=np.intp)
        self.numbers = np.empty((3, size))

    def block(self, size: int) -> _Block:
        return _Block(self.group[:size], *self.numbers[:, :size])


_workspaces = local()


def _workspace(size: int) -> _Workspace:
    """The arrays of this thread: threads that count at the same time must not share them."""
    workspace: _Workspace | None = getattr(_workspaces, "current", None)
    if workspace is None or workspace.size < size:
        workspace = _workspaces.current = _Workspace(size)
    return workspace


def _part(group: Column, rows: slice | BoolArray | IntArray) -> Column:
    """Some rows of a column of groups; one group for all stays as it is."""
    return group[rows] if group.ndim else group


def _whole(group: Column) -> bool:
    return group.dtype.kind in "iu"


def _within(group: Column, groups: int) -> bool:
    return not group.size or (int(group.min()) >= 0 and int(group.max()) < groups)
