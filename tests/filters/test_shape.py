"""The distribution behind a joint fit: quadratic programs, extremes, smooth histograms, bands."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from unpoison import Plan, Simulation, simulate
from unpoison.filters.joint import Fit, JointCounts, PoisonModel, fit
from unpoison.filters.shape import InputGrid, cdf_band, smooth_histogram, widest_of_each_kind
from unpoison.filters.shape.extremes import Extremes
from unpoison.filters.shape.local_model import LocalModel
from unpoison.filters.shape.program import QuadraticProgram
from unpoison.simulation.population import Population
from unpoison.types import FloatArray

pytestmark = pytest.mark.usefixtures("no_cramer_rao")

USERS = 20_000
SLACK = 3.84
PLAN = Plan.new(epsilon=2.0, min_epsilon=0.5, low=0, high=1)
MODELS = {
    "nobody": ("none", PoisonModel.nobody(3, 64)),
    "alike": ("uniform:3C/4,C", PoisonModel.alike(np.arange(64) >= 48, 3)),
    "own": ("uniform:3C/4,C", PoisonModel.own(np.tile(np.arange(64) >= 47, (3, 1)))),
}
every_model = pytest.mark.parametrize("name", list(MODELS))


def values_of(shape: str, seed: int = 1) -> FloatArray:
    rng = np.random.default_rng(seed)
    if shape == "smooth":
        return rng.beta(2, 5, USERS)
    if shape == "skewed":
        return np.minimum(rng.lognormal(-2.3, 0.8, USERS), 1.0)
    if shape == "spikes":
        return rng.choice([0.11, 0.3, 0.55, 0.93], USERS, p=[0.2, 0.4, 0.25, 0.15])
    if shape == "zeros":
        return np.where(rng.random(USERS) < 0.5, 0.0, rng.beta(2, 3, USERS))
    return rng.random(USERS)


def collected(shape: str, attack: str = "none", seed: int = 1) -> Simulation:
    population = Population.of(values_of(shape, seed))
    return simulate(PLAN, population, attack, 0.2, np.random.default_rng((seed, 2)))


@cache
def fitted(name: str, shape: str = "smooth") -> tuple[JointCounts, Fit]:
    attack, model = MODELS[name]
    counts = JointCounts.of(collected(shape, attack).summary, range(3))
    return counts, fit(counts, model)


def local_model(name: str) -> LocalModel:
    counts, best = fitted(name)
    return LocalModel(counts, best, counts.transitions)


def random_program(seed: int, size: int = 12) -> QuadraticProgram:
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(size + 4, size))
    slope = -rows.T @ rng.normal(size=size + 4)
    return QuadraticProgram(rows.T @ rows, slope, np.ones((1, size)), np.ones(1))


# Quadratic programs


@pytest.mark.parametrize("seed", range(5))
def test_the_minimum_of_a_program_meets_its_conditions(seed: int) -> None:
    program = random_program(seed)
    point = program.minimum()
    assert point.min() > 0
    assert point.sum() == pytest.approx(1, abs=1e-5)
    positive = point > 1e-3
    slopes = program.matrix @ point + program.slope
    # The slope is the sum's multiplier where z > 0, and no smaller where z = 0.
    np.testing.assert_allclose(slopes[positive], slopes[positive][0], atol=1e-2)
    assert slopes.min() > slopes[positive][0] - 1e-2
    assert 1 <= positive.sum() < len(point)


@pytest.mark.parametrize("seed", range(5))
def test_variables_that_are_positive_anyway_may_be_eliminated(seed: int) -> None:
    program = random_program(seed)
    point = program.minimum()
    largest = np.argsort(point)[-2:]
    reduced = program.without(largest)
    kept = np.setdiff1d(np.arange(len(point)), largest)
    np.testing.assert_allclose(reduced.minimum(), point[kept], atol=1e-3)
    assert len(reduced.totals) == 0


# Extremes


@every_model
def test_an_extreme_is_where_the_profile_of_the_deviance_reaches_the_slack(name: str) -> None:
    """The path of active sets and the interior-point method are independent of one another."""
    model = local_model(name)
    program = model.program()
    extremes, least = Extremes(program), program.value(program.minimum())
    for edge in (-0.6, -0.3, 0.2):
        below = np.zeros(len(program.slope))
        below[: model.inputs] = model.counts.values <= edge
        largest = extremes.largest(below, SLACK)
        assert 0 < largest < 1
        profile = program.with_sum(below, largest)
        assert profile.value(profile.minimum()) - least == pytest.approx(SLACK, abs=0.01)


def test_an_extreme_grows_with_the_slack_up_to_everybody() -> None:
    model = local_model("nobody")
    extremes = Extremes(model.program())
    below = (model.counts.values <= -0.2).astype(np.float64)
    shares = [extremes.largest(below, slack) for slack in (0.0, 1.0, 4.0, 1e7)]
    assert shares == sorted(shares)
    assert shares[0] == pytest.approx(float(below @ extremes.least()), abs=1e-6)
    assert shares[-1] == 1


# The likelihood near a fit


@every_model
def test_the_local_model_has_its_least_deviance_at_the_fit(name: str) -> None:
    counts, best = fitted(name)
    point = local_model(name).program().minimum()
    inputs = counts.inputs
    np.testing.assert_allclose(point[:inputs], best.honest, atol=0.02)
    shares = best.attacker_shares[best.model.attacked]
    np.testing.assert_allclose(point[inputs : inputs + len(shares)], shares, atol=1e-3)


def test_the_local_deviance_is_that_of_the_counts() -> None:
    """Also of a histogram that is smooth where x̂ is spikes, so far from it."""
    counts, best = fitted("nobody")
    smooth, grid = smooth_histogram(counts, best), InputGrid(counts)
    program = LocalModel(counts, best, grid.transitions).program()
    least = local_model("nobody").program().value(best.honest)
    change = counts.deviance(grid.transitions @ smooth.fractions) - best.deviance
    assert change > 1
    assert program.value(smooth.fractions) - least == pytest.approx(change, abs=0.3)


# Smooth histograms


@every_model
@pytest.mark.parametrize("moved", [None, 0.005])
def test_a_smooth_histogram_has_the_mean_of_the_fit_or_a_given_one(
    name: str, moved: float | None
) -> None:
    counts, best = fitted(name)
    expected = best.mean(counts.values) + (moved or 0.0)
    smooth = smooth_histogram(counts, best, None if moved is None else expected)
    grid = InputGrid(counts)
    mean = smooth.fractions @ grid.middles + smooth.atom_fractions @ smooth.atom_edges.mean(axis=1)
    assert mean == pytest.approx(expected, abs=1e-4)
    assert smooth.fractions.sum() + smooth.atom_fractions.sum() == pytest.approx(1, abs=1e-4)


@pytest.mark.slow
def test_the_counts_choose_how_smooth_it_is() -> None:
    roughness = {}
    for shape in ("even", "smooth", "spikes"):
        counts, best = fitted("nobody", shape)
        fractions = smooth_histogram(counts, best).fractions
        roughness[shape] = float((np.diff(fractions, 2) ** 2).sum())
        assert roughness[shape] < (np.diff(best.honest[:64], 2) ** 2).sum()
    assert roughness["even"] < roughness["smooth"] / 2 < roughness["spikes"] / 20


def test_a_value_that_many_users_share_at_an_end_is_kept() -> None:
    counts, best = fitted("nobody", "zeros")
    smooth = smooth_histogram(counts, best)
    assert smooth.atom_edges[0, 0] == counts.buckets[0].mechanism.input_low
    assert smooth.atom_fractions[0] == pytest.approx(0.5, abs=0.1)
    counts, best = fitted("nobody", "smooth")
    assert len(smooth_histogram(counts, best).atom_fractions) == 0


# Bands of the CDF


@pytest.mark.slow
def test_bands_hold_the_truth_as_often_as_they_say_whatever_the_shape() -> None:
    held = []
    for shape in ("smooth", "skewed", "spikes", "zeros", "even"):
        run = collected(shape, seed=11)
        counts = JointCounts.of(run.summary, range(3))
        low, high = cdf_band(counts, [fit(counts, MODELS["nobody"][1])])
        assert run.honest is not None
        true = np.array([run.honest.cdf(at) for at in np.linspace(0, 1, 65)])
        held.append(((low <= true + 1e-6) & (true - 1e-6 <= high))[1:-1].mean())
        assert (high - low)[1:-1].mean() < 0.25
    assert np.mean(held) > 0.95


def test_a_plan_with_a_step_has_a_histogram_and_a_band_on_its_values_alone() -> None:
    plan = Plan.new(epsilon=2.0, min_epsilon=0.5, low=1, high=5, step=1)
    stars = np.random.default_rng(1).choice(5, USERS, p=[0.3, 0.05, 0.05, 0.2, 0.4]) + 1
    run = simulate(plan, Population.of(stars), rng=np.random.default_rng(2))
    counts = JointCounts.of(run.summary, range(3))
    best = fit(counts, PoisonModel.nobody(*counts.counts.shape))
    smooth, (low, high) = smooth_histogram(counts, best), cdf_band(counts, [best])
    assert len(smooth.atom_fractions) == 0
    np.testing.assert_allclose(smooth.fractions[::2], [0.3, 0.05, 0.05, 0.2, 0.4], atol=0.05)
    assert not smooth.fractions[1::2].any()
    true = np.repeat([0, 0.3, 0.35, 0.4, 0.6, 1], 2)[1:-1]
    assert (low <= true).all()
    assert (true <= high).all()
    assert (high - low).max() < 0.1


@pytest.mark.slow
def test_a_band_is_wider_with_more_models_and_larger_errors() -> None:
    counts, narrow = fitted("alike")
    wide = fit(counts, PoisonModel.alike(np.arange(64) >= 40, 3))
    one = cdf_band(counts, [narrow])
    for low, high in (cdf_band(counts, [narrow, wide]), cdf_band(counts, [narrow], 1.5)):
        assert (low <= one[0] + 1e-9).all()
        assert (high >= one[1] - 1e-9).all()
        assert (high - low).sum() > (one[1] - one[0]).sum()
    assert widest_of_each_kind([narrow, wide, fitted("nobody")[1]]) == [fitted("nobody")[1], wide]
