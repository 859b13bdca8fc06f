"""The statistic that is estimated: a mean, a distribution, or frequencies."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from unpoison.errors import InvalidParameter
from unpoison.estimate.postprocessing import DEFAULT_POST_PROCESSING, POST_PROCESSING
from unpoison.plan import Plan
from unpoison.registry import check_name
from unpoison.types import FloatArray

MEAN, DISTRIBUTION, FREQUENCIES = "mean", "distribution", "frequencies"
STATISTICS = (MEAN, DISTRIBUTION, FREQUENCIES)


@dataclass(frozen=True)
class Statistic:
    """What to estimate: one of `STATISTICS`, and how frequencies are post-processed.

    >>> plan = Plan.new("k-rr", 1.0, categories=["tea", "coffee"])
    >>> Statistic.of(plan)
    Statistic(name='frequencies', post_processing='norm-sub')
    >>> Statistic.of(plan, "mean")
    Traceback (most recent call last):
        ...
    unpoison.errors.InvalidParameter: statistic must be frequencies for categories; received 'mean'
    """

    name: str = MEAN
    post_processing: str = DEFAULT_POST_PROCESSING

    def __post_init__(self) -> None:
        check_name("statistic", self.name, STATISTICS)
        check_name("post_processing", self.post_processing, POST_PROCESSING)

    @classmethod
    def of(
        cls, plan: Plan, name: str | None = None, post_processing: str | None = None
    ) -> Statistic:
        """The requested statistic, if the plan can answer it; by default the plan's own."""
        fitting = (FREQUENCIES,) if plan.categorical else (MEAN, DISTRIBUTION)
        requested = cls(name or fitting[0], post_processing or DEFAULT_POST_PROCESSING)
        if requested.name not in fitting:
            kind = "categories" if plan.categorical else "numbers"
            rule = f"must be {' or '.join(fitting)} for {kind}"
            raise InvalidParameter("statistic", rule, repr(requested.name))
        if post_processing is not None and not plan.categorical:
            rule = "goes with the frequencies of categories"
            raise InvalidParameter("post_processing", rule, repr(post_processing))
        return requested


def named(plan: Plan, statistic: FloatArray) -> dict[str, Any]:
    """A mean in natural units, or frequencies by category, under the names that an Estimate has.

    >>> import numpy as np
    >>> named(Plan.new(epsilon=1.0, low=0, high=100), np.array([0.5]))
    {'mean': 75.0}
    >>> drinks = Plan.new("k-rr", 1.0, categories=["tea", "milk"])
    >>> named(drinks, np.array([0.25, 0.75]))
    {'mean': nan, 'frequencies': {'tea': 0.25, 'milk': 0.75}}
    """
    if plan.categories is None:
        return {"mean": plan.natural(float(statistic[0]))}
    by_name = dict(zip(plan.categories, statistic.tolist(), strict=True))
    return {"mean": math.nan, "frequencies": by_name}
