"""The least error that anyone could reach: the oracle floor, and the Cramér-Rao bound."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np

from unpoison.mechanisms import CategoricalMechanism
from unpoison.plan import Plan
from unpoison.simulation.inputs import Inputs
from unpoison.types import FloatArray, IntArray

INPUT_BUCKETS = 64
OUTPUT_BUCKETS = 512
NOT_SEEN = 1e-13


TierBound = Callable[[Plan, list[int], Inputs, FloatArray], float]


def oracle_floor(
    plan: Plan,
    inputs: FloatArray,
    honest_users: FloatArray,
    tiers: IntArray | None = None,
    numbers: IntArray | None = None,
) -> float:
    """The least mean squared error of a linear combination of group means, in natural units².

    1/Σ_t reports_t/Var_t(x), with Var_t averaged over the honest inputs (normalised), plus what
    random grouping adds: S²(Σ w_t²/n_t − 1/n). Where there are tiers, `tiers` says which one each
    input is of; tiers are combined by their honest users. `numbers` says how many users have each
    input, one if it is not given.

    >>> plan = Plan.new(epsilon=1.0, min_epsilon=1.0, low=-1, high=1)
    >>> floor = oracle_floor(plan, np.zeros(10), np.array([1000.0]))
    >>> bool(np.isclose(floor, plan.group_mechanisms[0].variance(np.zeros(1))[0] / 1000))
    True
    """
    return _over_tiers(_linear, plan, inputs, honest_users, tiers, numbers)


def cramer_rao(
    plan: Plan,
    inputs: FloatArray,
    honest_users: FloatArray,
    tiers: IntArray | None = None,
    numbers: IntArray | None = None,
) -> float:
    """What no unbiased estimator goes below, linear or not, in natural units².

    The honest inputs are a histogram x of 64 buckets that only has to sum to 1. Its information is
    Σ_t reports_t·M_tᵀ diag(1/(M_t x)) M_t. The bound on the variance of the mean follows, less
    S²/n: it is the honest users' own mean that is asked for, not that of a population. For
    categories it is the bound on the squared error of a frequency, averaged over categories.

    >>> plan = Plan.new(epsilon=1.0, low=0, high=1)
    >>> inputs = np.linspace(-1, 0.5, 1000)
    >>> users = np.full(5, 2000.0)
    >>> bool(0.5 < cramer_rao(plan, inputs, users) / oracle_floor(plan, inputs, users) < 1)
    True
    """
    return _over_tiers(_efficient, plan, inputs, honest_users, tiers, numbers)


def _over_tiers(
    bound: TierBound,
    plan: Plan,
    inputs: FloatArray,
    honest_users: FloatArray,
    tiers: IntArray | None,
    numbers: IntArray | None,
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
        members = slice(None) if tiers is None else tiers == tier
        people = Inputs(inputs[members], None if numbers is None else numbers[members])
        error += float(share) ** 2 * bound(plan, groups, people, users)
    return error if plan.categorical else error * plan.unit**2


def _reports(plan: Plan, groups: list[int], users: FloatArray) -> FloatArray:
    each: FloatArray = users * np.array([plan.all_groups[group].reports for group in groups])
    return each


def _linear(plan: Plan, groups: list[int], inputs: Inputs, users: FloatArray) -> float:
    mechanisms = [plan.group_mechanisms[group] for group in groups]
    variances = np.array([inputs.mean_of(part.variance(inputs.values)) for part in mechanisms])
    precision = _reports(plan, groups, users) / variances
    noise = 1 / precision.sum()
    if plan.protocol == "baseline":
        return float(noise)
    weights = precision * noise
    present = users > 0
    grouping = np.sum(weights[present] ** 2 / users[present]) - 1 / users.sum()
    return float(noise + inputs.variance * grouping)


def _efficient(plan: Plan, groups: list[int], inputs: Inputs, users: FloatArray) -> float:
    """The bound on the mean; for categories that on their frequencies, averaged over categories."""
    of_population = _of_frequencies if plan.categorical else _of_mean
    variance, own = of_population(plan, groups, inputs, users)
    people = users[0] if plan.protocol == "baseline" else users.sum()
    return max(variance - own / float(people), 0.0)


def _of_mean(
    plan: Plan, groups: list[int], inputs: Inputs, users: FloatArray
) -> tuple[float, float]:
    """The bound for a population, and the variance of its values."""
    mechanism = plan.group_mechanisms[groups[0]]
    edges = np.linspace(mechanism.input_low, mechanism.input_high, INPUT_BUCKETS + 1)
    histogram = inputs.histogram(edges)
    present = histogram > 0
    information = _information(plan, groups, edges, histogram, users)[np.ix_(present, present)]
    middles = ((edges[1:] + edges[:-1]) / 2)[present]
    return _least_variance(information, middles), inputs.variance


def _of_frequencies(
    plan: Plan, groups: list[int], inputs: Inputs, users: FloatArray
) -> tuple[float, float]:
    """The same for frequencies.

    These can only move with their sum as it is, and so M only multiplies what moves by kept −
    other: their information is a diagonal.
    """
    edges: FloatArray = np.arange(plan.cells + 1.0) - 0.5
    frequencies = inputs.histogram(edges)
    present = frequencies[frequencies > 0]
    information = np.zeros(len(present))
    for group, reports in zip(groups, _reports(plan, groups, users), strict=True):
        part = cast(CategoricalMechanism, plan.group_mechanisms[group])
        gain = part.kept - part.other
        information += reports * gain**2 / (part.other + gain * present)
    free = 1 / information
    variance = free.sum() - (free**2).sum() / free.sum()
    own = (frequencies * (1 - frequencies)).sum()
    return float(variance) / plan.cells, float(own) / plan.cells


def _information(
    plan: Plan, groups: list[int], edges: FloatArray, histogram: FloatArray, users: FloatArray
) -> FloatArray:
    """Fisher information of the histogram, over the reports of all groups.

    Without BLAS: these matrices are small, and its threads would wait for one another.
    """
    total = np.zeros((len(histogram), len(histogram)))
    for group, reports in zip(groups, _reports(plan, groups, users), strict=True):
        part = plan.group_mechanisms[group]
        cells = np.linspace(part.output_low, part.output_high, OUTPUT_BUCKETS + 1)
        transition = part.transition(edges, cells)
        scaled = transition.dense() / np.sqrt(transition.forward(histogram))[:, None]
        total += reports * np.einsum("ik,il->kl", scaled, scaled)
    return total


def _least_variance(information: FloatArray, values: FloatArray) -> float:
    """valuesᵀ·J⁻¹·values, where the histogram's total stays as it is."""
    size = len(values)
    basis = np.linalg.qr(np.column_stack([np.ones(size), np.eye(size)[:, 1:]]))[0][:, 1:]
    strengths, directions = np.linalg.eigh(basis.T @ information @ basis)
    parts = directions.T @ (basis.T @ values)
    seen = strengths > strengths.max(initial=0.0) * NOT_SEEN
    return float(np.sum(parts[seen] ** 2 / strengths[seen]))
