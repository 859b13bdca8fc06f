"""Poison in ranges: score tests, the models they lead to, and intervals that allow for it."""

from __future__ import annotations

import numpy as np
import pytest

from unpoison import Plan, simulate
from unpoison.filters.joint import (
    Fit,
    Intervals,
    JointCounts,
    ModelSearch,
    PoisonModel,
    choose_model,
    fit,
)
from unpoison.filters.joint.faint_mixture import FaintMixture
from unpoison.filters.joint.faint_poison import FaintPoison
from unpoison.filters.joint.poison_ranges import (
    End,
    PoisonRange,
    coarse_ranges,
    fine_ranges,
    range_shapes,
)
from unpoison.filters.joint.range_search import foreseen_gains, search_missing_poison

PLAN = Plan.new(epsilon=1.0, min_epsilon=0.125, low=-1, high=1)
GROUPS = len(PLAN.all_groups)
EVERYBODY = np.ones(GROUPS, dtype=bool)


def counts_of(attack: str, gamma: float, users: int = 100_000, seed: int = 1) -> JointCounts:
    rng = np.random.default_rng(seed)
    values = 2 * rng.beta(2, 5, users) - 1
    return JointCounts.of(simulate(PLAN, values, attack, gamma, rng).summary, range(GROUPS))


def nobody_fit(counts: JointCounts) -> Fit:
    return fit(counts, PoisonModel.nobody(*counts.counts.shape))


def test_a_score_test_agrees_with_the_fit_that_it_stands_for() -> None:
    counts = counts_of("uniform:C/2,C", 0.01)
    start, chosen = nobody_fit(counts), PoisonRange(End(0.75), End(1.0))
    shape = range_shapes([chosen], counts)[0]
    faint = FaintPoison.besides(start, EVERYBODY[None], [chosen])
    fitted = fit(counts, PoisonModel.on_range(chosen, shape, EVERYBODY))
    assert faint.shares[0, 0] == pytest.approx(fitted.attacker_shares.mean(), abs=0.001)
    # Both without the bound that keeps histograms from being negative.
    moved = fitted.free_mean(counts.values)[0] - start.free_mean(counts.values)[0]
    foreseen = faint.shares[0, 0] * float(faint.honest_slopes[0, 0] @ counts.values)
    assert foreseen == pytest.approx(moved, abs=0.1 * abs(moved))


def test_poison_that_a_fit_has_is_not_found_again_beside_it() -> None:
    counts = counts_of("uniform:C/2,C", 0.1)
    chosen = PoisonRange(End(0.75), End(1.0))
    with_it = fit(counts, PoisonModel.alike(np.arange(counts.counts.shape[1]) >= 48, GROUPS))
    before = FaintPoison.besides(nobody_fit(counts), EVERYBODY[None], [chosen])
    beside = FaintPoison.besides(with_it, EVERYBODY[None], [chosen])
    assert before.deviations[0, 0] > 10
    assert abs(beside.deviations[0, 0]) < 4


@pytest.mark.slow
def test_a_score_test_is_a_standard_normal_where_nobody_attacks() -> None:
    chosen = [PoisonRange(End(0.75), End(1.0)), PoisonRange(End(0.0), End(0.25))]
    deviations = [
        FaintPoison.besides(nobody_fit(counts_of("none", 0, 20_000, seed)), None, chosen).deviations
        for seed in range(12)
    ]
    assert abs(np.mean(deviations)) < 0.5
    assert 0.6 < np.std(deviations) < 1.5


def test_a_range_from_a_value_is_at_another_place_of_each_group() -> None:
    counts = counts_of("none", 0, 20_000)
    middle = PoisonRange(End(0.75, of_values=True), End(1.0))
    first = (range_shapes([middle], counts)[0] > 0).argmax(axis=1)
    assert first[0] > first[1] > first[2] >= first[3] >= counts.counts.shape[1] // 2
    same_place = range_shapes([PoisonRange(End(0.75), End(1.0))], counts)[0]
    assert np.allclose(same_place, same_place[0])


def test_shapes_sum_to_one_and_empty_ranges_to_nothing() -> None:
    counts = counts_of("none", 0, 20_000)
    ranges = [*coarse_ranges(counts.counts.shape[1]), PoisonRange(End(0.9), End(0.8))]
    sums = range_shapes(ranges, counts).sum(axis=2)
    assert np.allclose(sums[:-1], 1)
    assert not sums[-1].any()


