"""Distributions of numbers: as values, as answers, and how far they are from the truth."""

from __future__ import annotations

import json
import math
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import wasserstein_distance

import unpoison
from unpoison import Estimate, Plan, Simulation, Summary, simulate
from unpoison.bench import plain_em
from unpoison.defences import Defence, Trimming
from unpoison.errors import InvalidParameter, NotEnoughData
from unpoison.estimate.distribution import Distribution, mixture, wasserstein
from unpoison.estimate.honest_reports import distribution_of, mean_of
from unpoison.estimate.statistic import Statistic
from unpoison.filters.buckets import Buckets
from unpoison.filters.em import shared_histogram
from unpoison.protocols import SCHEMES, FilterOptions, MeanAnalysis
from unpoison.summary.binning import Binner
from unpoison.types import FloatArray


def estimate(summary: Any, **options: Any) -> Estimate:
    """By the paper's baseline or EMF*, unless another method is asked for."""
    method = "baseline" if summary.plan.protocol == "baseline" else "emf-star"
    return unpoison.estimate(summary, **{"method": method, **options})


NUMERICAL = ("piecewise", "piecewise-integer", "square-wave", "square-wave-integer")
KEEPING = ("ostrich", "trimming")
"""Defences that leave reports out and trust the rest."""
LOW, HIGH = -20.0, 60.0
every_mechanism = pytest.mark.parametrize("mechanism", NUMERICAL)


# A distribution as a value


def random_one(seed: int, buckets: int = 8) -> Distribution:
    rng = np.random.default_rng(seed)
    edges = np.cumsum(np.append(rng.normal(), rng.uniform(0.1, 2.0, buckets)))
    weights = rng.dirichlet(np.full(buckets, 0.7))
    weights[rng.integers(buckets)] = 0.0
    return Distribution.of(edges, weights)


def sampled(distribution: Distribution, size: int, seed: int = 1) -> FloatArray:
    rng = np.random.default_rng(seed)
    edges, shares = np.array(distribution.edges), np.array(distribution.fractions)
    bucket = rng.choice(len(shares), size, p=shares / shares.sum())
    return np.asarray(edges[bucket] + np.diff(edges)[bucket] * rng.random(size))


def point_masses(distribution: Distribution, points: int = 4000) -> tuple[FloatArray, FloatArray]:
    """As many equal masses a bucket, each in the middle of its part of it."""
    edges, shares = np.array(distribution.edges), np.array(distribution.fractions)
    within = (np.arange(points) + 0.5) / points
    places = edges[:-1, None] + np.diff(edges)[:, None] * within
    return places.ravel(), np.repeat(shares / points, points)


@pytest.mark.parametrize("seed", range(4))
def test_moments_and_quantiles_are_those_of_samples(seed: int) -> None:
    distribution = random_one(seed)
    values = sampled(distribution, 400_000)
    deviation = math.sqrt(distribution.variance)
    assert distribution.mean == pytest.approx(values.mean(), abs=6 * deviation / math.sqrt(400_000))
    assert distribution.variance == pytest.approx(values.var(), rel=0.02)
    for share in (0.01, 0.1, 0.25, 0.5, 0.9, 0.99):
        assert distribution.cdf(distribution.quantile(share)) == pytest.approx(share, abs=1e-9)
        assert np.mean(values <= distribution.quantile(share)) == pytest.approx(share, abs=0.005)
    for at in np.linspace(distribution.edges[0] - 1, distribution.edges[-1] + 1, 9):
        assert distribution.cdf(float(at)) == pytest.approx(np.mean(values <= at), abs=0.005)


def test_moments_of_point_masses_are_those_of_numpy() -> None:
    for seed in range(4):
        distribution = random_one(seed)
        places, weights = point_masses(distribution)
        assert distribution.mean == pytest.approx(np.average(places, weights=weights), abs=1e-9)
        spread = np.average((places - distribution.mean) ** 2, weights=weights)
        assert distribution.variance == pytest.approx(spread, rel=1e-6)


