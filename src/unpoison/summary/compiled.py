"""The kernel's inner loop, row by row; Numba compiles it where the extra `fast` is installed.

It does what `binning.Binner` does with whole arrays, in one pass and without Python's lock: worth
it from some hundred megabytes on.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from unpoison.types import FloatArray, IntArray

Loop = Callable[..., int]


class Domains(NamedTuple):
    """The report domains of all groups, as arrays by group that the loop reads.

    `least` and `most` are the ends as the column of values can express them.

    >>> ends = np.array([1.0])
    >>> Domains(-ends, ends, -ends, ends, 2 * ends, 4, 2.0**32, False).cells
    4
    """

    low: FloatArray
    high: FloatArray
    least: FloatArray
    most: FloatArray
    per_unit: FloatArray
    cells: int
    scale: float
    whole: bool


def count_rows(group: Any, value: Any, domains: Domains, counts: IntArray, sums: IntArray) -> int:
    """Count rows until one is invalid; how many were counted.

    >>> ends = np.array([1.0])
    >>> domains = Domains(-ends, ends, -ends, ends, 2 * ends, 4, 2.0**32, False)
    >>> counts, sums = np.zeros(4, dtype=np.int64), np.zeros(1, dtype=np.int64)
    >>> count_rows(np.array([0, 0, 1]), np.array([-1.0, 0.5, 0.0]), domains, counts, sums)
    2
    >>> counts.tolist(), int(sums[0]) / 2**32
    ([1, 0, 0, 1], -0.5)
    """
    low, high, least, most, per_unit, cells, scale, whole = domains
    for row in range(len(value)):
        number = group[row]
        if number < 0 or number >= len(low):
            return row
        report = value[row]
        if not (report >= least[number] and report <= most[number]):
            return row
        report = min(max(np.float64(report), low[number]), high[number])
        if whole and report != math.floor(report):
            return row
        place = int(report if whole else (report - low[number]) * per_unit[number])
        counts[number * cells + min(place, cells - 1)] += 1
        sums[number] += int(np.rint(report * scale))
    return len(value)


@cache
def compiled_loop() -> Loop | None:
    """The loop as machine code, or nothing without Numba.

    >>> loop = compiled_loop()
    >>> loop is None or callable(loop)
    True
    """
    try:
        numba = import_module("numba")
    except ImportError:
        return None
    try:
        compiled: Loop = numba.njit(nogil=True, cache=True)(count_rows)
    except RuntimeError:  # No folder to keep the machine code in.
        compiled = numba.njit(nogil=True)(count_rows)
    return compiled