@pytest.mark.parametrize("ranges", [coarse_ranges(64), fine_ranges(64)])
def test_no_range_covers_the_whole_domain(ranges: list[PoisonRange]) -> None:
    assert all((chosen.low, chosen.high) != (End(0.0), End(1.0)) for chosen in ranges)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("attack", "attacked"), [("uniform:O,C", [0, 1, 2, 3]), ("some-groups:1;uniform:C/2,C", [1])]
)
def test_broad_poison_is_described_by_one_number(attack: str, attacked: list[int]) -> None:
    choice = choose_model(counts_of(attack, 0.08))
    assert choice.best.model.kind == "range"
    assert np.flatnonzero(choice.best.model.attacked).tolist() == attacked
    assert choice.best.attacker_shares[attacked[0]] == pytest.approx(0.08, abs=0.02)


def test_missing_poison_is_added_to_the_support() -> None:
    counts = counts_of("evasion:0.5,-C/2,3C/4,C", 0.3)
    search = ModelSearch(counts)
    right = search.fit(PoisonModel.alike(np.arange(counts.counts.shape[1]) >= 56, GROUPS))
    search_missing_poison(search)
    assert search.is_better(search.best, right)
    assert search.best.model.support[:, :32].any()


def test_a_range_that_nothing_speaks_for_costs_more_than_it_gains() -> None:
    assert (foreseen_gains(FaintPoison.besides(nobody_fit(counts_of("none", 0)))) > 0).all()


@pytest.mark.slow
def test_intervals_allow_for_attackers_who_are_too_few_to_be_noticed() -> None:
    covered, plain = [], []
    for seed in range(20):
        counts = counts_of("uniform:O,C", 0.004, 100_000, seed)
        truth = float(2 * np.random.default_rng(seed).beta(2, 5, 100_000).mean() - 1)
        nobody = nobody_fit(counts)
        middle, error = nobody.free_mean(counts.values)
        low, high = FaintMixture.besides(nobody).interval(nobody, counts.values, error)
        covered.append(low < truth < high)
        plain.append(abs(middle - truth) < 1.96 * error)
    assert np.mean(covered) >= 0.9
    assert np.mean(covered) > np.mean(plain)


@pytest.mark.slow
def test_the_mean_is_averaged_over_poison_that_may_be_there() -> None:
    choice = choose_model(counts_of("uniform:3C/4,C", 0.004, users=50_000))
    values, mixture = choice.counts.values, FaintMixture.besides(choice.best)
    means = [
        choice.best.mean(values) + share * float(mixture.honest_slopes[place] @ values)
        for place, share in zip(mixture.places, mixture.shares, strict=True)
    ]
    answer = Intervals(choice).expected_mean(values)
    assert answer == pytest.approx(float(mixture.probabilities @ means))
    assert answer != choice.best.mean(values)


@pytest.mark.slow
def test_the_averaged_mean_is_nearer_to_the_truth_than_a_model_without_faint_poison() -> None:
    truth, alone, averaged = 2 * 2 / 7 - 1, [], []
    for seed in range(20):
        counts = counts_of("uniform:C/2,C", 0.01, users=20_000, seed=seed)
        nobody = nobody_fit(counts)
        shift = FaintMixture.besides(nobody).expected_shift(counts.values)
        alone.append(nobody.mean(counts.values) - truth)
        averaged.append(alone[-1] + shift)
    assert np.mean(np.square(averaged)) < 0.9 * np.mean(np.square(alone))


@pytest.mark.slow
def test_intervals_of_honest_collections_are_hardly_wider() -> None:
    ratios = []
    for seed in range(8):
        choice = choose_model(counts_of("none", 0, 100_000, seed))
        low, high = Intervals(choice).mean(choice.counts.values)
        error = choice.best.free_mean(choice.counts.values)[1]
        ratios.append((high - low) / (2 * 1.96 * error))
    assert 1.0 <= np.median(ratios) < 1.5


def test_probabilities_of_a_mixture_sum_to_one_for_categories_too() -> None:
    plan = Plan.new("k-rr", 1.0, categories=["a", "b", "c"])
    run = simulate(plan, np.tile(["a", "b", "b", "c"], 5000), rng=np.random.default_rng(1))
    counts = JointCounts.of(run.summary, range(len(plan.all_groups)))
    nobody = nobody_fit(counts)
    mixture = FaintMixture.besides(nobody)
    assert mixture.probabilities.sum() == pytest.approx(1)
    low, high = mixture.interval(nobody, np.array([1.0, 0.0, 0.0]), 0.01)
    assert 0 <= low < 0.25 < high < 0.5
