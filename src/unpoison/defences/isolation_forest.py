"""Isolation forest defence: reports that random cuts set apart early are outliers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from unpoison.defences.base import defences
from unpoison.defences.checks import check_whole, is_number
from unpoison.defences.coarse_values import CoarseValues, whole_counts
from unpoison.defences.robust_average import InlierAverage, InlierDefence
from unpoison.errors import InvalidParameter, MissingExtra
from unpoison.types import BoolArray, FloatArray

AUTO = "auto"
AUTO_SCORE = -0.5
"""scikit-learn's (negated) score of a value that is isolated as late as an average one."""
SCORE_ROUNDING = 1e-9
"""If all values are alike, each has AUTO_SCORE up to rounding, and none is an outlier."""
BUCKETS = 1024
"""Values that the forest scores at most: more take longer, and tell nearer values apart."""


@dataclass(frozen=True)
class ForestInliers(InlierAverage):
    """Takes values for inliers that scikit-learn's IsolationForest takes for normal.

    `contamination` is `auto` (the score of the original paper, 1/2), or the share of reports to
    leave out. The forest grows on all values, or on `sample` of them, drawn from the counts; it
    judges 1024 buckets of values, each by its mean.

    >>> values, counts = np.array([0.0, 1.0, 2.0, 50.0]), np.array([90.0, 90.0, 90.0, 1.0])
    >>> ForestInliers(contamination=0.01).inliers(values, counts).tolist()
    [True, True, True, False]
    """

    contamination: float | str = AUTO
    trees: int = 100
    """Trees of the forest: scikit-learn's default."""
    sample: int = 10_000
    """Larger ones take longer, and judge hardly otherwise: forests differ as much by chance."""
    seed: int = 0

    @classmethod
    def example(cls) -> Any:
        """A tenth of the default trees and sample."""
        return cls(trees=10, sample=1000)

    def __post_init__(self) -> None:
        share = self.contamination
        if share != AUTO and not (is_number(share) and 0 < float(share) <= 0.5):
            raise InvalidParameter("contamination", "must be auto or in (0, 1/2]", repr(share))
        check_whole("trees", self.trees, 1)
        check_whole("sample", self.sample, 2)
        check_whole("seed", self.seed, 0)

    def inliers(self, values: FloatArray, counts: FloatArray) -> BoolArray:
        """The values in buckets that are not set apart early."""
        coarse = CoarseValues.of(values, counts, BUCKETS)
        scores = self._fitted_forest(coarse).score_samples(coarse.values[:, None])
        normal: BoolArray = scores >= self._lowest_normal_score(scores, coarse.counts)
        return normal[coarse.bucket_of_value]

    def _fitted_forest(self, coarse: CoarseValues) -> Any:
        rng = np.random.default_rng(self.seed)
        counts = whole_counts(coarse.counts)
        if counts.sum() > self.sample:
            counts = rng.multinomial(self.sample, coarse.counts / coarse.counts.sum())
        # Fractions of a report may all round to 0; then each bucket counts alike.
        if not counts.any():
            counts = np.ones_like(counts)
        forest = _isolation_forest()(n_estimators=self.trees, random_state=self.seed)
        return forest.fit(np.repeat(coarse.values, counts)[:, None])

    def _lowest_normal_score(self, scores: FloatArray, counts: FloatArray) -> float:
        if self.contamination == AUTO:
            return AUTO_SCORE - SCORE_ROUNDING
        order = np.argsort(scores, kind="stable")
        dropped = np.cumsum(counts[order]) <= float(self.contamination) * counts.sum()
        return float(scores[order][min(int(dropped.sum()), len(order) - 1)])


@defences.register("isolation-forest", order=3)
@dataclass(frozen=True)
class IsolationForest(ForestInliers, InlierDefence):
    """The average of the reports that an isolation forest takes for normal, from all together.

    >>> from unpoison import Plan, simulate
    >>> plan = Plan.new(epsilon=4.0, min_epsilon=4.0, low=0, high=1)
    >>> run = simulate(plan, np.full(50_000, 0.2), "point:C", 0.1, np.random.default_rng(1))
    >>> bool(IsolationForest().kept_counts(run.summary).sum() < 50_000)
    True
    """

    needs = "sklearn"

    def describe(self) -> str:
        """A sentence on what the forest keeps, and on how many reports it grew."""
        return (
            "The average of the reports that an isolation forest takes for normal. It grows on "
            f"at most {self.sample:,} reports, drawn from the counts with the seed {self.seed}."
        )


def _isolation_forest() -> Any:
    """scikit-learn's class, imported only when it is used: it is an optional dependency."""
    try:
        from sklearn.ensemble import IsolationForest as SklearnForest
    except ImportError:
        raise MissingExtra("an isolation forest", "defences") from None
    return SklearnForest
