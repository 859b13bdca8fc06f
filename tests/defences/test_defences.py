"""What the boxplot, the isolation forest, k-means and their pairs with EMF compute."""

from __future__ import annotations

import math
import sys
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unpoison import Plan, Simulation, Summary, estimate, simulate
from unpoison.defences import (
    Boxplot,
    EmfBoxplot,
    EmfKMeans,
    IsolationForest,
    KMeans,
    decoded_cells,
    defences,
)
from unpoison.defences.boxplot import TukeyFences, quantiles
from unpoison.defences.coarse_values import CoarseValues, whole_counts
from unpoison.defences.emf_first import reconstruct_inputs
from unpoison.defences.isolation_forest import ForestInliers
from unpoison.defences.k_means import HYPERGEOMETRIC_LIMIT, SubsetClusters, larger_cluster_mean
from unpoison.defences.robust_average import InlierAverage
from unpoison.errors import InvalidParameter, MissingExtra, NotEnoughData
from unpoison.mechanisms import mechanisms
from unpoison.protocols import FilterOptions, MeanAnalysis
from unpoison.types import BoolArray, FloatArray

NUMERICAL = [name for name in mechanisms if not mechanisms[name].categorical]
some_counts = st.lists(st.integers(0, 9), min_size=1, max_size=12).filter(any)


@cache
def collection(mechanism: str = "piecewise", attack: str = "uniform:R/2,R") -> Simulation:
    plan = Plan.new(mechanism, epsilon=1.0, min_epsilon=0.25, low=0, high=1)
    values = np.random.default_rng(1).beta(2, 5, 20_000)
    return simulate(plan, values, attack, 0.25, np.random.default_rng(2))


def expanded(summary: Summary) -> np.ndarray:
    return np.repeat(decoded_cells(summary).ravel(), summary.counts.ravel())


# Boxplot


@pytest.mark.parametrize("mechanism", NUMERICAL)
@pytest.mark.parametrize("factor", [0.0, 0.3, 1.5])
def test_a_boxplot_is_that_of_the_single_reports(mechanism: str, factor: float) -> None:
    summary = collection(mechanism).summary
    reports = expanded(summary)
    first, third = np.quantile(reports, [0.25, 0.75])
    reach = factor * (third - first) + 1e-12
    expected = reports[(reports >= first - reach) & (reports <= third + reach)]
    kept = Boxplot(factor=factor).kept_counts(summary)
    assert kept.sum() == len(expected)
    assert (kept * decoded_cells(summary)).sum() == pytest.approx(expected.sum(), rel=1e-9)


@settings(max_examples=50, deadline=None)
@given(counts=some_counts, share=st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.75, 1.0]))
def test_quantiles_of_counts_are_those_of_numpy(counts: list[int], share: float) -> None:
    values = np.random.default_rng(3).permutation(len(counts)).astype(float)
    (quantile,) = quantiles(values, np.array(counts, dtype=float), (share,))
    assert quantile == pytest.approx(np.quantile(np.repeat(values, counts), share))


# Isolation forest


@pytest.mark.slow
@pytest.mark.parametrize("contamination", ["auto", 0.01])
def test_a_forest_drops_far_outliers(contamination: float | str) -> None:
    values = np.append(np.linspace(-4, 4, 81), [40.0, 41.0])
    counts = np.append(np.ceil(500 * np.exp(-(np.linspace(-4, 4, 81) ** 2) / 2)), [2.0, 3.0])
    inliers = ForestInliers(contamination=contamination).inliers(values, counts)
    assert not inliers[-2:].any()
    assert inliers[35:46].all()


def agreement(answers: list[np.ndarray], others: list[np.ndarray]) -> float:
    return float(np.mean([a == b for a in answers for b in others if a is not b]))


@pytest.mark.slow
def test_a_forest_agrees_with_those_that_see_every_report_as_they_do_among_themselves() -> None:
    from sklearn.ensemble import IsolationForest as Kind

    summary, seeds = collection().summary, range(4)
    reports, present = expanded(summary), summary.counts > 0
    values = decoded_cells(summary)[present][::10]
    ours = [IsolationForest(seed=seed).kept_counts(summary)[present][::10] > 0 for seed in seeds]
    forests = [Kind(random_state=seed).fit(reports[:, None]) for seed in seeds]
    theirs = [forest.predict(values[:, None]) > 0 for forest in forests]
    assert agreement(ours, theirs) > agreement(theirs, theirs) - 0.03


def test_contamination_is_the_share_of_reports_left_out() -> None:
    summary = collection().summary
    kept = IsolationForest(contamination=0.2).kept_counts(summary)
    assert 0.78 < kept.sum() / summary.counts.sum() < 0.84


