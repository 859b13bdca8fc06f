"""The least error that an estimator could reach: the oracle floor, and the Cramér-Rao bound."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np

from unpoison.mechanisms import CategoricalMechanism, Mechanism
from unpoison.plan import Plan
from unpoison.simulation.honest_inputs import HonestInputs
from unpoison.types import FloatArray, IntArray

INPUT_BUCKETS = 64
"""Buckets of the honest histogram in the Cramér-Rao bound."""
OUTPUT_BUCKETS = 512
"""Report buckets of each group in it: the information of finer ones hardly differs."""
NO_INFORMATION = 1e-13
"""Directions with a smaller share of the largest information are rounding errors, and left out."""


@dataclass(frozen=True, eq=False)
class HonestUsers:
    """The honest users of a collection: their normalised inputs, and how many each group has.

    Where there are tiers, `tiers` says which one each input is of. `numbers` says how many users
    have each input, one if it is not given.

    >>> plan = Plan.new(epsilon=1.0, min_epsilon=0.5, low=0, high=1)
    >>> [tier.users for tier in HonestUsers(plan, np.zeros(10), np.array([6.0, 4.0])).present_tiers]
    [10.0]
    """

    plan: Plan
    inputs: FloatArray
    users_by_group: FloatArray
    tiers: IntArray | None = None
    numbers: IntArray | None = None

    @property
    def present_tiers(self) -> Iterator[_Tier]:
        """The tiers that have honest users."""
        for tier in range(len(self.plan.all_tiers)):
            groups = tuple(self.plan.tier_groups(tier))
            users = self.users_by_group[list(groups)]
            if users.sum() > 0:
                members = slice(None) if self.tiers is None else self.tiers == tier
                numbers = None if self.numbers is None else self.numbers[members]
                yield _Tier(self.plan, groups, HonestInputs(self.inputs[members], numbers), users)

    def combined(self, bound: Callable[[_Tier], float]) -> float:
        """A bound on independent tiers, each of which weighs by its share of the honest users."""
        present = list(self.present_tiers)
        users = sum(tier.users for tier in present)
        error = 0.0
        for tier in present:
            error += (tier.users / users) ** 2 * bound(tier)
        return error if self.plan.categorical else error * self.plan.natural_scale**2


def oracle_floor(honest: HonestUsers) -> float:
    """The least mean squared error of a linear combination of group means, in natural units².

    1/Σ_t reports_t/Var_t(x), with Var_t averaged over the honest inputs (normalised), plus what
    random grouping adds: S²(Σ w_t²/n_t − 1/n). Tiers are combined by their honest users.

    >>> plan = Plan.new(epsilon=1.0, min_epsilon=1.0, low=-1, high=1)
    >>> floor = oracle_floor(HonestUsers(plan, np.zeros(10), np.array([1000.0])))
    >>> bool(np.isclose(floor, plan.group_mechanisms[0].variance(np.zeros(1))[0] / 1000))
    True
    """
    return honest.combined(_linear_floor)


def cramer_rao(honest: HonestUsers) -> float:
    """The least variance of any unbiased estimator, linear or not, in natural units².

    The honest inputs are a histogram x of 64 buckets that only has to sum to 1. Its information is
    Σ_t reports_t·M_tᵀ diag(1/(M_t x)) M_t. The bound on the variance of the mean follows, less
    S²/n: what is estimated is the honest users' own mean, not that of a population. For
    categories it is the bound on the squared error of a frequency, averaged over categories.

    >>> plan = Plan.new(epsilon=1.0, low=0, high=1)
    >>> honest = HonestUsers(plan, np.linspace(-1, 0.5, 1000), np.full(5, 2000.0))
    >>> bool(0.5 < cramer_rao(honest) / oracle_floor(honest) < 1)
    True
    """
    return honest.combined(_cramer_rao)


@dataclass(frozen=True, eq=False)
class _Tier:
    """The honest users of one tier: their inputs, and how many report in each of its groups."""

    plan: Plan
    groups: tuple[int, ...]
    inputs: HonestInputs
    honest_users: FloatArray

    @property
    def users(self) -> float:
        """The number of honest users, counted once also where protocols have them in two groups."""
        once = np.isin(self.groups, self.plan.groups_that_count_users)
        return float(self.honest_users[once].sum())

    @property
    def everybody_in_every_group(self) -> bool:
        """Whether each user reports in all groups, as in the baseline."""
        return self.plan.groups_of_user(self.groups[0]) == self.groups

    @cached_property
    def reports(self) -> FloatArray:
        """Honest reports of each group."""
        per_user = [self.plan.all_groups[group].reports for group in self.groups]
        reports: FloatArray = self.honest_users * np.array(per_user)
        return reports

    @property
    def mechanisms(self) -> list[Mechanism]:
        """The mechanism of each group."""
        return [self.plan.group_mechanisms[group] for group in self.groups]


def _linear_floor(tier: _Tier) -> float:
    inputs, users = tier.inputs, tier.honest_users
    variances = [inputs.mean_of(mechanism.variance(inputs.values)) for mechanism in tier.mechanisms]
    precision = tier.reports / np.array(variances)
    noise = 1 / precision.sum()
    if tier.everybody_in_every_group:
        return float(noise)
    weights = precision * noise
    present = users > 0
    grouping = np.sum(weights[present] ** 2 / users[present]) - 1 / users.sum()
    return float(noise + inputs.variance * grouping)


def _cramer_rao(tier: _Tier) -> float:
    """The bound on the mean; for categories that on their frequencies, averaged over categories."""
    bound_of_population = _frequency_bound if tier.plan.categorical else _mean_bound
    variance, variance_of_values = bound_of_population(tier)
    return max(variance - variance_of_values / tier.users, 0.0)


def _mean_bound(tier: _Tier) -> tuple[float, float]:
    """The bound on the mean of a population, and the variance of its values."""
    mechanism = tier.mechanisms[0]
    edges = np.linspace(mechanism.input_low, mechanism.input_high, INPUT_BUCKETS + 1)
    histogram = tier.inputs.histogram(edges)
    present = histogram > 0
    information = _information(tier, edges, histogram)[np.ix_(present, present)]
    middles = ((edges[1:] + edges[:-1]) / 2)[present]
    return _least_variance(information, middles), tier.inputs.variance


def _frequency_bound(tier: _Tier) -> tuple[float, float]:
    """The bound on frequencies of a population, and the variance of its indicators.

    Frequencies can only move with their sum as it is, and so M only multiplies what moves by kept −
    other: their information is a diagonal.
    """
    cells = tier.plan.cells
    edges: FloatArray = np.arange(cells + 1.0) - 0.5
    frequencies = tier.inputs.histogram(edges)
    present = frequencies[frequencies > 0]
    information = np.zeros(len(present))
    for mechanism, reports in zip(tier.mechanisms, tier.reports, strict=True):
        randomised_response = cast(CategoricalMechanism, mechanism)
        gain = randomised_response.kept - randomised_response.other
        information += reports * gain**2 / (randomised_response.other + gain * present)
    unconstrained = 1 / information
    variance = unconstrained.sum() - (unconstrained**2).sum() / unconstrained.sum()
    variance_of_values = (frequencies * (1 - frequencies)).sum()
    return float(variance) / cells, float(variance_of_values) / cells


def _information(tier: _Tier, edges: FloatArray, histogram: FloatArray) -> FloatArray:
    """Fisher information of the histogram, over the reports of all groups.

    Without BLAS: these matrices are small, and its threads would wait for one another.
    """
    total = np.zeros((len(histogram), len(histogram)))
    for mechanism, reports in zip(tier.mechanisms, tier.reports, strict=True):
        cells = np.linspace(mechanism.output_low, mechanism.output_high, OUTPUT_BUCKETS + 1)
        transition = mechanism.transition(edges, cells)
        scaled = transition.dense() / np.sqrt(transition.forward(histogram))[:, None]
        total += reports * np.einsum("ik,il->kl", scaled, scaled)
    return total


def _least_variance(information: FloatArray, values: FloatArray) -> float:
    """valuesᵀ·J⁻¹·values, where the histogram's total stays as it is."""
    size = len(values)
    # An orthonormal basis of the moves that keep the total: all but the constant direction.
    basis = np.linalg.qr(np.column_stack([np.ones(size), np.eye(size)[:, 1:]]))[0][:, 1:]
    strengths, directions = np.linalg.eigh(basis.T @ information @ basis)
    components = directions.T @ (basis.T @ values)
    informed = strengths > strengths.max(initial=0.0) * NO_INFORMATION
    return float(np.sum(components[informed] ** 2 / strengths[informed]))
