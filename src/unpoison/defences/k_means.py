"""k-means defence (Li et al.): means of random subsets in two clusters, the larger trusted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from unpoison.defences.base import Defence, decoded_cells, defences
from unpoison.defences.checks import check_whole, is_number
from unpoison.defences.coarse_values import CoarseValues, whole_counts
from unpoison.defences.robust_average import RobustAverage
from unpoison.errors import InvalidParameter
from unpoison.summary import Summary
from unpoison.types import FloatArray, IntArray

BUCKETS = 256
"""Values that subsets are drawn from: what this costs in accuracy is at `SubsetClusters`."""
SUBSETS_AT_ONCE = 1000
"""Subsets drawn at a time: 2 MiB of counts at 256 buckets."""
HYPERGEOMETRIC_LIMIT = 10**9
"""NumPy draws without replacement from fewer values than this."""


@dataclass(frozen=True)
class SubsetClusters(RobustAverage):
    """Draws `subsets` of a share `rate` of the values each, and clusters their means.

    The mean of the larger cluster is the average; if both are as large, that of all subsets. Values
    are drawn from counts, without replacement, out of 256 buckets of values that each stand for
    their mean: a subset's mean is unbiased, and its variance is less by w²/4n at most, with w the
    width of a bucket and n the size of a subset. Of more than 10^9 values each is drawn by itself,
    so that sizes vary a little.

    >>> values, counts = np.array([0.0, 1.0]), np.array([300.0, 100.0])
    >>> bool(abs(SubsetClusters(rate=0.5).average(values, counts) - 0.25) < 0.05)
    True
    """

    subsets: int = 10_000
    """Enough: the paper's million does no better (docs/evaluation.md)."""
    rate: float = 0.1
    """The smallest that the paper tries, by which means of subsets are furthest apart."""
    seed: int = 0

    @classmethod
    def example(cls) -> Any:
        """A fiftieth of the default subsets."""
        return cls(subsets=200)

    def __post_init__(self) -> None:
        check_whole("subsets", self.subsets, 1)
        if not is_number(self.rate) or not 0 < self.rate < 1:
            raise InvalidParameter("rate", "must be in (0, 1)", repr(self.rate))
        check_whole("seed", self.seed, 0)

    def average(self, values: FloatArray, counts: FloatArray) -> float:
        """The mean of the subsets in the larger cluster."""
        return larger_cluster_mean(self.subset_means(values, counts))

    def subset_means(self, values: FloatArray, counts: FloatArray) -> FloatArray:
        """The mean of each subset."""
        coarse = CoarseValues.of(values, counts, BUCKETS)
        rng, whole = np.random.default_rng(self.seed), whole_counts(coarse.counts)
        size = max(round(self.rate * int(whole.sum())), 1)
        blocks = [
            _draw(whole, size, min(SUBSETS_AT_ONCE, self.subsets - first), rng)
            for first in range(0, self.subsets, SUBSETS_AT_ONCE)
        ]
        return np.concatenate([counts @ coarse.values / counts.sum(axis=1) for counts in blocks])


@defences.register("k-means", order=3)
@dataclass(frozen=True)
class KMeans(SubsetClusters, Defence):
    """The mean of the larger of two clusters of subsets, drawn from the reports of all groups.

    >>> from unpoison import Plan, simulate
    >>> plan = Plan.new(epsilon=1.0, min_epsilon=1.0, low=0, high=1)
    >>> run = simulate(plan, np.full(50_000, 0.3), "none", 0, np.random.default_rng(1))
    >>> bool(abs(KMeans(subsets=1000).mean(run.summary) - (-0.4)) < 0.1)
    True
    """

    def mean(self, summary: Summary) -> float:
        """The robust average of the decoded reports of all groups."""
        counts = summary.counts.ravel().astype(np.float64)
        return self.average(decoded_cells(summary).ravel(), counts)

    def describe(self) -> str:
        """A sentence on how many subsets were drawn, and of what."""
        return (
            f"The mean of the larger of two clusters of {self.subsets:,} random subsets. Reports, "
            f"not users, are drawn from the counts, with the seed {self.seed}."
        )


def larger_cluster_mean(means: FloatArray) -> float:
    """The mean of the larger of the two clusters that k-means finds; of all if both are as large.

    On a line the best two clusters are the lower and the upper part of the sorted numbers, so
    every cut is tried: this is k-means' optimum, without its random starts.

    >>> larger_cluster_mean(np.array([0.0, 9.0, 1.0, 2.0, 10.0]))
    1.0
    """
    rising = np.sort(means)
    below = np.arange(1, len(rising))
    sums = np.cumsum(rising - rising.mean())[:-1]
    # Least squares within clusters are most between them: S²/n of both parts (their sums cancel).
    between = sums**2 * (1 / below + 1 / (len(rising) - below))
    if not len(below) or between.max() <= 0:
        return float(rising.mean())
    cut = int(below[between.argmax()])
    if 2 * cut == len(rising):
        return float(rising.mean())
    return float((rising[:cut] if 2 * cut > len(rising) else rising[cut:]).mean())


def _draw(counts: IntArray, size: int, subsets: int, rng: np.random.Generator) -> IntArray:
    """The number of reports of each bucket in each subset: one row a subset."""
    total = int(counts.sum())
    if total < HYPERGEOMETRIC_LIMIT:
        return rng.multivariate_hypergeometric(counts, size, subsets, method="marginals")
    return rng.binomial(counts, size / total, (subsets, len(counts)))