def test_a_quantile_is_the_smallest_value_that_will_do() -> None:
    gap = Distribution((0.0, 1.0, 5.0, 6.0), (0.5, 0.0, 0.5))
    assert gap.quantile(0.5) == 1.0
    assert gap.quantile(0.5 + 1e-9) == pytest.approx(5.0, abs=1e-6)
    assert (gap.quantile(0.0), gap.quantile(1.0)) == (0.0, 6.0)
    right = Distribution((0.0, 1.0, 2.0, 3.0), (0.0, 1.0, 0.0))
    assert right.quantile(1.0) == 2.0
    assert right.quantile(1e-12) == pytest.approx(1.0)
    assert (right.cdf(-5), right.cdf(1.0), right.cdf(2.5)) == (0.0, 0.0, 1.0)


@settings(deadline=None)
@given(st.integers(0, 10**6), st.lists(st.floats(0, 1), min_size=2, max_size=9))
def test_quantiles_never_fall(seed: int, shares: list[float]) -> None:
    distribution = random_one(seed, 5)
    values = [distribution.quantile(share) for share in sorted(shares)]
    assert all(before <= after for before, after in pairwise(values))
    assert distribution.edges[0] <= values[0]
    assert values[-1] <= distribution.edges[-1]


@pytest.mark.parametrize("share", [-0.1, 1.1, math.nan])
def test_a_share_outside_its_range_has_no_quantile(share: float) -> None:
    with pytest.raises(InvalidParameter, match=r"share must be in \[0, 1\]"):
        random_one(1).quantile(share)


@pytest.mark.parametrize(
    ("edges", "fractions", "message"),
    [
        ((0.0, 1.0), (0.5, 0.5), "one more"),
        ((0.0,), (), "one more"),
        ((0.0, 0.0, 1.0), (0.5, 0.5), "must rise"),
        ((1.0, 0.0), (1.0,), "must rise"),
        ((0.0, math.nan), (1.0,), "must rise"),
        ((0.0, 1.0, 2.0), (1.5, -0.5), "add up to 1"),
        ((0.0, 1.0, 2.0), (0.5, 0.4), "add up to 1"),
        ((0.0, 1.0), (math.nan,), "add up to 1"),
    ],
)
def test_what_is_no_distribution_is_refused(
    edges: tuple[float, ...], fractions: tuple[float, ...], message: str
) -> None:
    with pytest.raises(InvalidParameter, match=message):
        Distribution(edges, fractions)


@pytest.mark.parametrize("seed", range(3))
def test_a_distribution_survives_json(seed: int) -> None:
    distribution = random_one(seed)
    keys = json.loads(json.dumps(distribution.to_dict(), allow_nan=False))
    assert Distribution.from_dict(keys) == distribution
    assert keys["mean"] == distribution.mean
    assert keys["variance"] == distribution.variance
    assert len(keys["cdf"]) == len(keys["edges"]) == len(keys["fractions"]) + 1
    assert (keys["cdf"][0], keys["cdf"][-1]) == (0, 1)
    assert keys["quantiles"]["0.5"] == distribution.quantile(0.5)


# Intervals


def banded(seed: int, room: float = 0.1) -> Distribution:
    distribution = random_one(seed)
    cumulative = np.array(distribution.cumulative)
    return distribution.with_band(
        np.maximum(cumulative - room, 0), np.minimum(cumulative + room, 1)
    )


@pytest.mark.parametrize("seed", range(4))
def test_the_interval_of_a_quantile_is_where_the_band_has_its_share(seed: int) -> None:
    distribution = banded(seed)
    for share in (0.05, 0.25, 0.5, 0.75, 0.95):
        low, high = distribution.quantile_interval(share) or (math.nan, math.nan)
        assert low <= distribution.quantile(share) <= high
        inside = np.linspace(low, high, 9)[1:-1]
        outside = [low - 1e-6, high + 1e-6]
        for at, expected in [(at, True) for at in inside] + [(at, False) for at in outside]:
            if distribution.edges[0] <= at < distribution.edges[-1]:
                least, most = distribution.cdf_interval(at) or (math.nan, math.nan)
                assert (least <= share <= most) == expected


