"""The Piecewise Mechanism (Alg. 1)."""

from __future__ import annotations

import math

from unpoison.mechanisms.base import mechanisms
from unpoison.mechanisms.window import WindowMechanism


@mechanisms.register("piecewise", order=2)
class PiecewiseMechanism(WindowMechanism):
    """PM: input in [−1, 1], report in [−C, C] with C = (e^{ε/2}+1)/(e^{ε/2}−1), unbiased.

    >>> import numpy as np
    >>> pm = PiecewiseMechanism(epsilon=1.0)
    >>> reports = pm.perturb(np.full(100_000, 0.5), np.random.default_rng(1))
    >>> bool(abs(reports.mean() - 0.5) < 0.03 and abs(reports).max() <= pm.C)
    True
    """

    input_low, input_high = -1.0, 1.0
    unbiased = True
    device_twin = "piecewise-integer"
    outer_range = ("3C/4", "C")

    def __init__(self, epsilon: float, cells: int | None = None) -> None:
        super().__init__(epsilon, cells)
        self.C = 1.0 / math.tanh(epsilon / 4)
        self._set_window(-self.C, self.C, self.C - 1.0)

    def landmarks(self) -> dict[str, float]:
        """C, the end of the report domain."""
        return {"C": self.C, **super().landmarks()}

    def input_bucket_count(self, output_buckets: int) -> int:
        """d = ⌊d'(e^{ε/2}−1)/(e^{ε/2}+1)⌋, at least 2."""
        return max(2, math.floor(output_buckets * math.tanh(self.epsilon / 4)))
