"""The Square Wave mechanism (Section V-D)."""

from __future__ import annotations

import math

from unpoison.mechanisms.base import mechanisms
from unpoison.mechanisms.window import WindowMechanism

SERIES_BELOW = 0.1
"""Below this ε the terms of b cancel, and digits are lost like ε²; its series loses none."""
SERIES_TERMS = 16
"""The first term that is left out is under 10^-26: nothing in double precision."""


def square_wave_half_width(epsilon: float) -> float:
    """b = (εe^ε − e^ε + 1)/(2e^ε(e^ε − 1 − ε)); by its series where the terms would cancel.

    >>> round(square_wave_half_width(1.0), 6), round(square_wave_half_width(1e-9), 6)
    (0.256083, 0.5)
    """
    if epsilon >= SERIES_BELOW:
        numerator = epsilon * math.exp(epsilon) - math.expm1(epsilon)
        rest = math.expm1(epsilon) - epsilon
    else:
        orders = range(2, SERIES_TERMS)
        numerator = sum(epsilon ** (n - 2) * (n - 1) / math.factorial(n) for n in orders)
        rest = sum(epsilon ** (n - 2) / math.factorial(n) for n in orders)
    return numerator / (2 * math.exp(epsilon) * rest)


@mechanisms.register("square-wave", order=3)
class SquareWaveMechanism(WindowMechanism):
    """SW: input in [0, 1], report in [−b, 1+b]; reports are biased until decoded.

    >>> import numpy as np
    >>> sw = SquareWaveMechanism(epsilon=1.0)
    >>> reports = sw.perturb(np.full(100_000, 0.3), np.random.default_rng(1))
    >>> bool(abs(sw.decode(reports).mean() - 0.3) < 0.02)
    True
    """

    input_low, input_high = 0.0, 1.0
    unbiased = False
    device_twin = "square-wave-integer"
    outer_range = ("1+b/2", "1+b")

    def __init__(self, epsilon: float, cells: int | None = None) -> None:
        super().__init__(epsilon, cells)
        self.b = square_wave_half_width(epsilon)
        self._set_window(-self.b, 1.0 + self.b, 2.0 * self.b)

    def landmarks(self) -> dict[str, float]:
        """b, the half-width of the wave."""
        return {"b": self.b, **super().landmarks()}

    def input_bucket_count(self, output_buckets: int) -> int:
        """d = ⌊d'/(1+2b)⌋, at least 2."""
        return max(2, math.floor(output_buckets / (1 + 2 * self.b)))
