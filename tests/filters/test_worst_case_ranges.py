"""Ranges that hold whatever attackers send: as narrow as a linear program's, and true under it."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy.optimize import linprog

from unpoison import Plan, simulate
from unpoison.filters.joint import JointCounts
from unpoison.filters.worst_case import PossibleRange, PossibleRanges
from unpoison.filters.worst_case.cells import ReportCells
from unpoison.simulation.population import Population
from unpoison.types import FloatArray

pytestmark = pytest.mark.slow

NAMES = ("a", "b", "c", "d")
HONEST = np.array([0.4, 0.3, 0.2, 0.1])


@cache
def quiet_counts(epsilon: float = 1.0, users: int = 50_000) -> JointCounts:
    plan = Plan.new(epsilon=epsilon, min_epsilon=epsilon / 4, low=-1, high=1)
    values = np.clip(np.random.default_rng(1).normal(0.2, 0.3, users), -1, 1)
    run = simulate(plan, Population.of(values), "none", 0.0, np.random.default_rng(2))
    return JointCounts.of(run.summary, range(len(plan.groups)))


@cache
def honest_histogram(inputs: int) -> FloatArray:
    centres = np.linspace(-1, 1, inputs - 2)
    density = np.append(np.exp(-((centres - 0.2) ** 2) / 0.18), [0.0, 0.0])
    histogram: FloatArray = density / density.sum()
    return histogram


def imitating_poison(counts: JointCounts, share: float, sign: int) -> FloatArray:
    """Poison after which reports are those of other honest users, as far to one side as can be."""
    rows, values = counts.stacked_transitions, counts.values
    honest = (1 - share) * rows @ honest_histogram(counts.inputs)
    program = linprog(-sign * values, -rows, -honest, np.ones((1, len(values))), [1.0])
    assert program.x is not None
    poison = (rows @ program.x - honest).clip(0).reshape(counts.counts.shape)
    scaled: FloatArray = poison * (share / poison.sum(axis=1, keepdims=True))
    return scaled


def possible_mean(counts: JointCounts, share: float) -> PossibleRange:
    return PossibleRanges(counts).mean(share)


def least_attackers(counts: JointCounts) -> float:
    return PossibleRanges(counts).least_attackers


def least_value(aim: FloatArray, cells: FloatArray, limits: FloatArray) -> float:
    """The least value of a linear program over histograms whose reports stay within limits."""
    program = linprog(aim, cells, limits, np.ones((1, len(aim))), [1.0])
    assert program.fun is not None
    return float(program.fun)


def true_mean(counts: JointCounts) -> float:
    return float(honest_histogram(counts.inputs) @ counts.values)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("share", [0.05, 0.25])
@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_the_truth_is_in_the_range_when_attackers_imitate(
    epsilon: float, share: float, sign: int
) -> None:
    counts = quiet_counts(epsilon)
    poison, truth = imitating_poison(counts, share, sign), true_mean(counts)
    held = []
    for seed in range(8):
        collection = counts.draw(
            honest_histogram(counts.inputs), np.random.default_rng(seed), poison
        )
        low, high = possible_mean(collection, share).ends
        held.append(low <= truth <= high)
    assert sum(held) >= 7


@pytest.mark.parametrize("share", [0.02, 0.1, 0.3])
def test_without_noise_the_range_is_nearly_that_of_the_linear_program(share: float) -> None:
    counts = quiet_counts()
    many = 1e10
    expected = counts.transitions @ honest_histogram(counts.inputs)
    exact = replace(counts, counts=expected * many, users=np.full(len(expected), many))
    cells = ReportCells.of_numbers(exact)
    limits = cells.observed / (1 - share) + 1e-6
    low = least_value(cells.values, cells.transitions, limits)
    high = -least_value(-cells.values, cells.transitions, limits)
    possible = possible_mean(exact, share)
    assert possible.low <= low + 0.005
    assert possible.high >= high - 0.005
    assert possible.high - possible.low < high - low + 0.05


def test_the_ends_scatter_as_their_standard_errors_say() -> None:
    counts = quiet_counts()
    ranges = [
        possible_mean(counts.draw(honest_histogram(counts.inputs), np.random.default_rng(s)), 0.02)
        for s in range(24)
    ]
    for ends, errors in (
        ([r.low for r in ranges], [r.low_error for r in ranges]),
        ([r.high for r in ranges], [r.high_error for r in ranges]),
    ):
        assert 0.7 < np.std(ends) / np.mean(errors) < 1.3
    truth = true_mean(counts)
    # Bounds, not estimates: without the correction for the choice of λ both would be beyond.
    assert np.mean([r.low for r in ranges]) < truth < np.mean([r.high for r in ranges])


@pytest.mark.parametrize("share", [0.05, 0.3])
def test_categories_have_the_range_of_the_linear_program(share: float) -> None:
    plan = Plan.new("k-rr", 1.0, min_epsilon=0.5, categories=NAMES)
    population = Population(np.array(NAMES), np.array([400, 300, 200, 100]))
    counts = JointCounts.of(simulate(plan, population, "none", 0.0).summary, range(2))
    many = 1e10
    exact = replace(counts, counts=counts.transitions @ HONEST * many, users=np.full(2, many))
    for category, possible in enumerate(PossibleRanges(exact).frequencies(share)):
        aim = (np.arange(4) == category).astype(float)
        limits = exact.observed.ravel() / (1 - share)
        low, high = (
            sign * least_value(sign * aim, exact.stacked_transitions, limits) for sign in (1, -1)
        )
        assert possible.inner == pytest.approx((low, high), abs=0.005)


def test_nobody_is_said_to_attack_who_does_not() -> None:
    counts = quiet_counts(users=20_000)
    honest = honest_histogram(counts.inputs)
    claims = [
        least_attackers(counts.draw(honest, np.random.default_rng(seed))) for seed in range(24)
    ]
    assert sum(claim > 0 for claim in claims) <= 2


@pytest.mark.parametrize("share", [0.1, 0.3])
def test_the_least_share_comes_near_the_true_one_and_not_above(share: float) -> None:
    counts = quiet_counts()
    poison = np.zeros(counts.counts.shape)
    poison[:, -1] = share
    honest = honest_histogram(counts.inputs)
    claims = [
        least_attackers(counts.draw(honest, np.random.default_rng(seed), poison))
        for seed in range(10)
    ]
    assert sum(claim > share for claim in claims) <= 1
    assert min(claims) > share - 0.05


def test_reports_of_one_user_vary_together() -> None:
    """The covariance is that of users who send several reports, not of independent reports."""
    counts = quiet_counts(4.0, 20_000)
    cells = ReportCells.of_numbers(counts)
    histogram = np.zeros(len(cells.values))
    histogram[[0, -1]] = 0.5
    honest = np.zeros(counts.inputs)
    honest[-2:] = 0.5
    observed_shares = [
        ReportCells.of_numbers(counts.draw(honest, np.random.default_rng(seed))).observed
        for seed in range(100)
    ]
    values = np.arange(len(cells.values))
    expected = replace(cells, counts=cells.transitions @ histogram * cells.reports)
    covariance = expected.covariance(histogram, values, attackers=0.0)
    last = cells.groups == len(cells.users) - 1
    ratio = np.var(observed_shares, axis=0)[last].sum() / np.diag(covariance)[last].sum()
    assert ratio == pytest.approx(1, abs=0.3)
