"""Distributions of values in natural units: quantiles, mixtures, and the distance of two."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from unpoison.errors import InvalidParameter
from unpoison.types import FloatArray

# The quartiles, and both tails at the shares that dashboards of latencies usually show.
QUANTILES = (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)
UNRESOLVED = 0.25
"""Part of the range from which an interval of a quantile says hardly anything: a quarter."""
Interval = tuple[float, float]


@dataclass(frozen=True)
class Distribution:
    """A histogram: the fraction of users between neighbouring edges, spread evenly there.

    `cdf_low` and `cdf_high` are 95 % intervals of the CDF at every edge, by methods that have them.
    Quantiles have intervals then, too.

    >>> even = Distribution(edges=(0.0, 5.0, 10.0), fractions=(0.5, 0.5))
    >>> even.mean, round(even.variance, 3), even.quantile(0.25), even.cdf(7.5)
    (5.0, 8.333, 2.5, 0.75)
    >>> band = Distribution(even.edges, even.fractions, (0.0, 0.25, 1.0), (0.0, 0.75, 1.0))
    >>> band.cdf_interval(5.0), [round(end, 1) for end in band.quantile_interval(0.5)]
    ((0.25, 0.75), [3.3, 6.7])
    """

    edges: tuple[float, ...]
    fractions: tuple[float, ...]
    cdf_low: tuple[float, ...] | None = None
    cdf_high: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if len(self.edges) != len(self.fractions) + 1 or not self.fractions:
            raise InvalidParameter("edges", "must be one more than fractions", len(self.edges))
        if not (np.diff(self.edges) > 0).all():
            raise InvalidParameter("edges", "must rise", "others")
        if min(self.fractions) < 0 or not np.isclose(sum(self.fractions), 1.0):
            raise InvalidParameter("fractions", "must be shares that add up to 1", "others")
        if (self.cdf_low is None) != (self.cdf_high is None):
            raise InvalidParameter("cdf_low", "must go with cdf_high", "one of them")
        for name, ends in (("cdf_low", self.cdf_low), ("cdf_high", self.cdf_high)):
            if ends is not None and not self._is_cdf(ends):
                raise InvalidParameter(name, "must rise within [0, 1], one an edge", "others")

    def _is_cdf(self, ends: tuple[float, ...]) -> bool:
        rises = bool((np.diff(ends) >= 0).all())
        return len(ends) == len(self.edges) and rises and ends[0] >= 0 and ends[-1] <= 1

    @classmethod
    def of(cls, edges: FloatArray, weights: FloatArray) -> Distribution:
        """The distribution with these weights, whatever they add up to."""
        return cls(tuple(edges.tolist()), tuple((weights / weights.sum()).tolist()))

    def with_band(self, low: FloatArray, high: FloatArray) -> Distribution:
        """A copy with 95 % intervals of the CDF at its edges, widened to hold the CDF itself.

        >>> Distribution((0.0, 1.0), (1.0,)).with_band(np.zeros(2), np.array([0.1, 0.9])).cdf_high
        (0.1, 1.0)
        """
        cumulative = np.array(self.cumulative)
        lows, highs = np.minimum(low, cumulative), np.maximum(high, cumulative)
        return replace(self, cdf_low=tuple(lows.tolist()), cdf_high=tuple(highs.tolist()))

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

    def cdf_interval(self, at: float) -> Interval | None:
        """A 95 % interval of that fraction, where the method has one."""
        if self.cdf_low is None or self.cdf_high is None:
            return None
        low, high = (np.interp(at, self.edges, ends) for ends in (self.cdf_low, self.cdf_high))
        # Everybody is within the range; at its ends, a share of users may have just that value.
        below, above = at < self.edges[0], at >= self.edges[-1]
        return (1.0 if above else 0.0 if below else float(low)), 0.0 if below else float(high)

    def quantile_interval(self, share: float) -> Interval | None:
        """A 95 % interval of a quantile: all values at which the CDF may be `share`."""
        if not 0 <= share <= 1:
            raise InvalidParameter("share", "must be in [0, 1]", share)
        if self.cdf_low is None or self.cdf_high is None:
            return None
        first = int(np.searchsorted(self.cdf_high, share))
        last = int(np.searchsorted(self.cdf_low, share, side="right")) - 1
        low = self._crossing(self.cdf_high, first - 1, share)
        return low, self._crossing(self.cdf_low, last, share)

    def _crossing(self, ends: tuple[float, ...], left: int, share: float) -> float:
        """The value at which a line of the band reaches a share, between two neighbouring edges."""
        if left < 0 or left >= len(ends) - 1:
            return self.edges[0] if left < 0 else self.edges[-1]
        within = (share - ends[left]) / (ends[left + 1] - ends[left])
        return float(self.edges[left] + (self.edges[left + 1] - self.edges[left]) * within)

    @property
    def unresolved(self) -> tuple[float, ...] | None:
        """The usual shares whose quantile may be anywhere in a quarter of the range.

        >>> even = Distribution((0.0, 5.0, 10.0), (0.5, 0.5))
        >>> band = even.with_band(np.array([0.0, 0.1, 1.0]), np.array([0.0, 0.9, 1.0]))
        >>> band.unresolved
        (0.1, 0.25, 0.5, 0.75, 0.9)
        """
        if self.cdf_low is None:
            return None
        range_width = self.edges[-1] - self.edges[0]
        widths = {share: np.ptp(self.quantile_interval(share) or ()) for share in QUANTILES}
        return tuple(share for share in QUANTILES if widths[share] > UNRESOLVED * range_width)

    def to_dict(self) -> dict[str, Any]:
        """The histogram, and what is read off it."""
        shares = {f"{share:g}": share for share in QUANTILES}
        intervals = {name: self.quantile_interval(share) for name, share in shares.items()}
        return {
            **asdict(self),
            "mean": self.mean,
            "variance": self.variance,
            "quantiles": {name: self.quantile(share) for name, share in shares.items()},
            "quantile_intervals": None if self.cdf_low is None else intervals,
            "unresolved_quantiles": None if self.cdf_low is None else self.unresolved,
            "cdf": list(self.cumulative),
        }

    @classmethod
    def from_dict(cls, keys: dict[str, Any]) -> Distribution:
        """Read what `to_dict` wrote; all but the histogram follows from it."""
        ends = (keys.get(name) for name in ("cdf_low", "cdf_high"))
        low, high = (None if of_edges is None else tuple(of_edges) for of_edges in ends)
        return cls(tuple(keys["edges"]), tuple(keys["fractions"]), low, high)


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

    Intervals are added end by end, where all parts have them: doubt about which model is true does
    not average out.

    >>> low, high = Distribution((0.0, 1.0), (1.0,)), Distribution((0.0, 2.0), (1.0,))
    >>> mixture([low, high], [0.5, 0.5]).fractions
    (0.75, 0.25)
    """
    edges = np.unique(np.concatenate([part.edges for part in parts]))
    sums = [np.interp(edges, part.edges, part.cumulative) for part in parts]
    mixed = Distribution.of(edges, np.diff(np.average(sums, axis=0, weights=weights)))
    bands = [(part.edges, part.cdf_low, part.cdf_high) for part in parts]
    lows = [np.interp(edges, own, low) for own, low, _ in bands if low is not None]
    highs = [np.interp(edges, own, high) for own, _, high in bands if high is not None]
    if len(lows) < len(parts):
        return mixed
    low, high = (np.average(ends, axis=0, weights=weights) for ends in (lows, highs))
    return mixed.with_band(low, high)