def test_intervals_reach_the_ends_where_the_band_leaves_them_open() -> None:
    nothing = Distribution((0.0, 1.0, 4.0), (0.5, 0.5)).with_band(np.zeros(3), np.ones(3))
    assert nothing.quantile_interval(0.5) == (0.0, 4.0)
    assert nothing.cdf_interval(2.0) == (0.0, 1.0)
    assert (nothing.cdf_interval(-0.1), nothing.cdf_interval(4.0)) == ((0.0, 0.0), (1.0, 1.0))
    assert nothing.unresolved == (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)
    exact = Distribution((0.0, 1.0, 4.0), (0.5, 0.5)).with_band(
        np.array([0, 0.5, 1]), np.array([0, 0.5, 1])
    )
    assert exact.quantile_interval(0.5) == (1.0, 1.0)
    assert exact.unresolved == ()


def test_without_a_band_there_are_no_intervals() -> None:
    plain = random_one(1)
    assert plain.quantile_interval(0.5) is None
    assert plain.cdf_interval(0.0) is None
    assert plain.unresolved is None
    keys = plain.to_dict()
    assert (keys["cdf_low"], keys["quantile_intervals"]) == (None, None)
    with pytest.raises(InvalidParameter, match="share must be in"):
        plain.quantile_interval(1.5)


def test_a_band_is_never_beside_its_distribution() -> None:
    distribution = random_one(2)
    size = len(distribution.edges)
    beside = distribution.with_band(np.full(size, 0.9), np.full(size, 0.95))
    assert beside.cdf_low is not None
    assert beside.cdf_high is not None
    assert all(np.array(beside.cdf_low) <= distribution.cumulative)
    assert all(np.array(beside.cdf_high) >= distribution.cumulative)


@pytest.mark.parametrize(
    ("low", "high", "message"),
    [
        ((0.0, 1.0), None, "must go with cdf_high"),
        ((0.0,), (1.0, 1.0), "cdf_low must rise"),
        ((0.5, 0.0), (1.0, 1.0), "cdf_low must rise"),
        ((0.0, 0.5), (0.5, 1.5), "cdf_high must rise"),
        ((0.0, math.nan), (0.5, 1.0), "cdf_low must rise"),
    ],
)
def test_what_is_no_band_is_refused(
    low: tuple[float, ...], high: tuple[float, ...] | None, message: str
) -> None:
    with pytest.raises(InvalidParameter, match=message):
        Distribution((0.0, 1.0), (1.0,), low, high)


def test_the_band_of_a_mixture_is_that_of_its_parts_end_by_end() -> None:
    parts, weights = [banded(1), banded(2, 0.2)], [0.25, 0.75]
    mixed = mixture(parts, weights)
    for at in np.linspace(mixed.edges[0], mixed.edges[-1], 9)[:-1]:
        bands = [
            [np.interp(at, part.edges, ends or ()) for ends in (part.cdf_low, part.cdf_high)]
            for part in parts
        ]
        assert mixed.cdf_interval(float(at)) == pytest.approx(weights @ np.array(bands), abs=1e-9)
    assert mixture([parts[0], random_one(3)], weights).cdf_low is None


@pytest.mark.parametrize("seed", range(2))
def test_a_band_survives_json(seed: int) -> None:
    distribution = banded(seed)
    keys = json.loads(json.dumps(distribution.to_dict(), allow_nan=False))
    assert Distribution.from_dict(keys) == distribution
    assert keys["quantile_intervals"]["0.5"] == list(distribution.quantile_interval(0.5) or ())
    assert keys["unresolved_quantiles"] == list(distribution.unresolved or ())


# How far two distributions are apart


