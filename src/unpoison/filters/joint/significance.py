"""The p-value of "nobody attacks" (docs/method.md, Does anybody attack?)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy

from unpoison.filters.joint import constants
from unpoison.filters.joint.counts import JointCounts
from unpoison.filters.joint.fitting import Fit
from unpoison.filters.joint.honest_mixture import MixtureStep, most_likely_mixture
from unpoison.types import FloatArray


def nobody_p_value(counts: JointCounts, nobody: Fit, seed: int = 0) -> float:
    """Chance of counts that honest users explain as badly, if all users are honest.

    The deviance is χ² with as many degrees of freedom as it has on average. These are found by
    fitting collections of users drawn from the honest fit: x̂ ≥ 0 makes a count of parameters too
    rough. With few buckets the variance is taken from them too. Where values were added to x, all
    of these fits may have any values.

    >>> from unpoison import Plan, simulate
    >>> from unpoison.filters.joint import PoisonModel, fit
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
    if counts.has_point_values:
        return _any_values_p_value(counts, nobody, seed)
    step = MixtureStep(counts, nobody, nobody.expected, counts.transitions)
    return _p_value(nobody.deviance, counts, nobody.honest, step, seed)


def with_agreement(fitting: float, agreement: float) -> float:
    """One p-value of two tests, of which that of the groups' averages has a part of the level.

    >>> with_agreement(0.45, 1.0), round(with_agreement(0.5, 0.001), 3)
    (0.5, 0.01)
    """
    part = constants.AGREEMENT_PART
    return min(1.0, fitting / (1 - part), agreement / part)


def _any_values_p_value(counts: JointCounts, nobody: Fit, seed: int) -> float:
    """With the most likely histogram over all values in place of the fit's."""
    values = counts.extreme_values()
    anywhere = replace(counts, values=values, transitions=counts.transitions_from(values))
    mixture = most_likely_mixture(counts, nobody, anywhere.transitions)
    expected = nobody.expected if mixture is None else mixture.expected
    step = MixtureStep(counts, nobody, expected, anywhere.transitions)
    drawn_from = step.thinned(counts, mixture or step.solve(counts))
    deviance = nobody.deviance if mixture is None else mixture.deviance
    step = MixtureStep(counts, nobody, drawn_from.expected, anywhere.transitions)
    return _p_value(deviance, anywhere, drawn_from.honest, step, seed)


def _p_value(
    deviance: float, counts: JointCounts, honest: FloatArray, step: MixtureStep, seed: int
) -> float:
    """Compare a deviance with those of collections drawn from an honest histogram."""
    rng, few_buckets = np.random.default_rng(seed), counts.counts.size <= constants.FEW_BUCKETS
    replicates = (
        constants.P_VALUE_REPLICATES_FEW_BUCKETS if few_buckets else constants.P_VALUE_REPLICATES
    )
    collections = (counts.draw(honest, rng) for _ in range(replicates))
    deviances = np.array([step.solve(collection).deviance for collection in collections])
    # Reports of one user are alike, which shows where there are few buckets: a scaled χ² then.
    scale = deviances.var() / (2 * deviances.mean()) if few_buckets else 1.0
    return float(scipy.special.chdtrc(deviances.mean() / scale, deviance / scale))