def test_values_that_are_all_alike_are_trusted() -> None:
    assert ForestInliers().inliers(np.array([2.0]), np.array([70.0])).all()
    assert TukeyFences().inliers(np.array([2.0]), np.array([70.0])).all()


def test_where_every_value_stands_out_none_does() -> None:
    class Nobody(InlierAverage):
        def inliers(self, values: FloatArray, counts: FloatArray) -> BoolArray:
            return np.zeros(len(values), dtype=bool)

    assert Nobody().average(np.array([0.0, 4.0]), np.array([3.0, 1.0])) == 1.0
    with pytest.raises(NotEnoughData, match="a report must be there to judge"):
        Nobody().average(np.array([0.0, 4.0]), np.zeros(2))


def test_a_forest_needs_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.ensemble", None)
    for name in ("isolation-forest", "emf-isolation-forest"):
        with pytest.raises(MissingExtra, match=r"unpoison\[defences\]"):
            estimate(collection().summary, method=name)


# k-means


def plain_subset_means(values: np.ndarray, size: int, subsets: int) -> np.ndarray:
    rng = np.random.default_rng(5)
    return np.array([rng.choice(values, size, replace=False).mean() for _ in range(subsets)])


def test_means_of_subsets_are_those_of_a_plain_loop() -> None:
    values, counts = np.array([-2.0, 0.0, 1.0, 5.0]), np.array([40.0, 30.0, 20.0, 10.0])
    means = SubsetClusters(subsets=4000, rate=0.2).subset_means(values, counts)
    plain = plain_subset_means(np.repeat(values, counts.astype(int)), 20, 4000)
    error = plain.std() / math.sqrt(len(plain))
    assert abs(means.mean() - plain.mean()) < 5 * error
    assert means.std() == pytest.approx(plain.std(), rel=0.08)
    assert set(np.round(means * 20, 6)) <= set(np.arange(-40.0, 101.0))


def test_of_very_many_values_each_is_drawn_by_itself() -> None:
    counts = np.array([3.0, 1.0]) * HYPERGEOMETRIC_LIMIT
    means = SubsetClusters(subsets=2000, rate=0.1).subset_means(np.array([0.0, 1.0]), counts)
    deviation = math.sqrt(0.25 * 0.75 * 0.9 / (0.1 * counts.sum()))
    assert abs(means.mean() - 0.25) < 5 * deviation / math.sqrt(2000)
    assert means.std() == pytest.approx(deviation, rel=0.08)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(-5, 5), min_size=1, max_size=12))
def test_the_best_cut_is_found(numbers: list[float]) -> None:
    rising = np.sort(numbers)
    cuts = range(1, len(rising))
    within = [rising[:c].var() * c + rising[c:].var() * (len(rising) - c) for c in cuts]
    best = [cut for cut, squares in zip(cuts, within, strict=True) if squares <= min(within) + 1e-9]
    allowed = [expected_mean(rising, cut) for cut in best or [0]]
    if np.ptp(rising) < 1e-3:
        allowed.append(float(rising.mean()))
    cluster_mean = larger_cluster_mean(np.array(numbers))
    assert min(abs(cluster_mean - mean) for mean in allowed) < 1e-3


def expected_mean(rising: np.ndarray, cut: int) -> float:
    lower, upper = rising[:cut], rising[cut:]
    if len(lower) == len(upper):
        return float(rising.mean())
    return float(max(lower, upper, key=len).mean())


@pytest.mark.slow
def test_clusters_are_those_of_scikit_learn() -> None:
    from sklearn.cluster import KMeans as Kind

    rng = np.random.default_rng(7)
    means = np.concatenate([rng.normal(0, 1, 300), rng.normal(6, 1, 100)])
    labels = Kind(2, n_init=10, random_state=1).fit(means[:, None]).labels_
    larger = means[labels == np.bincount(labels).argmax()]
    assert larger_cluster_mean(means) == pytest.approx(larger.mean())


def test_k_means_repeats_with_its_seed() -> None:
    summary = collection().summary
    first, again, other = (KMeans(subsets=300, seed=seed).mean(summary) for seed in (1, 1, 2))
    assert first == again != other


@settings(max_examples=30, deadline=None)
@given(counts=some_counts, buckets=st.integers(1, 20))
def test_coarse_values_have_the_same_mean(counts: list[int], buckets: int) -> None:
    weights, values = np.array(counts, dtype=float), np.sqrt(np.arange(len(counts)))
    coarse = CoarseValues.of(values, weights, buckets)
    assert coarse.counts.sum() == weights.sum()
    assert coarse.values @ coarse.counts == pytest.approx(values @ weights)
    filled = weights > 0
    width = np.ptp(values[filled]) / buckets
    assert (abs(coarse.values[coarse.bucket_of_value] - values)[filled] <= width + 1e-9).all()