@pytest.mark.parametrize("seed", range(5))
def test_the_wasserstein_distance_is_that_of_fine_point_masses(seed: int) -> None:
    one, other = random_one(seed), random_one(seed + 100, 5)
    first, second = point_masses(one), point_masses(other)
    expected = wasserstein_distance(first[0], second[0], first[1], second[1])
    assert wasserstein(one, other) == pytest.approx(expected, abs=1e-3)


@pytest.mark.slow
@settings(deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**6))
def test_the_wasserstein_distance_is_a_distance(one: int, two: int, three: int) -> None:
    first, second, third = (random_one(seed, 4) for seed in (one, two, three))
    assert wasserstein(first, first) == 0
    assert wasserstein(first, second) == pytest.approx(wasserstein(second, first), rel=1e-12)
    assert wasserstein(first, second) >= abs(first.mean - second.mean) - 1e-9
    through = wasserstein(first, third) + wasserstein(third, second)
    assert wasserstein(first, second) <= through + 1e-9


def test_moving_all_users_costs_the_way() -> None:
    here = random_one(1)
    there = Distribution(tuple(edge + 2.5 for edge in here.edges), here.fractions)
    assert wasserstein(here, there) == pytest.approx(2.5)
    far = Distribution((100.0, 101.0), (1.0,))
    assert wasserstein(Distribution((0.0, 1.0), (1.0,)), far) == pytest.approx(100)


def test_finer_buckets_of_the_same_density_are_no_distance() -> None:
    coarse = Distribution((0.0, 2.0, 4.0), (0.25, 0.75))
    fine = Distribution((0.0, 1.0, 2.0, 3.0, 4.0), (0.125, 0.125, 0.375, 0.375))
    assert wasserstein(coarse, fine) == pytest.approx(0, abs=1e-15)


# Mixtures


@pytest.mark.slow
@settings(deadline=None)
@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=4), st.integers(0, 10**6))
def test_the_cdf_of_a_mixture_is_the_mixture_of_cdfs(seeds: list[int], seed: int) -> None:
    parts = [random_one(part_seed, 4) for part_seed in seeds]
    weights = np.random.default_rng(seed).dirichlet(np.ones(len(parts)))
    mixed = mixture(parts, weights.tolist())
    assert mixed.mean == pytest.approx(weights @ [part.mean for part in parts], abs=1e-9)
    for at in np.linspace(mixed.edges[0] - 1, mixed.edges[-1] + 1, 7):
        expected = weights @ [part.cdf(float(at)) for part in parts]
        assert mixed.cdf(float(at)) == pytest.approx(expected, abs=1e-9)


def test_a_mixture_of_one_is_itself() -> None:
    one = random_one(3)
    mixed = mixture([one], [7.0])
    assert mixed.edges == one.edges
    assert mixed.fractions == pytest.approx(one.fractions)


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (0.1, 0.4), (-3.7, 1e6), (1e6, 1e6 + 1)])
def test_edges_that_nearly_coincide_do_no_harm(low: float, high: float) -> None:
    rng = np.random.default_rng(1)
    for _ in range(60):
        parts = []
        for buckets in rng.integers(1, 90, size=2):
            edges = low + np.arange(buckets + 1) / buckets * (high - low)
            parts.append(Distribution.of(edges, rng.dirichlet(np.full(buckets, 0.3)) + 1e-12))
        mixed = mixture(parts, [0.3, 0.7])
        assert min(mixed.fractions) >= 0
        assert sum(mixed.fractions) == pytest.approx(1)


# Means of biased reports


def far(mechanism: str) -> str:
    return "uniform:3C/4,C" if mechanism.startswith("piecewise") else "uniform:1+b/2,1+b"


