"""Boxplot: reports outside Tukey's fences are outliers."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from unpoison.defences.base import defences
from unpoison.defences.by_value import Judging, KeepingByValue
from unpoison.defences.checks import is_number
from unpoison.errors import InvalidParameter
from unpoison.types import BoolArray, FloatArray


@dataclass(frozen=True)
class Fences(Judging):
    """Trusts values in [Q1 − f·IQR, Q3 + f·IQR], with f the `factor`.

    >>> values, counts = np.array([0.0, 1.0, 2.0, 50.0]), np.array([10.0, 10.0, 10.0, 1.0])
    >>> Fences().trusted(values, counts).tolist()
    [True, True, True, False]
    """

    factor: float = 1.5

    def __post_init__(self) -> None:
        if not is_number(self.factor) or self.factor < 0:
            raise InvalidParameter("factor", "must be a number, not negative", repr(self.factor))

    def trusted(self, values: FloatArray, counts: FloatArray) -> BoolArray:
        """Those between the fences."""
        first, third = quantiles(values, counts, (0.25, 0.75))
        reach = self.factor * (third - first)
        between: BoolArray = (values >= first - reach) & (values <= third + reach)
        return between


@defences.register("boxplot", order=3)
@dataclass(frozen=True)
class Boxplot(Fences, KeepingByValue):
    """The average of the reports between Tukey's fences, drawn around all of them together.

    >>> from unpoison import Plan, simulate
    >>> from unpoison.defences import Ostrich
    >>> plan = Plan.new(epsilon=4.0, min_epsilon=4.0, low=0, high=1)
    >>> run = simulate(plan, np.full(50_000, 0.2), "point:C", 0.1, np.random.default_rng(1))
    >>> round(Ostrich().mean(run.summary), 1), round(Boxplot().mean(run.summary), 1)
    (-0.4, -0.7)
    """

    def describe(self) -> str:
        """What was cut."""
        return (
            f"The average of the reports within {self.factor:g} interquartile ranges of the "
            "quartiles: poison that is no outlier stays in."
        )


def quantiles(values: FloatArray, counts: FloatArray, shares: tuple[float, ...]) -> list[float]:
    """Quantiles of values of which there are `counts`, interpolated as NumPy does.

    >>> quantiles(np.array([3.0, 1.0]), np.array([2, 3]), (0.5, 0.625, 0.75))
    [1.0, 2.0, 3.0]
    """
    order = np.argsort(values, kind="stable")
    up_to = np.cumsum(counts[order])
    last = max(float(up_to[-1]) - 1, 0.0)

    def ranked(rank: float) -> float:
        place = min(int(np.searchsorted(up_to, rank, side="right")), len(order) - 1)
        return float(values[order[place]])

    found = []
    for share in shares:
        below = math.floor(share * last)
        low, high = ranked(below), ranked(min(below + 1, last))
        found.append(low + (high - low) * (share * last - below))
    return found
