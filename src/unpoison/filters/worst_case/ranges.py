"""The honest means, frequencies and shares that are possible whatever attackers send."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from unpoison.filters.joint.counts import JointCounts
from unpoison.filters.worst_case import constants
from unpoison.filters.worst_case.bounds import Bound, most_honest, upper_bound
from unpoison.filters.worst_case.cells import ReportCells


@dataclass(frozen=True)
class PossibleRange:
    """The range of a mean or a frequency, and the standard errors of its two ends.

    `inner` is the range without room for noise: about what would be possible with any number of
    reports. It may be empty, if the reports need more attackers than were assumed.

    >>> possible = PossibleRange(0.2, 0.4, 0.01, 0.01, (0.0, 1.0))
    >>> possible.inner, tuple(round(end, 2) for end in possible.ends)
    ((0.2, 0.4), (0.18, 0.42))
    """

    low: float
    high: float
    low_error: float
    high_error: float
    limits: tuple[float, float]

    @classmethod
    def of(cls, cells: ReportCells, attackers: float) -> PossibleRange:
        """The range of a mean of the cells' values with at most that share of attackers."""
        above = upper_bound(cells, attackers)
        below = upper_bound(cells.about(-cells.values), attackers)
        limits = float(cells.values.min()), float(cells.values.max())
        return cls(-below.middle, above.middle, below.standard_error, above.standard_error, limits)

    @property
    def inner(self) -> tuple[float, float]:
        """The range without room for noise, within the limits of values."""
        return _within(self.limits, self.low, self.high)

    @property
    def ends(self) -> tuple[float, float]:
        """The range that holds the truth in 95 % of collections, whatever attackers send."""
        level = constants.LEVEL / 2
        low = -Bound(-self.low, self.low_error).with_noise(level)
        high = Bound(self.high, self.high_error).with_noise(level)
        return _within(self.limits, low, high)


def _within(limits: tuple[float, float], low: float, high: float) -> tuple[float, float]:
    """Ends moved into the limits; low stays above high where nothing is possible."""
    return max(low, limits[0]), min(high, limits[1])


@dataclass(frozen=True, eq=False)
class PossibleRanges:
    """Ranges of honest means and frequencies, if at most a share of each group attacks in any way.

    >>> import numpy as np
    >>> from unpoison import Plan, simulate
    >>> plan, rng = Plan.new(epsilon=1.0, low=-1, high=1), np.random.default_rng(1)
    >>> run = simulate(plan, np.full(50_000, 0.5), "input:-1", 0.05, rng)
    >>> ranges = PossibleRanges(JointCounts.of(run.summary, range(4)))
    >>> low, high = ranges.mean(0.05).ends
    >>> low < 0.5 < high < 1
    True
    """

    counts: JointCounts

    def mean(self, attackers: float) -> PossibleRange:
        """Ranges of the mean of numbers."""
        return PossibleRange.of(self._cells, attackers)

    def frequencies(self, attackers: float) -> list[PossibleRange]:
        """Ranges of the frequency of each category.

        >>> import numpy as np
        >>> from unpoison import Plan, simulate
        >>> plan, rng = Plan.new("k-rr", 1.0, categories=["a", "b", "c"]), np.random.default_rng(1)
        >>> run = simulate(plan, np.tile(["a", "b", "b", "c"], 10_000), "targets:a", 0.1, rng)
        >>> ranges = PossibleRanges(JointCounts.of(run.summary, range(4)))
        >>> low, high = ranges.frequencies(0.1)[0].ends
        >>> low < 0.25 < high
        True
        """
        return [
            PossibleRange.of(ReportCells.of_category(self.counts, category), attackers)
            for category in range(self.counts.inputs)
        ]

    @cached_property
    def least_attackers(self) -> float:
        """The share of users who attack at least: fewer would not explain the reports.

        It is too high in at most 1 of 100 collections.

        >>> import numpy as np
        >>> from unpoison import Plan, simulate
        >>> plan, rng = Plan.new(epsilon=1.0, low=-1, high=1), np.random.default_rng(1)
        >>> run = simulate(plan, np.full(50_000, 0.5), "point:C", 0.2, rng)
        >>> 0.15 < PossibleRanges(JointCounts.of(run.summary, range(4))).least_attackers < 0.2
        True
        """
        return max(1 - self._most_honest.with_noise(constants.LEAST_LEVEL), 0.0)

    @property
    def enough_attackers(self) -> float:
        """A share of attackers that explains the reports, as far as noise lets that be told.

        >>> import numpy as np
        >>> from unpoison import Plan, simulate
        >>> plan, rng = Plan.new(epsilon=1.0, low=-1, high=1), np.random.default_rng(1)
        >>> run = simulate(plan, np.full(50_000, 0.5), "noise", 0.2, rng)
        >>> PossibleRanges(JointCounts.of(run.summary, range(4))).enough_attackers < 0.1
        True
        """
        return max(1 - self._most_honest.with_noise(1 - constants.LEVEL), 0.0)

    @cached_property
    def _most_honest(self) -> Bound:
        return most_honest(self._cells)

    @cached_property
    def _cells(self) -> ReportCells:
        """Buckets of numbers, or all categories."""
        if self.counts.buckets[0].mechanism.categorical:
            return ReportCells.of_categories(self.counts)
        return ReportCells.of_numbers(self.counts)
