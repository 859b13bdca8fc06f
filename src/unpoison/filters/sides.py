"""The two sides of the report domain, and counts trimmed on one of them."""

from __future__ import annotations

import math

import numpy as np

from unpoison.mechanisms.exact import exact
from unpoison.types import FloatArray, IntArray

SIDES = ("left", "right")


def without_extremes(cell_counts: IntArray, side: str, share: float) -> FloatArray:
    """Counts with the ⌈share·N⌉ largest (side right) or smallest (left) reports taken away.

    These are the reports T of Thm. 2.

    >>> without_extremes(np.array([1, 2, 3]), "right", 0.5).tolist()
    [1.0, 2.0, 0.0]
    """
    counts = cell_counts.astype(np.float64)
    if side == "left":
        counts = counts[::-1]
    total = int(cell_counts.sum())
    # Exact, because 0.1·N in floating point may be just above a whole number, and ⌈⌉ one too many.
    remaining = total - math.ceil(exact(share) * total)
    reports_before = np.concatenate([[0.0], np.cumsum(counts)[:-1]])
    trimmed: FloatArray = np.clip(remaining - reports_before, 0.0, counts)
    return trimmed[::-1] if side == "left" else trimmed
