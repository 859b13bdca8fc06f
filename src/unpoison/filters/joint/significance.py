"""The p-value of "nobody attacks" (docs/method.md, Does anybody attack?)."""

from __future__ import annotations

import numpy as np
from scipy.stats import chi2

from unpoison.filters.joint import constants
from unpoison.filters.joint.counts import JointCounts
from unpoison.filters.joint.fitting import Fit, fit


def nobody_p_value(counts: JointCounts, nobody: Fit, seed: int = 0) -> float:
    """Chance of counts that honest users explain as badly, if all users are honest.

    The deviance is χ² with as many degrees of freedom as it has on average. These are found by
    fitting collections of users drawn from the honest fit: x̂ ≥ 0 makes a count of parameters too
    rough. With few buckets the variance is taken from them too.

    >>> from unpoison import Plan, simulate
    >>> from unpoison.filters.joint import PoisonModel
    >>> plan, values = Plan.new(epsilon=0.5, low=0, high=1), np.full(50_000, 0.3)
    >>> for attack in ("none", "point:C"):
    ...     run = simulate(plan, values, attack, 0.05, np.random.default_rng(1))
    ...     counts = JointCounts.of(run.summary, range(4))
    ...     print(nobody_p_value(counts, fit(counts, PoisonModel.nobody(4, 64))) < 0.05)
    False
    True
    """
    if nobody.p_value < constants.CERTAIN_P_VALUE:
        return nobody.p_value
    rng, few_buckets = np.random.default_rng(seed), counts.counts.size <= constants.FEW_BUCKETS
    replicates = (
        constants.P_VALUE_REPLICATES_FEW_BUCKETS if few_buckets else constants.P_VALUE_REPLICATES
    )
    collections = (counts.draw(nobody.honest, rng) for _ in range(replicates))
    deviances = np.array([fit(collection, nobody.model).deviance for collection in collections])
    # Reports of one user are alike, which shows where there are few buckets: a scaled χ² then.
    scale = deviances.var() / (2 * deviances.mean()) if few_buckets else 1.0
    return float(chi2.sf(nobody.deviance / scale, deviances.mean() / scale))
