"""The one binning kernel: reports to a partial Summary.

Every path from reports to counts goes through `Binner`, so cell edges agree bit for bit.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unpoison.errors import InvalidReport
from unpoison.plan import Plan
from unpoison.summary import FIXED_POINT, Summary
from unpoison.types import BoolArray, FloatArray, IntArray

BLOCK = 2**14
BATCH = 2**20
EXACT_FLOAT = 2**53


class Binner:
    """Counts reports of one plan, block by block, in constant memory.

    A block's sum is taken in float64 over whole numbers of 2^-32ths. While its size stays under
    2^53 that is exact in any order.

    >>> plan = Plan.new(epsilon=0.0625, low=0, high=1)
    >>> binner = Binner(plan)
    >>> binner.add(np.array([0, 0]), np.array([-1.5, 2.0]))
    >>> binner.summary().sum(0)
    0.5
    """

    def __init__(self, plan: Plan, drop_invalid: bool = False) -> None:
        self.plan = plan
        self.drop_invalid = drop_invalid
        self.groups = len(plan.all_groups)
        parts = plan.group_mechanisms
        self.discrete = parts[0].discrete
        self.low = np.array([part.output_low for part in parts])
        last = 1.0 if self.discrete else 0.0
        self.high = np.array([part.output_high - last for part in parts])
        widths = np.array([part.output_high - part.output_low for part in parts])
        self.per_unit = plan.cells / widths
        self.counts = np.zeros(self.groups * plan.cells, dtype=np.int64)
        self.sums = [0] * self.groups
        self.invalid = 0
        self.scale = 1 if self.discrete else FIXED_POINT
        largest = float(np.abs([self.low, self.high]).max()) * self.scale
        self.block = max(1, min(BLOCK, int(EXACT_FLOAT / largest)))

    def add(self, group: NDArray[np.generic], value: NDArray[np.generic]) -> None:
        """Count reports; an invalid one is an error that names its row, or is dropped.

        `group` is a column, or without dimension one group for all: then nothing has to be looked
        up report by report.
        """
        for first in range(0, len(value), BATCH):
            batch = slice(first, first + BATCH)
            self._add_batch(_part(group, batch), value[batch], first)

    def add_group(self, group: int, value: FloatArray) -> None:
        """Count reports that all belong to one group."""
        self.add(np.array(group), value)

    def summary(self) -> Summary:
        """What has been counted so far."""
        counts = self.counts.reshape(self.groups, self.plan.cells).copy()
        return Summary(self.plan, counts, tuple(self.sums), self.invalid)

    def _add_batch(
        self, group: NDArray[np.generic], value: NDArray[np.generic], rows_before: int
    ) -> None:
        """Find the cells block by block, while they are in the cache; count them all at once.

        Nothing of a batch is counted if one of its rows is refused.
        """
        cells, sums, invalid = [], [0] * self.groups, 0
        for first in range(0, len(value), self.block):
            block = slice(first, first + self.block)
            part = _part(group, block)
            known, valid = self._validity(part, value[block])
            kept = self._kept(part, value[block], known, valid, rows_before + first)
            cells.append(self._cells(*kept, sums))
            invalid += len(valid) - len(kept[1])
        self.counts += np.bincount(np.concatenate(cells), minlength=len(self.counts))
        self.sums = [old + new for old, new in zip(self.sums, sums, strict=True)]
        self.invalid += invalid

    def _kept(
        self,
        group: NDArray[np.generic],
        value: NDArray[np.generic],
        known: BoolArray,
        valid: BoolArray,
        rows_before: int,
    ) -> tuple[IntArray, FloatArray]:
        """The valid rows of a block; the others are refused or left out."""
        if not valid.all():
            if not self.drop_invalid:
                self._refuse(group, value, known, int(np.argmin(valid)), rows_before)
            group, value = _part(group, valid), value[valid]
        return group.astype(np.int64), value.astype(np.float64)

    def _validity(
        self, group: NDArray[np.generic], value: NDArray[np.generic]
    ) -> tuple[BoolArray, BoolArray]:
        """Which rows name a group of the plan, and which of those are in its domain.

        Bounds are compared in the column's own precision, so that reports stored as float32 may
        stand exactly at the end of the domain.
        """
        known = (group >= 0) & (group < self.groups)  # type: ignore[operator]
        if group.dtype.kind == "f":
            known &= group == np.floor(group)
        index = np.where(known, group, 0).astype(np.int64)
        kind = value.dtype if value.dtype.kind == "f" else np.dtype(np.float64)
        number = value.astype(kind)
        valid = known & (number >= self.low.astype(kind)[index])
        valid &= number <= self.high.astype(kind)[index]
        if self.discrete:
            valid &= number == np.floor(number)
        return known, valid

    def _refuse(
        self,
        group: NDArray[np.generic],
        value: NDArray[np.generic],
        known: BoolArray,
        row: int,
        rows_before: int,
    ) -> None:
        named, exists = (np.broadcast_to(each, value.shape)[row] for each in (group, known))
        if not exists:
            rule = f"group must be a whole number from 0 to {self.groups - 1}"
            raise InvalidReport(rule, named, rows_before + row + 1)
        at = int(named)
        whole = "a whole number " if self.discrete else ""
        rule = f"value must be {whole}in [{self.low[at]:g}, {self.high[at]:g}] in group {at}"
        raise InvalidReport(rule, value[row], rows_before + row + 1)

    def _cells(self, group: IntArray, value: FloatArray, sums: list[int]) -> IntArray:
        """The cell of each report, numbered over all groups; its value goes into `sums`."""
        value = np.clip(value, self.low[group], self.high[group])
        fixed = value if self.discrete else np.rint(value * self.scale)
        if group.ndim:
            totals = np.bincount(group, weights=fixed, minlength=self.groups)
        else:
            totals = np.where(np.arange(self.groups) == group, fixed.sum(), 0.0)
        for each, total in enumerate(totals):
            sums[each] += int(total) * (FIXED_POINT // self.scale)
        place = value if self.discrete else (value - self.low[group]) * self.per_unit[group]
        cell: IntArray = place.astype(np.int64)
        np.minimum(cell, self.plan.cells - 1, out=cell)
        cell += group * self.plan.cells
        return cell


def _part(group: NDArray[np.generic], rows: slice | BoolArray) -> NDArray[np.generic]:
    """Some rows of a column of groups; one group for all stays as it is."""
    return group[rows] if group.ndim else group
