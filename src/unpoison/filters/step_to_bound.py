"""How far a step may go before a variable that must stay positive reaches 0."""

from __future__ import annotations

import math

from unpoison.types import FloatArray


def step_to_bound(values: FloatArray, direction: FloatArray) -> float:
    """The multiple of a direction at which the first value becomes 0; infinite if none falls.

    Interior-point methods take a little less than that, so that all values stay positive.

    >>> import numpy as np
    >>> step_to_bound(np.array([1.0, 3.0]), np.array([0.5, -6.0]))
    0.5
    """
    falling = direction < 0
    return -float((values[falling] / direction[falling]).max(initial=-math.inf))


def step_within_bounds(values: FloatArray, direction: FloatArray, fraction: float = 1.0) -> float:
    """The part of a step, at most the whole, that goes that fraction of the way to a bound.

    >>> import numpy as np
    >>> values, down = np.array([1.0, 3.0]), np.array([0.0, -6.0])
    >>> step_within_bounds(values, down), step_within_bounds(values, down, 0.9)
    (0.5, 0.45)
    >>> step_within_bounds(values, -down)
    1.0
    """
    return min(1.0, fraction * step_to_bound(values, direction))
