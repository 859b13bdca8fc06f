"""Intervals of the joint filter: by the estimate whose histogram may be negative."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from unpoison import Plan, estimate, simulate
from unpoison.filters.joint import Fit, Intervals, JointCounts, PoisonModel, choose_model, fit
from unpoison.filters.joint.intervals import _around
from unpoison.simulation.population import Population
from unpoison.types import FloatArray

pytestmark = pytest.mark.usefixtures("no_cramer_rao")

PLAN = Plan.new(epsilon=2.0, min_epsilon=0.5, low=0, high=1)
COLLECTIONS = 30


def counted(plan: Plan, population: Population, seed: int = 1) -> JointCounts:
    run = simulate(plan, population, "none", 0.0, np.random.default_rng(seed))
    return JointCounts.of(run.summary, range(len(plan.groups)))


def errors(fits: list[Fit], values: FloatArray, truth: float) -> tuple[FloatArray, FloatArray]:
    """In standard errors: those of the most likely means, and of the free ones."""
    likely = [(one.mean(values) - truth) / one.standard_error(values) for one in fits]
    free = [(mean - truth) / error for mean, error in (one.free_mean(values) for one in fits)]
    return np.array(likely), np.array(free)


@pytest.mark.slow
def test_users_at_one_end_bias_the_most_likely_mean_but_not_the_free_one() -> None:
    counts = counted(PLAN, Population(np.array([1.0]), np.array([40_000])))
    rng = np.random.default_rng(1)
    highest = (np.arange(counts.inputs) == counts.inputs - 1).astype(np.float64)
    nobody = PoisonModel.nobody(*counts.counts.shape)
    fits = [fit(counts.draw(highest, rng), nobody) for _ in range(COLLECTIONS)]
    likely, free = errors(fits, counts.values, float(highest @ counts.values))
    assert likely.mean() < -0.5
    assert abs(free.mean()) < 4 / np.sqrt(COLLECTIONS)
    assert 0.6 < free.std() < 1.4


@pytest.mark.slow
def test_noise_biases_the_most_likely_mean_but_hardly_the_free_one() -> None:
    """A histogram that cannot be negative takes some noise for users of its own."""
    counts = counted(PLAN, Population(np.array([0.3]), np.array([50_000])))
    rng = np.random.default_rng(2)
    # Users up to the middle: a most likely histogram takes some noise for users beyond.
    honest = np.where(np.arange(counts.inputs) < 24, 1 / 24, 0.0)
    poison = np.full(counts.counts.shape, 0.3 / counts.counts.shape[1])
    noise = PoisonModel.even(*counts.counts.shape)
    fits = [fit(counts.draw(honest, rng, poison), noise) for _ in range(COLLECTIONS)]
    likely, free = errors(fits, counts.values, float(honest @ counts.values))
    assert abs(free.mean()) < likely.mean()
    assert abs(free.mean()) < 4 / np.sqrt(COLLECTIONS)
    assert free.std() < 1.4


@pytest.mark.slow
@pytest.mark.parametrize("end", [0.0, 1.0])
@pytest.mark.parametrize("mechanism", ["piecewise", "square-wave"])
def test_intervals_cover_users_who_are_all_at_one_end(mechanism: str, end: float) -> None:
    plan = Plan.new(mechanism, 8.0, min_epsilon=2.0, low=0, high=1)
    population, covered = Population(np.array([end]), np.array([50_000])), 0
    for seed in range(4):
        run = simulate(plan, population, "none", 0.0, np.random.default_rng(seed))
        low, high = estimate(run.summary, method="joint").interval or (1.0, 0.0)
        covered += low <= end <= high
        assert high - low > 1e-5
    # Of 95 % intervals, one in four misses in less than one run of five; two hardly ever do.
    assert covered >= 3


@pytest.mark.slow
def test_frequencies_near_zero_have_intervals_that_cover() -> None:
    names = [f"c{number}" for number in range(12)]
    plan = Plan.new("k-rr", 2.0, min_epsilon=0.5, categories=names)
    held = np.array([20_000, 10_000, 5_000, 3_000, 2_000, 20, 10, 5, 0, 0, 0, 0])
    population, hits = Population(np.array(names), held), []
    for seed in range(4):
        counts = counted(plan, population, seed)
        intervals = Intervals(choose_model(counts))
        for category, users in enumerate(held):
            low, high = intervals.mean((np.arange(12) == category).astype(np.float64))
            assert high > max(low, 0.0)
            hits.append(low <= users / held.sum() <= high)
    assert np.mean(hits) > 0.9


def test_a_middle_beyond_a_limit_leaves_a_distance_to_it() -> None:
    for middle in (-100.0, -3.0, -1.0, 0.0):
        low, high = _around(0.0, middle, 1.0, (0.0, 50.0))
        assert low <= 0 < high < 3
    far_from_limits = _around(5.0, 5.0, 0.1, (0.0, 50.0))
    assert far_from_limits == pytest.approx((5 - 0.1 * norm.isf(0.025), 5 + 0.1 * norm.isf(0.025)))
    low, high = _around(50.0, 50.5, 1.0, (0.0, 50.0))
    assert 47 < low < 50 <= high
