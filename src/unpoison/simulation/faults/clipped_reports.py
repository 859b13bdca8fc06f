"""Clipped reports: a client moves reports into the range that it takes values to have."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unpoison.errors import InvalidParameter
from unpoison.plan import Plan
from unpoison.reports.perturbation import perturb_group
from unpoison.simulation.faults.base import Fault, faults
from unpoison.types import FloatArray


@faults.register("clipped-reports")
@dataclass(frozen=True)
class ClippedReports(Fault):
    """Reports beyond `low` or `high` are moved there; both are in report units.

    Noise needs the room beyond the range of values, and this client does not know that. Of an
    integer mechanism, whose reports are numbers of cells, 0 and 255 are what fits in a byte.

    >>> plan = Plan.new(epsilon=1.0, min_epsilon=1.0, low=0, high=1)
    >>> reports = ClippedReports().reports(plan, 0, np.zeros(1000), np.random.default_rng(1))
    >>> float(reports.min()), float(reports.max())
    (-1.0, 1.0)
    """

    low: float = -1.0
    high: float = 1.0

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise InvalidParameter("low and high", "must rise", f"{self.low:g}, {self.high:g}")

    def reports(
        self, plan: Plan, group: int, inputs: FloatArray, rng: np.random.Generator
    ) -> FloatArray:
        """Draw honest reports, and clip them."""
        return np.clip(perturb_group(plan, group, inputs, rng), self.low, self.high)
