"""The oracle floor: what a linear estimator reaches when the poison is removed for it."""

from __future__ import annotations

import numpy as np

from unpoison.plan import Plan
from unpoison.types import FloatArray, IntArray


def oracle_floor(
    plan: Plan, inputs: FloatArray, honest_users: FloatArray, tiers: IntArray | None = None
) -> float:
    """The least mean squared error of a linear combination of group means, in natural units².

    1/Σ_t reports_t/Var_t(x), with Var_t averaged over the honest inputs (normalised), plus what
    random grouping adds: S²(Σ w_t²/n_t − 1/n). Where there are tiers, `tiers` says which one each
    input is of; tiers are combined by their honest users.

    >>> plan = Plan.new(epsilon=1.0, min_epsilon=1.0, low=-1, high=1)
    >>> floor = oracle_floor(plan, np.zeros(10), np.array([1000.0]))
    >>> bool(np.isclose(floor, plan.group_mechanisms[0].variance(np.zeros(1))[0] / 1000))
    True
    """
    total = honest_users.sum() / (2 if plan.protocol == "baseline" else 1)
    error = 0.0
    for tier in range(len(plan.all_tiers)):
        groups = list(plan.tier_groups(tier))
        users = honest_users[groups]
        if users.sum() == 0:
            continue
        share = (users[0] if plan.protocol == "baseline" else users.sum()) / total
        members = inputs if tiers is None else inputs[tiers == tier]
        error += float(share) ** 2 * _tier_floor(plan, groups, members, users)
    return error * plan.unit**2


def _tier_floor(plan: Plan, groups: list[int], inputs: FloatArray, users: FloatArray) -> float:
    reports = users * np.array([plan.all_groups[group].reports for group in groups])
    variances = np.array(
        [float(plan.group_mechanisms[group].variance(inputs).mean()) for group in groups]
    )
    precision = reports / variances
    noise = 1 / precision.sum()
    if plan.protocol == "baseline":
        return float(noise)
    weights = precision * noise
    present = users > 0
    grouping = np.sum(weights[present] ** 2 / users[present]) - 1 / users.sum()
    return float(noise + np.var(inputs) * grouping)