@cache
def collection(
    mechanism: str, attack: str = "", epsilon: float = 2.0, protocol: str = "dap"
) -> Simulation:
    keys = {"low": LOW, "high": HIGH, "protocol": protocol}
    plan = Plan.new(mechanism, epsilon, min_epsilon=0.25, **keys)
    values = LOW + (HIGH - LOW) * np.random.default_rng(1).beta(2, 5, 30_000)
    return simulate(plan, values, attack or far(mechanism), 0.25, np.random.default_rng(2))


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", ["square-wave", "square-wave-integer"])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_mean_of_the_square_wave_is_a_plain_ems_of_what_the_poison_leaves(
    mechanism: str, scheme: str
) -> None:
    summary = collection(mechanism).summary
    analysis = MeanAnalysis(summary, summary.plan.tier_groups(0), FilterOptions())
    for group in analysis.groups:
        reports = int(summary.reports[group])
        buckets = Buckets.for_reports(summary.plan.group_mechanisms[group], reports)
        counts = plain_em.bucket_counts(buckets, summary.counts[group])
        left = np.maximum(counts - reports * analysis.solution(scheme, group).poison, 0)
        fit = plain_em.ems(buckets, left)
        mean = float(buckets.input_values @ fit.honest / fit.honest.sum())
        assert analysis.mean(scheme, group) == pytest.approx(mean, abs=1e-9)
        assert analysis.converged(scheme, group)


@pytest.mark.parametrize("mechanism", ["square-wave", "square-wave-integer"])
def test_trusting_everybody_with_the_square_wave_is_the_mean_of_one_histogram(
    mechanism: str,
) -> None:
    run = collection(mechanism, "none")
    groups = list(run.summary.plan.tier_groups(0))
    together = mean_of(run.summary.plan, groups, run.summary.counts)
    edges, solution = shared_histogram(run.summary.plan.group_mechanisms, run.summary.counts)
    middles = (edges[1:] + edges[:-1]) / 2
    assert together == pytest.approx(solution.honest @ middles / solution.honest.sum(), abs=1e-12)
    unfiltered = estimate(run.summary).fit["unfiltered_mean"]
    assert unfiltered == pytest.approx(run.summary.plan.natural(together))
    assert abs(unfiltered - run.truth) < 0.02 * (HIGH - LOW)


# Distributions as answers


def check_shape(distribution: Distribution | None) -> Distribution:
    assert distribution is not None
    assert sum(distribution.fractions) == pytest.approx(1)
    assert min(distribution.fractions) >= 0
    assert (distribution.edges[0], distribution.edges[-1]) == pytest.approx((LOW, HIGH))
    return distribution


def apart(distribution: Distribution, run: Simulation) -> float:
    """In shares of the range."""
    assert run.honest is not None
    return wasserstein(distribution, run.honest) / (HIGH - LOW)


@every_mechanism
@pytest.mark.parametrize("method", ["emf", "emf-star", "ostrich"])
def test_the_distribution_is_near_the_truth_when_nobody_attacks(
    mechanism: str, method: str
) -> None:
    run = collection(mechanism, "none")
    distribution = check_shape(
        estimate(run.summary, method=method, statistic="distribution").distribution
    )
    limits = {"ostrich": 0.03, "emf": 0.2}
    assert apart(distribution, run) < limits.get(method, 0.1)


@every_mechanism
@pytest.mark.parametrize("method", ["emf-star", "cemf-star"])
def test_the_distribution_is_freed_of_poison(mechanism: str, method: str) -> None:
    run = collection(mechanism)
    distribution = check_shape(
        estimate(run.summary, method=method, statistic="distribution").distribution
    )
    answer = estimate(run.summary, method="ostrich", statistic="distribution")
    assert apart(distribution, run) < 0.08
    assert apart(distribution, run) < apart(check_shape(answer.distribution), run) / 2


@pytest.mark.slow
@every_mechanism
def test_the_mean_does_not_depend_on_whether_the_distribution_is_asked(mechanism: str) -> None:
    summary = collection(mechanism).summary
    for method in ("emf-star", *KEEPING):
        mean, both = (
            estimate(summary, method=method, statistic=name) for name in ("mean", "distribution")
        )
        assert mean.distribution is None
        assert mean.mean == pytest.approx(both.mean, abs=1e-9)
        assert mean.byzantine == both.byzantine
        assert mean == estimate(summary, method=method)