def test_whole_counts_keep_the_total() -> None:
    counts = np.random.default_rng(1).random(100) * 3
    rounded = whole_counts(counts)
    assert rounded.sum() == round(counts.sum())
    assert (abs(rounded - counts) < 1).all()


# With EMF


def analysis_of(summary: Summary) -> MeanAnalysis:
    return MeanAnalysis(summary, range(len(summary.plan.all_groups)), FilterOptions())


@pytest.mark.parametrize("mechanism", NUMERICAL)
def test_where_emf_finds_poison_its_mean_stands(mechanism: str) -> None:
    summary = collection(mechanism).summary
    mean = estimate(summary, method="emf-k-means").mean
    assert mean == pytest.approx(estimate(summary, method="emf").mean, rel=1e-9)


def test_the_threshold_chooses_the_branch() -> None:
    summary = collection().summary
    gamma = analysis_of(summary).probe.byzantine_fraction
    emf = estimate(summary, method="emf").mean
    for threshold, little in ((gamma * 0.99, False), (gamma * 1.01, True)):
        defence = EmfKMeans(threshold=threshold, subsets=200)
        assert defence.finds_little_poison(analysis_of(summary)) is little
        same = math.isclose(summary.plan.natural(defence.mean(summary)), emf, rel_tol=1e-9)
        assert same is not little


def test_inputs_are_reconstructed_as_if_nobody_attacked() -> None:
    run = collection(attack="none")
    analysis = analysis_of(run.summary)
    for group, inputs in reconstruct_inputs(analysis).items():
        assert not inputs.poison.any()
        assert inputs.honest.sum() == pytest.approx(1)
        mean = inputs.mean_of(analysis.counts[group].buckets.input_values)
        assert abs(run.summary.plan.natural(mean) - run.truth) < 0.1


def test_without_an_attack_means_of_reconstructed_inputs_are_near_the_truth() -> None:
    run = collection(attack="none")
    for defence in (EmfKMeans(threshold=1, subsets=500), EmfBoxplot(threshold=1)):
        assert abs(run.summary.plan.natural(defence.mean(run.summary)) - run.truth) < 0.05


def test_wide_fences_change_nothing_that_emf_leaves() -> None:
    summary = collection().summary
    plain = EmfKMeans().mean(summary)
    assert EmfBoxplot(factor=100).mean(summary) == pytest.approx(plain, abs=0.02)


def test_tiers_are_mixed_by_their_honest_users() -> None:
    plan = Plan.new(epsilon=1.0, min_epsilon=0.5, low=0, high=1, tiers=[{"epsilon": 0.5}])
    values, budgets = np.repeat([0.2, 0.8], 10_000), np.repeat([1.0, 0.5], 10_000)
    rng = np.random.default_rng(3)
    run = simulate(plan, values, "uniform:C/2,C", 0.2, rng, budgets=budgets)
    mean = estimate(run.summary, method="emf-k-means").mean
    assert mean == pytest.approx(estimate(run.summary, method="emf").mean, rel=1e-9)


# Parameters


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("boxplot", {"factor": -1}, "factor must be a number, not negative; received -1"),
        ("boxplot", {"factor": math.nan}, "factor must be a number"),
        ("isolation-forest", {"contamination": 0.6}, r"must be auto or in \(0, 1/2\]"),
        ("isolation-forest", {"contamination": "much"}, "received 'much'"),
        ("isolation-forest", {"trees": 0}, "trees must be a whole number, at least 1"),
        ("isolation-forest", {"sample": 1.5}, "sample must be a whole number, at least 2"),
        ("isolation-forest", {"seed": -1}, "seed must be a whole number, at least 0"),
        ("k-means", {"subsets": True}, "subsets must be a whole number, at least 1"),
        ("k-means", {"rate": 1.0}, r"rate must be in \(0, 1\); received 1.0"),
        ("k-means", {"seed": "x"}, "seed must be a whole number"),
        ("emf-k-means", {"threshold": 1.5}, r"threshold must be in \[0, 1\]; received 1.5"),
        ("emf-k-means", {"rate": 0}, r"rate must be in \(0, 1\)"),
        ("emf-boxplot", {"threshold": math.inf}, r"threshold must be in \[0, 1\]"),
        ("emf-boxplot", {"factor": "wide"}, "factor must be a number"),
        ("emf-isolation-forest", {"trees": 0}, "trees must be a whole number"),
    ],
)
def test_parameters_are_checked(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        defences[name](**options)
