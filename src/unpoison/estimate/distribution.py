"""Distributions of values in natural units: quantiles, mixtures, and the distance of two."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from unpoison.errors import InvalidParameter
from unpoison.types import FloatArray

# The quartiles, and both tails at the shares that dashboards of latencies usually show.
QUANTILES = (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)


@dataclass(frozen=True)
class Distribution:
    """A histogram: the fraction of users between neighbouring edges, spread evenly there.

    >>> even = Distribution(edges=(0.0, 5.0, 10.0), fractions=(0.5, 0.5))
    >>> even.mean, round(even.variance, 3), even.quantile(0.25), even.cdf(7.5)
    (5.0, 8.333, 2.5, 0.75)
    """

    edges: tuple[float, ...]
    fractions: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.edges) != len(self.fractions) + 1 or not self.fractions:
            raise InvalidParameter("edges", "must be one more than fractions", len(self.edges))
        if not (np.diff(self.edges) > 0).all():
            raise InvalidParameter("edges", "must rise", "others")
        if min(self.fractions) < 0 or not np.isclose(sum(self.fractions), 1.0):
            raise InvalidParameter("fractions", "must be shares that add up to 1", "others")

    @classmethod
    def of(cls, edges: FloatArray, weights: FloatArray) -> Distribution:
        """The distribution with these weights, whatever they add up to."""
        return cls(tuple(edges.tolist()), tuple((weights / weights.sum()).tolist()))

    @property
    def mean(self) -> float:
        """Σ fraction · middle."""
        edges = np.array(self.edges)
        return float(np.array(self.fractions) @ (edges[1:] + edges[:-1]) / 2)

    @property
    def variance(self) -> float:
        """The variance of the bucket middles, plus that within the buckets."""
        edges, fractions = np.array(self.edges), np.array(self.fractions)
        middles = (edges[1:] + edges[:-1]) / 2
        return float(fractions @ ((middles - self.mean) ** 2 + np.diff(edges) ** 2 / 12))

    @property
    def cumulative(self) -> tuple[float, ...]:
        """The CDF at every edge, from 0 to 1."""
        sums = np.concatenate([[0.0], np.cumsum(self.fractions)])
        return tuple((sums / sums[-1]).tolist())

    def cdf(self, at: float) -> float:
        """The fraction of users with a value up to `at`."""
        return float(np.interp(at, self.edges, self.cumulative))

    def quantile(self, share: float) -> float:
        """The smallest value that a share of all users does not exceed."""
        if not 0 <= share <= 1:
            raise InvalidParameter("share", "must be in [0, 1]", share)
        sums = np.array(self.cumulative)
        right = min(max(int(np.searchsorted(sums, share)), 1), len(sums) - 1)
        step = sums[right] - sums[right - 1]
        within = (share - sums[right - 1]) / step if step > 0 else 0.0
        low, high = self.edges[right - 1], self.edges[right]
        return float(low + (high - low) * within)

    def to_dict(self) -> dict[str, Any]:
        """The histogram, and what is read off it."""
        return {
            **asdict(self),
            "mean": self.mean,
            "variance": self.variance,
            "quantiles": {f"{share:g}": self.quantile(share) for share in QUANTILES},
            "cdf": list(self.cumulative),
        }

    @classmethod
    def from_dict(cls, keys: dict[str, Any]) -> Distribution:
        """Read what `to_dict` wrote; all but the histogram follows from it."""
        return cls(tuple(keys["edges"]), tuple(keys["fractions"]))


def wasserstein(first: Distribution, second: Distribution) -> float:
    """The Wasserstein distance W1 = ∫|F − G|, in natural units.

    It is the least work that moves one histogram onto the other: share times distance. Both CDFs
    are linear between the edges of either, so the integral is exact.

    >>> low = Distribution((0.0, 1.0, 2.0), (1.0, 0.0))
    >>> wasserstein(low, Distribution((0.0, 1.0, 2.0), (0.0, 1.0)))
    1.0
    """
    points = np.union1d(first.edges, second.edges)
    apart = np.interp(points, first.edges, first.cumulative)
    apart -= np.interp(points, second.edges, second.cumulative)
    left, right, lengths = np.abs(apart[:-1]), np.abs(apart[1:]), np.diff(points)
    crossing = apart[:-1] * apart[1:] < 0
    total = np.where(crossing, left + right, 1.0)
    areas = np.where(crossing, (left**2 + right**2) / (2 * total), (left + right) / 2)
    return float(areas @ lengths)


def mixture(parts: Sequence[Distribution], weights: Sequence[float]) -> Distribution:
    """Several distributions as one, each by its weight.

    >>> low, high = Distribution((0.0, 1.0), (1.0,)), Distribution((0.0, 2.0), (1.0,))
    >>> mixture([low, high], [0.5, 0.5]).fractions
    (0.75, 0.25)
    """
    edges = np.unique(np.concatenate([part.edges for part in parts]))
    sums = [np.interp(edges, part.edges, part.cumulative) for part in parts]
    return Distribution.of(edges, np.diff(np.average(sums, axis=0, weights=weights)))