@every_mechanism
def test_the_distribution_comes_from_the_cells_that_the_poison_leaves(mechanism: str) -> None:
    summary = collection(mechanism).summary
    analysis = MeanAnalysis(summary, summary.plan.tier_groups(0), FilterOptions())
    kept = np.zeros(summary.counts.shape)
    for group in analysis.groups:
        buckets = analysis.counts[group].buckets
        reports = float(summary.reports[group])
        poison = analysis.solution("emf-star", group).poison
        for bucket, (first, last) in enumerate(pairwise(buckets.cell_edges)):
            cells = summary.counts[group, first:last]
            if cells.sum():
                share = max(cells.sum() - reports * poison[bucket], 0) / cells.sum()
                kept[group, first:last] = share * cells
    expected = distribution_of(summary.plan, analysis.groups, kept)
    distribution = check_shape(estimate(summary, statistic="distribution").distribution)
    assert distribution.edges == expected.edges
    assert distribution.fractions == pytest.approx(expected.fractions, abs=1e-9)


@every_mechanism
def test_trimming_has_the_distribution_of_the_reports_it_keeps(mechanism: str) -> None:
    summary = collection(mechanism).summary
    groups = range(len(summary.plan.all_groups))
    answer = estimate(summary, method="trimming", statistic="distribution", side="left")
    expected = distribution_of(summary.plan, groups, Trimming(side="left").kept_counts(summary))
    assert check_shape(answer.distribution) == expected


@every_mechanism
def test_the_baseline_has_a_distribution(mechanism: str) -> None:
    attacked, peaceful = (collection(mechanism, a, protocol="baseline") for a in ("", "none"))
    answer = estimate(peaceful.summary, statistic="distribution")
    assert apart(check_shape(answer.distribution), peaceful) < 0.2
    check_shape(estimate(attacked.summary, statistic="distribution").distribution)


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", ["piecewise", "square-wave-integer"])
def test_the_distribution_of_tiers_is_their_mixture(mechanism: str) -> None:
    tier = {"epsilon": 0.5, "min_epsilon": 0.25}
    keys: dict[str, Any] = {"min_epsilon": 0.5, "low": LOW, "high": HIGH}
    plan = Plan.new(mechanism, 1.0, **keys, tiers=[tier])
    values = LOW + (HIGH - LOW) * np.random.default_rng(1).beta(2, 5, 20_000)
    budgets = np.where(np.arange(20_000) < 8_000, 0.5, 1.0)
    rng = np.random.default_rng(2)
    run = simulate(plan, values, far(mechanism), 0.25, rng, budgets=budgets)
    answer_of_all = estimate(run.summary, statistic="distribution")
    parts = []
    for place, low_epsilon in enumerate((0.5, 0.25)):
        groups = list(plan.tier_groups(place))
        alone = Plan.new(mechanism, (1.0, 0.5)[place], **{**keys, "min_epsilon": low_epsilon})
        counts, sums = run.summary.counts[groups], [run.summary.sums[group] for group in groups]
        single = estimate(Summary(alone, counts.copy(), tuple(sums)), statistic="distribution")
        parts.append(check_shape(single.distribution))
    expected = mixture(parts, [tier.weight for tier in answer_of_all.tiers])
    answer = check_shape(answer_of_all.distribution)
    assert wasserstein(answer, expected) < 1e-9
    assert apart(answer, run) < 0.1


@every_mechanism
@pytest.mark.parametrize("method", ["emf-star", "ostrich", "trimming"])
def test_an_answer_with_a_distribution_survives_json(mechanism: str, method: str) -> None:
    answer = estimate(collection(mechanism).summary, method=method, statistic="distribution")
    text = answer.to_json()
    again = Estimate.from_json(text)
    assert again == answer
    assert again.to_json() == text
    keys = json.loads(text)["distribution"]
    intervals = {"cdf_low", "cdf_high", "quantile_intervals", "unresolved_quantiles"}
    assert keys.keys() == {
        *("edges", "fractions", "mean", "variance", "quantiles", "cdf"),
        *intervals,
    }
    # Of these methods none has intervals.
    assert {keys[name] for name in intervals} == {None}


