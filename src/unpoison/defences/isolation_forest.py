"""Isolation forest: reports that random cuts set apart early are outliers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from unpoison.defences.base import defences
from unpoison.defences.by_value import Coarse, Judging, KeepingByValue, whole_counts
from unpoison.defences.checks import check_whole, is_number
from unpoison.errors import InvalidParameter, MissingExtra
from unpoison.types import BoolArray, FloatArray

AUTO = "auto"
AUTO_SCORE = -0.5
BUCKETS = 1024


@dataclass(frozen=True)
class Forest(Judging):
    """Trusts values that scikit-learn's IsolationForest takes for normal.

    `contamination` is `auto` (the score of the original paper, 1/2), or the share of reports to
    leave out. The forest grows on all values, or on `sample` of them, drawn from the counts; it
    judges 1024 buckets of values, each by its mean.

    >>> values, counts = np.array([0.0, 1.0, 2.0, 50.0]), np.array([90.0, 90.0, 90.0, 1.0])
    >>> Forest(contamination=0.01).trusted(values, counts).tolist()
    [True, True, True, False]
    """

    contamination: float | str = AUTO
    trees: int = 100
    sample: int = 10_000
    seed: int = 0

    def __post_init__(self) -> None:
        given = self.contamination
        if given != AUTO and not (is_number(given) and 0 < float(given) <= 0.5):
            raise InvalidParameter("contamination", "must be auto or in (0, 1/2]", repr(given))
        check_whole("trees", self.trees, 1)
        check_whole("sample", self.sample, 2)
        check_whole("seed", self.seed, 0)

    def trusted(self, values: FloatArray, counts: FloatArray) -> BoolArray:
        """Those in buckets that are not set apart early."""
        coarse = Coarse.of(values, counts, BUCKETS)
        scores = self._grown(coarse).score_samples(coarse.values[:, None])
        trusted: BoolArray = (scores >= self._lowest(scores, coarse.counts))[coarse.places]
        return trusted

    def _grown(self, coarse: Coarse) -> Any:
        rng = np.random.default_rng(self.seed)
        counts = whole_counts(coarse.counts)
        if counts.sum() > self.sample:
            counts = rng.multinomial(self.sample, coarse.counts / coarse.counts.sum())
        if not counts.any():
            counts = np.ones_like(counts)
        forest = _kind()(n_estimators=self.trees, random_state=self.seed)
        return forest.fit(np.repeat(coarse.values, counts)[:, None])

    def _lowest(self, scores: FloatArray, counts: FloatArray) -> float:
        """The lowest score that is still normal."""
        if self.contamination == AUTO:
            # All alike have this score exactly, up to rounding.
            return AUTO_SCORE - 1e-9
        order = np.argsort(scores, kind="stable")
        dropped = np.cumsum(counts[order]) <= float(self.contamination) * counts.sum()
        return float(scores[order][min(int(dropped.sum()), len(order) - 1)])


@defences.register("isolation-forest", order=3)
@dataclass(frozen=True)
class IsolationForest(Forest, KeepingByValue):
    """The average of the reports that an isolation forest takes for normal, from all together.

    >>> from unpoison import Plan, simulate
    >>> plan = Plan.new(epsilon=4.0, min_epsilon=4.0, low=0, high=1)
    >>> run = simulate(plan, np.full(50_000, 0.2), "point:C", 0.1, np.random.default_rng(1))
    >>> bool(IsolationForest().kept(run.summary).sum() < 50_000)
    True
    """

    needs = "sklearn"

    def describe(self) -> str:
        """What was cut, and by what."""
        return (
            "The average of the reports that an isolation forest takes for normal. It grows on "
            f"at most {self.sample:,} reports, drawn from the counts with the seed {self.seed}."
        )


def _kind() -> Any:
    try:
        from sklearn.ensemble import IsolationForest as Kind
    except ImportError:
        raise MissingExtra("an isolation forest", "defences") from None
    return Kind
