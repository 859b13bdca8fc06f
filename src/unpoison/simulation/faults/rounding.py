"""Rounding: a client keeps few decimals of a report."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unpoison.plan import Plan
from unpoison.reports.perturbation import perturb_group
from unpoison.simulation.faults.base import Fault, faults
from unpoison.types import FloatArray


@faults.register("rounding")
@dataclass(frozen=True)
class Rounding(Fault):
    """Reports are rounded to so many `decimals`; below 0, to tens, hundreds and so on.

    Of an integer mechanism, whose reports are numbers of cells, only that makes a difference.

    >>> plan = Plan.new(epsilon=1.0, min_epsilon=1.0, low=0, high=1)
    >>> reports = Rounding(1).reports(plan, 0, np.zeros(3), np.random.default_rng(1))
    >>> bool((reports == reports.round(1)).all())
    True
    """

    decimals: int = 1

    def reports(
        self, plan: Plan, group: int, inputs: FloatArray, rng: np.random.Generator
    ) -> FloatArray:
        """Draw honest reports, and round them."""
        return np.round(perturb_group(plan, group, inputs, rng), self.decimals)
