"""The least error that anyone could reach: the oracle floor, and the Cramér-Rao bound."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from unpoison.plan import Plan
from unpoison.types import FloatArray, IntArray

INPUT_BUCKETS = 64
OUTPUT_BUCKETS = 512
NOT_SEEN = 1e-13
TierBound = Callable[[Plan, list[int], FloatArray, FloatArray], float]


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
    return _over_tiers(_linear, plan, inputs, honest_users, tiers)


def cramer_rao(
    plan: Plan, inputs: FloatArray, honest_users: FloatArray, tiers: IntArray | None = None
) -> float:
    """What no unbiased estimator goes below, linear or not, in natural units².

    The honest inputs are a histogram x of 64 buckets that only has to sum to 1. Its information is
    Σ_t reports_t·M_tᵀ diag(1/(M_t x)) M_t. The bound on the variance of the mean follows, less
    S²/n: it is the honest users' own mean that is asked for, not that of a population.

    >>> plan = Plan.new(epsilon=1.0, low=0, high=1)
    >>> inputs = np.linspace(-1, 0.5, 1000)
    >>> users = np.full(5, 2000.0)
    >>> bool(0.5 < cramer_rao(plan, inputs, users) / oracle_floor(plan, inputs, users) < 1)
    True
    """
    return _over_tiers(_efficient, plan, inputs, honest_users, tiers)


def _over_tiers(
    bound: TierBound,
    plan: Plan,
    inputs: FloatArray,
    honest_users: FloatArray,
    tiers: IntArray | None,
) -> float:
    """Independent tiers, each weighing by its share of the honest users."""
    baseline = plan.protocol == "baseline"
    total = honest_users.sum() / (2 if baseline else 1)
    error = 0.0
    for tier in range(len(plan.all_tiers)):
        groups = list(plan.tier_groups(tier))
        users = honest_users[groups]
        if users.sum() == 0:
            continue
        share = (users[0] if baseline else users.sum()) / total
        members = inputs if tiers is None else inputs[tiers == tier]
        error += float(share) ** 2 * bound(plan, groups, members, users)
    return error * plan.unit**2


def _reports(plan: Plan, groups: list[int], users: FloatArray) -> FloatArray:
    each: FloatArray = users * np.array([plan.all_groups[group].reports for group in groups])
    return each


def _linear(plan: Plan, groups: list[int], inputs: FloatArray, users: FloatArray) -> float:
    variances = np.array(
        [float(plan.group_mechanisms[group].variance(inputs).mean()) for group in groups]
    )
    precision = _reports(plan, groups, users) / variances
    noise = 1 / precision.sum()
    if plan.protocol == "baseline":
        return float(noise)
    weights = precision * noise
    present = users > 0
    grouping = np.sum(weights[present] ** 2 / users[present]) - 1 / users.sum()
    return float(noise + np.var(inputs) * grouping)


def _efficient(plan: Plan, groups: list[int], inputs: FloatArray, users: FloatArray) -> float:
    mechanism = plan.group_mechanisms[groups[0]]
    edges = np.linspace(mechanism.input_low, mechanism.input_high, INPUT_BUCKETS + 1)
    histogram = np.histogram(inputs, edges)[0] / len(inputs)
    present = histogram > 0
    information = _information(plan, groups, edges, histogram, users)[np.ix_(present, present)]
    middles = ((edges[1:] + edges[:-1]) / 2)[present]
    variance = _least_variance(information, middles)
    people = users[0] if plan.protocol == "baseline" else users.sum()
    return max(variance - float(np.var(inputs) / people), 0.0)


def _information(
    plan: Plan, groups: list[int], edges: FloatArray, histogram: FloatArray, users: FloatArray
) -> FloatArray:
    """Fisher information of the histogram, over the reports of all groups."""
    total = np.zeros((len(histogram), len(histogram)))
    for group, reports in zip(groups, _reports(plan, groups, users), strict=True):
        part = plan.group_mechanisms[group]
        cells = np.linspace(part.output_low, part.output_high, OUTPUT_BUCKETS + 1)
        matrix = part.transition(edges, cells).dense()
        total += reports * (matrix / (matrix @ histogram)[:, None]).T @ matrix
    return total


def _least_variance(information: FloatArray, values: FloatArray) -> float:
    """valuesᵀ·J⁻¹·values on the directions that leave the total of the histogram as it is."""
    size = len(values)
    basis = np.linalg.qr(np.column_stack([np.ones(size), np.eye(size)[:, 1:]]))[0][:, 1:]
    strengths, directions = np.linalg.eigh(basis.T @ information @ basis)
    parts = directions.T @ (basis.T @ values)
    seen = strengths > strengths.max(initial=0.0) * NOT_SEEN
    return float(np.sum(parts[seen] ** 2 / strengths[seen]))
