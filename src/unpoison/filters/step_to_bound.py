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
    if not falling.any():
        return math.inf
    return float((-values[falling] / direction[falling]).min())
