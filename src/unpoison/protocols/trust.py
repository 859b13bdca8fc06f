"""What the groups say if everybody is trusted, and whether they could all be honest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import chdtrc

from unpoison.protocols.weights import group_weights
from unpoison.summary import Summary


@dataclass(frozen=True)
class Trust:
    """The unfiltered mean in natural units, and how likely honest groups differ as these do.

    >>> trust = Trust(mean=0.75, p_value=1e-12)
    >>> "groups differ" if trust.p_value < 0.001 else "groups agree"
    'groups differ'
    """

    mean: float
    p_value: float


def trust_everybody(summary: Summary, tiers: list[list[int]]) -> Trust:
    """Combine the plain averages of all groups, and test that they agree.

    Groups are random, so honest groups have one mean. The sum of squared differences, each over a
    bound of its variance (worst-case noise, the widest values), is at most χ² distributed then; so
    the p-value is an upper bound. One group alone always agrees with itself.

    >>> from unpoison import Plan, simulate
    >>> plan, values = Plan.new(epsilon=1.0, min_epsilon=0.25, low=0, high=1), np.full(3000, 0.3)
    >>> for attack in ("none", "uniform:3C/4,C"):
    ...     run = simulate(plan, values, attack, 0.3, np.random.default_rng(1))
    ...     trust_everybody(run.summary, [[0, 1, 2]]).p_value > 0.001
    True
    False
    """
    plan, users = summary.plan, summary.users
    mean = statistic = 0.0
    for groups in tiers:
        means = np.array([summary.decoded_average(group) for group in groups])
        reports = summary.reports[groups].astype(np.float64)
        noise = np.array([plan.group_mechanisms[group].worst_variance for group in groups])
        weights = group_weights("optimal", reports, users[groups], noise)
        combined = float(weights @ means)
        mean += combined * float(users[groups].sum() / users.sum())
        widest = (plan.group_mechanisms[0].input_high - plan.group_mechanisms[0].input_low) / 2
        spread = noise / reports + widest**2 / users[groups]
        centre = float((means / spread).sum() / (1 / spread).sum())
        statistic += float(((means - centre) ** 2 / spread).sum())
    degrees = sum(len(groups) - 1 for groups in tiers)
    p_value = float(chdtrc(degrees, statistic)) if degrees else 1.0
    return Trust(plan.natural(mean), p_value)
