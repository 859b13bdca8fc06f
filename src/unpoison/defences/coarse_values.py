"""Counted values put into buckets, for defences whose cost grows with the number of values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unpoison.types import FloatArray, IntArray


@dataclass(frozen=True)
class CoarseValues:
    """Values in buckets of equal width: means and counts of buckets, and the bucket of each value.

    The mean of all values stays exact; their variance loses at most a quarter of a squared width.

    >>> values, counts = np.array([0.0, 1.0, 9.0, 10.0]), np.array([1.0, 3.0, 1.0, 1.0])
    >>> coarse = CoarseValues.of(values, counts, buckets=2)
    >>> coarse.values.tolist(), coarse.counts.tolist(), coarse.bucket_of_value.tolist()
    ([0.75, 9.5], [4.0, 2.0], [0, 0, 1, 1])
    """

    values: FloatArray
    counts: FloatArray
    bucket_of_value: IntArray

    @classmethod
    def of(cls, values: FloatArray, counts: FloatArray, buckets: int) -> CoarseValues:
        """Put values into at most `buckets` buckets; those without a report are left out."""
        present = values[counts > 0]
        low, width = present.min(), np.ptp(present)
        fractions = np.clip((values - low) / (width or 1.0), 0.0, 1.0)
        bucket = np.minimum((fractions * buckets).astype(np.int64), buckets - 1)
        totals: FloatArray = np.bincount(bucket, counts, buckets).astype(np.float64)
        filled = np.flatnonzero(totals)
        means = np.bincount(bucket, counts * values, buckets)[filled] / totals[filled]
        # A value in a bucket without reports has no count either: any bucket will do.
        bucket_of_value = np.minimum(np.searchsorted(filled, bucket), len(filled) - 1)
        return cls(means, totals[filled], bucket_of_value)


def whole_counts(counts: FloatArray) -> IntArray:
    """Whole numbers near the counts, with the same total up to rounding; none is off by 1 or more.

    >>> whole_counts(np.array([0.5, 0.5, 1.0, 2.0])).tolist()
    [0, 1, 1, 2]
    """
    # Rounding the running total keeps errors from adding up, unlike rounding each count.
    whole: IntArray = np.rint(np.cumsum(counts)).astype(np.int64)
    whole[1:] -= whole[:-1].copy()
    return whole
