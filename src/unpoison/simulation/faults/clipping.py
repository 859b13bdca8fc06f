"""Clipping: a client takes the range of values for narrower than it is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unpoison.errors import InvalidParameter
from unpoison.plan import Plan
from unpoison.reports.perturbation import perturb_group
from unpoison.simulation.faults.base import Fault, faults
from unpoison.types import FloatArray


@faults.register("clipping")
@dataclass(frozen=True)
class Clipping(Fault):
    """Values beyond `low` or `high` are moved there, on a scale from -1 (lowest) to 1 (highest).

    >>> plan = Plan.new(epsilon=8.0, min_epsilon=8.0, low=0, high=100)
    >>> rng = np.random.default_rng(1)
    >>> round(float(Clipping(0.0, 0.5).reports(plan, 0, np.full(10_000, -1.0), rng).mean()), 1)
    0.0
    """

    low: float = -0.5
    """Lower end that clients clip to; by default the range is taken for half as wide as it is."""
    high: float = 0.5
    """Upper end that clients clip to: as far from the middle as `low`."""

    def __post_init__(self) -> None:
        if not -1 <= self.low < self.high <= 1:
            rule = "must rise, from -1 to 1"
            raise InvalidParameter("low and high", rule, f"{self.low:g}, {self.high:g}")

    def reports(
        self, plan: Plan, group: int, inputs: FloatArray, rng: np.random.Generator
    ) -> FloatArray:
        """Honest reports of the moved values."""
        mechanism = plan.group_mechanisms[group]
        middle = (mechanism.input_low + mechanism.input_high) / 2
        half = (mechanism.input_high - mechanism.input_low) / 2
        moved = np.clip(inputs, middle + self.low * half, middle + self.high * half)
        return perturb_group(plan, group, moved, rng)
