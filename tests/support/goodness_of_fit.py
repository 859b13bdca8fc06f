"""χ² tests of counts, with a level at which a right answer is almost never refused."""

from __future__ import annotations

import numpy as np
from scipy.stats import chi2

from unpoison.types import FloatArray, IntArray

ALMOST_NEVER = 1e-6


def p_value(counts: IntArray, expected: FloatArray) -> float:
    """The p-value of counts; none may be where none is expected."""
    seen = expected > 0
    assert not counts[~seen].any()
    distance = ((counts - expected)[seen] ** 2 / expected[seen]).sum()
    return float(chi2.sf(distance, seen.sum() - 1)) if seen.sum() > 1 else 1.0


def pooled_p_value(counts: IntArray, expected: FloatArray, least: float = 50.0) -> float:
    """The p-value of counts whose neighbours are added up until all expect at least so many."""
    bin_of_cell = (np.cumsum(expected) // least).astype(int)
    observed = np.bincount(bin_of_cell, counts)
    awaited = np.bincount(bin_of_cell, expected).astype(np.float64)
    return p_value(observed.astype(np.int64)[awaited > 0], awaited[awaited > 0])