def test_units_do_not_matter() -> None:
    summary = collection("square-wave").summary
    wide = Plan.new("square-wave", 2.0, min_epsilon=0.25, low=0, high=1000)
    other = estimate(Summary(wide, summary.counts, summary.sums), statistic="distribution")
    distribution = check_shape(estimate(summary, statistic="distribution").distribution)
    assert other.distribution is not None
    assert other.distribution.fractions == distribution.fractions
    scaled = (np.array(distribution.edges) - LOW) / (HIGH - LOW) * 1000
    np.testing.assert_allclose(other.distribution.edges, scaled, atol=1e-9)


def test_few_reports_in_one_group_do_not_spoil_the_others() -> None:
    """A group may be cut down to nothing by trimming, or be a small one."""
    plan = Plan.new("square-wave", 1.0, min_epsilon=0.5, low=LOW, high=HIGH)
    rng = np.random.default_rng(1)
    binner = Binner(plan)
    binner.add_group(0, rng.uniform(0, 0.5, 7))
    binner.add_group(1, rng.uniform(0, 1, 4000))
    for method in KEEPING:
        answer = estimate(binner.summary(), method=method, statistic="distribution")
        check_shape(answer.distribution)
        assert math.isfinite(answer.mean)


def test_a_distribution_needs_reports_that_are_left() -> None:
    plan = Plan.new("square-wave", 1.0, min_epsilon=0.5, low=LOW, high=HIGH)
    counts = np.zeros((2, plan.cells), dtype=np.int64)
    counts[:, -1] = 1000
    top = [1000 * round(part.output_high * 2**32) for part in plan.group_mechanisms]
    summary = Summary(plan, counts, tuple(top))
    assert "do not use" in estimate(summary).verdict
    with pytest.raises(NotEnoughData, match="at least 16 reports that are trusted; received 0"):
        estimate(summary, statistic="distribution")


def test_a_defence_of_ones_own_may_have_only_a_mean() -> None:
    class Guess(Defence):
        def mean(self, summary: Summary) -> float:
            return 0.0

        def describe(self) -> str:
            return "The middle."

    summary = collection("piecewise").summary
    assert Guess().estimate(summary, "guess").mean == (LOW + HIGH) / 2
    statistic = Statistic("distribution")
    with pytest.raises(InvalidParameter, match="must be one that gives distribution"):
        Guess().estimate(summary, "guess", statistic)


# The truth of a simulation


@every_mechanism
def test_the_truth_is_the_distribution_of_the_honest_users(mechanism: str) -> None:
    run = collection(mechanism, "none")
    values = LOW + (HIGH - LOW) * np.random.default_rng(1).beta(2, 5, 30_000)
    truth = check_shape(run.honest)
    width = (HIGH - LOW) / len(truth.fractions)
    assert truth.mean == pytest.approx(values.mean(), abs=width)
    for share in (0.1, 0.5, 0.9):
        assert truth.quantile(share) == pytest.approx(np.quantile(values, share), abs=3 * width)


@pytest.mark.parametrize(("low", "high"), [(1e15, 1e15 + 1), (1.7e18, 1.7e18 + 1e6)])
def test_a_range_of_few_numbers_can_be_simulated(low: float, high: float) -> None:
    plan = Plan.new(epsilon=1.0, min_epsilon=0.5, low=low, high=high)
    values = np.random.default_rng(1).choice([low, high], 2000)
    run = simulate(plan, values, "none", 0, np.random.default_rng(2))
    assert run.honest is not None
    assert run.honest.quantile(0.0) == low
    assert run.honest.quantile(1.0) == high
    assert sum(run.honest.fractions) == pytest.approx(1)
