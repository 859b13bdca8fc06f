"""The answer of all reports without a filter, and a test that honest groups would agree."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import scipy

from unpoison.estimate.honest_reports import mean_of
from unpoison.estimate.postprocessing import post_process_named, projected
from unpoison.estimate.statistic import Statistic
from unpoison.mechanisms import CategoricalMechanism
from unpoison.protocols.weights import group_weights
from unpoison.summary import Summary
from unpoison.types import FloatArray

REWEIGHTINGS = 3
"""Times that frequencies are fitted, each with the variances of the fit before. A fourth fit
changes the p-value by less than 10⁻⁵, the third one by up to 10⁻³."""


@dataclass(frozen=True)
class UnfilteredAnswer:
    """The unfiltered answer in natural units, and how likely honest groups differ as these do.

    >>> answer = UnfilteredAnswer(mean=0.75, p_value=1e-12)
    >>> "groups differ" if answer.p_value < 0.001 else "groups agree"
    'groups differ'
    """

    mean: float
    p_value: float
    frequencies: dict[str, float] | None = None

    def post_processed(self, statistic: Statistic) -> UnfilteredAnswer:
        """A copy with frequencies that a population can have; a mean stays as it is."""
        if self.frequencies is None:
            return self
        processed = post_process_named(self.frequencies, statistic.post_processing)
        return replace(self, frequencies=processed)

    def named(self) -> dict[str, Any]:
        """The answer under the name that an Estimate's fit has for it."""
        if self.frequencies is None:
            return {"unfiltered_mean": self.mean}
        return {"unfiltered_frequencies": self.frequencies}


def unfiltered_answer(summary: Summary, tiers: list[list[int]]) -> UnfilteredAnswer:
    """Combine the plain averages (frequencies) of all groups, and test that they agree.

    Groups are random, so honest groups have one mean. The sum of squared differences, each over a
    bound of its variance (worst-case noise, the widest values), is at most χ² distributed then; so
    the p-value is an upper bound. One group alone always agrees with itself.

    >>> from unpoison import Plan, simulate
    >>> plan, values = Plan.new(epsilon=1.0, min_epsilon=0.25, low=0, high=1), np.full(3000, 0.3)
    >>> for attack in ("none", "uniform:3C/4,C"):
    ...     run = simulate(plan, values, attack, 0.3, np.random.default_rng(1))
    ...     unfiltered_answer(run.summary, [[0, 1, 2]]).p_value > 0.001
    True
    False
    """
    plan, users = summary.plan, summary.users
    together = _frequencies if plan.categorical else _mean
    answers = [together(summary, groups) for groups in tiers]
    shares = np.array([users[groups].sum() for groups in tiers]) / users.sum()
    answer = sum(share * own for share, (own, _) in zip(shares, answers, strict=True))
    degrees = sum((len(groups) - 1) * _freedom(summary) for groups in tiers)
    apart = sum(statistic for _, statistic in answers)
    p_value = float(scipy.special.chdtrc(degrees, apart)) if degrees else 1.0
    if plan.categories is None:
        return UnfilteredAnswer(plan.natural(float(answer[0])), p_value)
    frequencies = dict(zip(plan.categories, answer.tolist(), strict=True))
    return UnfilteredAnswer(math.nan, p_value, frequencies)


def _freedom(summary: Summary) -> int:
    """The degrees of freedom in which two groups can differ."""
    return summary.plan.cells - 1 if summary.plan.categorical else 1


def _mean(summary: Summary, groups: list[int]) -> tuple[FloatArray, float]:
    """The combined average, normalised, and how far the groups' own are from one another."""
    mechanisms, users = summary.plan.group_mechanisms, summary.users[groups]
    means = np.array([summary.decoded_average(group) for group in groups])
    reports = summary.reports[groups].astype(np.float64)
    noise = np.array([mechanisms[group].worst_variance for group in groups])
    weights = group_weights("optimal", reports, users, noise)
    # No values in a range spread more than half of it: an upper bound of what grouping adds.
    widest = (mechanisms[0].input_high - mechanisms[0].input_low) / 2
    spread = noise / reports + widest**2 / users
    centre = float((means / spread).sum() / (1 / spread).sum())
    apart = float(((means - centre) ** 2 / spread).sum())
    if mechanisms[0].unbiased:
        return np.array([weights @ means]), apart
    return np.array([mean_of(summary.plan, groups, summary.counts[groups])]), apart


def _frequencies(summary: Summary, groups: list[int]) -> tuple[FloatArray, float]:
    """The combined frequencies, and how far the groups are from any that they could share, by χ².

    A share is expected to be e = other + (kept − other)·f. The r reports of one user are about one
    value, which inflates the variance of shares by at most 1 + (r − 1)(kept − other). The variance
    is taken from the e of an earlier fit, not from the shares: of few reports these are 0 or far
    off, and honest groups would seem to differ.
    """
    plan = summary.plan
    mechanisms = [cast(CategoricalMechanism, plan.group_mechanisms[group]) for group in groups]
    per_user = np.array([plan.all_groups[group].reports for group in groups])[:, None]
    other = np.array([mechanism.other for mechanism in mechanisms])[:, None]
    gain = np.array([mechanism.kept - mechanism.other for mechanism in mechanisms])[:, None]
    counts = summary.counts[groups].astype(np.float64)
    reports = counts.sum(axis=1, keepdims=True)
    shares = counts / reports
    fitted = np.full(plan.cells, 1 / plan.cells)
    for _ in range(REWEIGHTINGS):
        expected = other + gain * projected(fitted)
        precision = reports / (expected * (1 + (per_user - 1) * gain))
        slopes = (precision * gain**2).sum(axis=0)
        free = (precision * gain * (shares - other)).sum(axis=0) / slopes
        fitted = free - (free.sum() - 1) / slopes / (1 / slopes).sum()
    apart = float((precision * (shares - other - gain * fitted) ** 2).sum())
    noise = np.array([mechanism.worst_variance for mechanism in mechanisms])
    weights = group_weights("optimal", reports[:, 0], summary.users[groups], noise)
    return weights @ ((shares - other) / gain), apart
