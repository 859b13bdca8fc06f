"""Weights of group means, and the variance of their combination (Alg. 5, Thm. 6)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unpoison.estimate.options import WEIGHT_RULES
from unpoison.plan import Plan
from unpoison.registry import check_name
from unpoison.types import FloatArray


def group_weights(
    rule: str, honest_reports: FloatArray, honest_users: FloatArray, variances: FloatArray
) -> FloatArray:
    """Weights w_t of the groups' means, which add up to 1.

    `optimal`: w_t ∝ (honest reports)/Var_t, which minimises Σ w_t² Var_t/reports_t. `paper`: as
    Alg. 5 prints it, w_t ∝ 1/B_t with B_t = n̂_t·Var_t, optimal only if all n̂_t are equal.

    >>> group_weights("optimal", np.array([1.0, 3]), np.ones(2), np.ones(2)).tolist()
    [0.25, 0.75]
    """
    check_name("weights", rule, WEIGHT_RULES)
    raw = honest_reports / variances
    if rule == "paper":
        raw = 1 / (np.maximum(honest_users, np.finfo(float).tiny) * variances)
    weights: FloatArray = raw / raw.sum()
    return weights


def honest_weights(
    plan: Plan, groups: Sequence[int], reports: FloatArray, users: FloatArray, shares: FloatArray
) -> FloatArray:
    """The optimal weights of groups of which shares are attackers, by their worst variances.

    >>> plan = Plan.new(epsilon=1.0, min_epsilon=0.5, low=0, high=1)
    >>> hundred = np.array([100.0, 100.0])
    >>> honest_weights(plan, [0, 1], hundred, hundred, np.array([0.0, 1.0])).tolist()
    [1.0, 0.0]
    """
    variances = np.array([plan.group_mechanisms[group].worst_variance for group in groups])
    honest = 1 - shares
    return group_weights("optimal", reports * honest, users * honest, variances)


def combined_variance(weights: FloatArray, reports: FloatArray, variances: FloatArray) -> float:
    """Σ w_t² Var_t/reports_t: the variance of the combined mean.

    >>> reports, variances = np.array([100.0, 100.0]), np.array([1.0, 1.0])
    >>> combined_variance(np.array([0.5, 0.5]), reports, variances)
    0.005
    """
    return float(np.sum(weights**2 * variances / reports))


def minimal_variance(reports: FloatArray, variances: FloatArray) -> float:
    """[Σ reports_t/Var_t]^-1: what the optimal weights reach (Thm. 6).

    >>> minimal_variance(np.array([100.0, 100.0]), np.array([1.0, 1.0]))
    0.005
    """
    return float(1 / np.sum(reports / variances))
