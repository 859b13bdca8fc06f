"""Post-processing of unbiased frequencies: clipping, or projection to the simplex."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from unpoison.registry import check_name
from unpoison.types import FloatArray

DEFAULT_POST_PROCESSING = "norm-sub"


def unchanged(frequencies: FloatArray) -> FloatArray:
    """`none`: unbiased, but some may be negative.

    >>> unchanged(np.array([1.25, -0.25])).tolist()
    [1.25, -0.25]
    """
    return frequencies


def clipped(frequencies: FloatArray) -> FloatArray:
    """`clip`: each by itself into [0, 1]; they need not add up to 1 then.

    >>> clipped(np.array([1.25, -0.25])).tolist()
    [1.0, 0.0]
    """
    return np.clip(frequencies, 0.0, 1.0)


def projected(frequencies: FloatArray) -> FloatArray:
    """`norm-sub`: the nearest point of the simplex.

    The same number is taken from all, and what would be negative is 0.

    >>> projected(np.array([0.75, 0.5, -0.25])).tolist()
    [0.625, 0.375, 0.0]
    """
    falling = np.sort(frequencies)[::-1]
    excess = (np.cumsum(falling) - 1) / np.arange(1, len(falling) + 1)
    last = int(np.flatnonzero(falling > excess)[-1])
    projection = np.maximum(frequencies - excess[last], 0.0)
    # Already 1 up to rounding; the division makes the answer add up in the last digit too.
    return np.asarray(projection / projection.sum())


POST_PROCESSING: dict[str, Callable[[FloatArray], FloatArray]] = {
    "none": unchanged,
    "clip": clipped,
    "norm-sub": projected,
}


def post_process(frequencies: FloatArray, name: str = DEFAULT_POST_PROCESSING) -> FloatArray:
    """Frequencies after the named step.

    >>> post_process(np.array([1.25, -0.25]), "clip").tolist()
    [1.0, 0.0]
    """
    check_name("post_processing", name, POST_PROCESSING)
    return POST_PROCESSING[name](frequencies)


def post_process_named(
    frequencies: Mapping[str, float], name: str = DEFAULT_POST_PROCESSING
) -> dict[str, float]:
    """Post-process frequencies that are given by category.

    >>> post_process_named({"tea": 1.25, "milk": -0.25}, "clip")
    {'tea': 1.0, 'milk': 0.0}
    """
    processed = post_process(np.array(list(frequencies.values())), name)
    return dict(zip(frequencies, processed.tolist(), strict=True))
