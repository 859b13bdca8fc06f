"""The smoothing kernel of EMS: (1/4, 1/2, 1/4) over neighbouring buckets."""

from __future__ import annotations

import numpy as np

from unpoison.types import FloatArray


def smooth(histogram: FloatArray) -> None:
    """Average each bucket with its neighbours, in place.

    The first and the last bucket count as their own outer neighbours, so the total stays.

    >>> histogram = np.array([0.0, 1.0, 0.0])
    >>> smooth(histogram); histogram.tolist()
    [0.25, 0.5, 0.25]
    """
    padded = np.concatenate([histogram[:1], histogram, histogram[-1:]])
    histogram[:] = (padded[:-2] + 2 * padded[1:-1] + padded[2:]) / 4
