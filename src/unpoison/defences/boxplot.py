"""Boxplot defence: reports outside Tukey's fences are outliers."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from unpoison.defences.base import defences
from unpoison.defences.checks import is_number
from unpoison.defences.robust_average import InlierAverage, InlierDefence
from unpoison.errors import InvalidParameter
from unpoison.types import BoolArray, FloatArray


@dataclass(frozen=True)
class TukeyFences(InlierAverage):
    """Takes values in [Q1 − f·IQR, Q3 + f·IQR] for inliers, with f the `factor`.

    >>> values, counts = np.array([0.0, 1.0, 2.0, 50.0]), np.array([10.0, 10.0, 10.0, 1.0])
    >>> TukeyFences().inliers(values, counts).tolist()
    [True, True, True, False]
    """

    # Tukey's own factor: of normal values 0.7 % are outside.
    factor: float = 1.5

    def __post_init__(self) -> None:
        if not is_number(self.factor) or self.factor < 0:
            raise InvalidParameter("factor", "must be a number, not negative", repr(self.factor))

    def inliers(self, values: FloatArray, counts: FloatArray) -> BoolArray:
        """The values between the fences."""
        first, third = quantiles(values, counts, (0.25, 0.75))
        reach = self.factor * (third - first)
        between: BoolArray = (values >= first - reach) & (values <= third + reach)
        return between


@defences.register("boxplot", order=3)
@dataclass(frozen=True)
class Boxplot(TukeyFences, InlierDefence):
    """The average of the reports between Tukey's fences, drawn around all of them together.

    >>> from unpoison import Plan, simulate
    >>> from unpoison.defences import Ostrich
    >>> plan = Plan.new(epsilon=4.0, min_epsilon=4.0, low=0, high=1)
    >>> run = simulate(plan, np.full(50_000, 0.2), "point:C", 0.1, np.random.default_rng(1))
    >>> round(Ostrich().mean(run.summary), 1), round(Boxplot().mean(run.summary), 1)
    (-0.4, -0.7)
    """

    def describe(self) -> str:
        """A sentence on how far from the quartiles reports are kept."""
        return (
            f"The average of the reports within {self.factor:g} interquartile ranges of the "
            "quartiles: poison that is no outlier stays in."
        )


def quantiles(values: FloatArray, counts: FloatArray, levels: tuple[float, ...]) -> list[float]:
    """Quantiles of values of which there are `counts`, interpolated as NumPy does.

    >>> quantiles(np.array([3.0, 1.0]), np.array([2, 3]), (0.5, 0.625, 0.75))
    [1.0, 2.0, 3.0]
    """
    order = np.argsort(values, kind="stable")
    cumulative = np.cumsum(counts[order])
    last_rank = max(float(cumulative[-1]) - 1, 0.0)

    def value_at(rank: float) -> float:
        index = min(int(np.searchsorted(cumulative, rank, side="right")), len(order) - 1)
        return float(values[order[index]])

    result = []
    for level in levels:
        rank = math.floor(level * last_rank)
        low, high = value_at(rank), value_at(min(rank + 1, last_rank))
        result.append(low + (high - low) * (level * last_rank - rank))
    return result
