"""A plan's values: their range or categories, in natural units and as mechanisms take them."""

from __future__ import annotations

import math
from collections import Counter
from functools import cached_property

import numpy as np

from unpoison.errors import InvalidParameter
from unpoison.mechanisms import mechanisms
from unpoison.plan.form import unit_text
from unpoison.plan.groups import PlanGroups
from unpoison.plan.lattice import nearest_shares, step_count
from unpoison.types import FloatArray

MIN_CATEGORIES = 2
"""The fewest categories: of one there is nothing to report."""


class PlanValues(PlanGroups):
    """The answers of a Plan about its values.

    >>> from unpoison.plan import Plan
    >>> plan = Plan.new(low=0, high=10)
    >>> plan.normalise_one(7.5), plan.natural(0.5), plan.natural_scale
    (0.5, 7.5, 5.0)
    """

    low: float | None
    high: float | None
    categories: tuple[str, ...] | None
    step: float | None
    unit: str | None

    @property
    def categorical(self) -> bool:
        """Whether values are categories rather than numbers."""
        return mechanisms[self.mechanism].categorical

    @property
    def bounds(self) -> tuple[float, float]:
        """The value range in natural units; of categories, their first and last number."""
        if self.low is None or self.high is None:
            return 0.0, float(self.cells - 1)
        return self.low, self.high

    @cached_property
    def steps(self) -> int | None:
        """The number of steps from low to high; None where values may lie anywhere between.

        >>> from unpoison.plan import Plan
        >>> Plan.new(low=1, high=5, step=1).steps
        4
        """
        if self.step is None:
            return None
        return step_count(*self.bounds, self.step)

    def normalise(self, values: FloatArray) -> FloatArray:
        """Natural units to the mechanism's input domain; categories are numbers already."""
        if self.categories is not None:
            return np.asarray(values, dtype=np.float64)
        return self._inputs_at(self.shares_of_range(values))

    def inputs_of(self, values: FloatArray) -> FloatArray:
        """Users' values, normalised; with a step, each counts as the nearest that users can have.

        >>> from unpoison.plan import Plan
        >>> Plan.new(low=1, high=5, step=1).inputs_of(np.array([1.0, 3.2, 9.0])).tolist()
        [-1.0, 0.0, 1.0]
        """
        if self.steps is None:
            return self.normalise(values)
        return self._inputs_at(nearest_shares(self.shares_of_range(values), self.steps))

    def shares_of_range(self, values: FloatArray) -> FloatArray:
        """Places of numbers between low (0) and high (1); those beyond are at the nearest end."""
        low, high = self.bounds
        share = (np.asarray(values, dtype=np.float64) - low) / (high - low)
        return np.clip(share, 0.0, 1.0)

    def _inputs_at(self, shares: FloatArray) -> FloatArray:
        mechanism = self.group_mechanisms[0]
        width = mechanism.input_high - mechanism.input_low
        return np.asarray(mechanism.input_low + shares * width)

    def normalise_one(self, value: float) -> float:
        """One natural value in the mechanism's input domain."""
        return float(self.normalise(np.array([value]))[0])

    def natural(self, inputs: float) -> float:
        """A normalised value in natural units."""
        (low, high), mechanism = self.bounds, self.group_mechanisms[0]
        share = (inputs - mechanism.input_low) / (mechanism.input_high - mechanism.input_low)
        return low + share * (high - low)

    @property
    def natural_scale(self) -> float:
        """The size of one normalised unit in natural units."""
        return self.natural(1.0) - self.natural(0.0)

    def check_domain(self) -> None:
        """Refuse a value range or categories that do not go with the mechanism or with a step."""
        if self.categorical:
            self._check_categories()
        elif self.categories is not None:
            raise InvalidParameter("categories", "go with k-rr only", self.mechanism)
        elif self.low is None or self.high is None:
            raise InvalidParameter("plan", "needs the value range low and high", self.mechanism)
        elif not 0 < self.high - self.low < math.inf:
            rule = "must be below high, by a finite difference"
            raise InvalidParameter("low", rule, f"{self.low} and {self.high}")
        _ = self.steps
        if self.unit is not None:
            unit_text(self.unit)

    def _check_categories(self) -> None:
        if self.low is not None or self.high is not None:
            raise InvalidParameter("low and high", "do not go with categories", self.mechanism)
        if self.step is not None:
            raise InvalidParameter("step", "does not go with categories", self.step)
        if self.unit is not None:
            raise InvalidParameter("unit", "does not go with categories", repr(self.unit))
        if self.categories is None:
            raise InvalidParameter("plan", "needs categories", self.mechanism)
        if len(self.categories) < MIN_CATEGORIES:
            raise InvalidParameter("categories", "must be at least 2 names", len(self.categories))
        repeated = [name for name, times in Counter(self.categories).items() if times > 1]
        if repeated:
            received = f"{sorted(repeated)[0]!r} twice"
            raise InvalidParameter("categories", "must be different names", received)

    def checked_cells(self) -> int:
        """The number of cells: as given, the mechanism's default, or one for each category."""
        if self.categories is None:
            return self.cells or mechanisms[self.mechanism].default_cells
        if self.cells not in (0, len(self.categories)):
            raise InvalidParameter("cells", "must be the number of categories", self.cells)
        return len(self.categories)
