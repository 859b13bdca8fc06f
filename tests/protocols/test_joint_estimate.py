"""The joint method from a summary to its answer, interval, p-value, worst case and verdict."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy.stats import chi2

from unpoison import Estimate, Plan, Simulation, Summary, estimate, simulate
from unpoison.errors import InvalidParameter, NotEnoughData
from unpoison.estimate.distribution import wasserstein
from unpoison.estimate.statistic import Statistic
from unpoison.filters.joint import JointCounts, PoisonModel, fit, nobody_p_value
from unpoison.protocols import FilterOptions
from unpoison.protocols.assembly import combined_interval
from unpoison.protocols.joint import estimate_of_analyses
from unpoison.protocols.joint_analysis import JointAnalysis
from unpoison.simulation.population import Population

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_cramer_rao")]

USERS = 20_000
PLAN = Plan.new(epsilon=1.0, min_epsilon=0.25, low=0, high=100)
VALUES = 100 * np.random.default_rng(1).beta(2, 5, USERS)
NAMES = ("tea", "coffee", "milk", "water", "juice")
HELD = Population(np.array(NAMES), np.array([8_000, 5_000, 4_000, 2_000, 1_000]))
KINDS = {
    "piecewise": ("uniform:3C/4,C", "right"),
    "square-wave": ("uniform:1+b/2,1+b", "right"),
    "piecewise-integer": ("uniform:-C,-3C/4", "left"),
    "square-wave-integer": ("uniform:-b,-b/2", "left"),
}


@cache
def run_of(
    attack: str, share: float = 0.25, seed: int = 2, plan: Plan = PLAN, users: int = USERS
) -> Simulation:
    values = 100 * np.random.default_rng(1).beta(2, 5, users)
    return simulate(plan, Population.of(values), attack, share, np.random.default_rng(seed))


@cache
def answer_of(attack: str, share: float = 0.25, seed: int = 2) -> Estimate:
    return estimate(run_of(attack, share, seed).summary, method="joint")


def possible_mean(answer: Estimate) -> tuple[float, float]:
    assert answer.worst_case is not None
    assert answer.worst_case.mean_range is not None
    return answer.worst_case.mean_range


def covers(interval: Sequence[float] | None, truth: float) -> bool:
    assert interval is not None
    return interval[0] - 1e-12 <= truth <= interval[1] + 1e-12


@pytest.mark.parametrize("mechanism", KINDS)
def test_every_mechanism_for_numbers_is_answered(mechanism: str) -> None:
    attack, side = KINDS[mechanism]
    plan = Plan.new(mechanism, 1.0, min_epsilon=0.25, low=0, high=100)
    run = run_of(attack, plan=plan)
    answer = estimate(run.summary, method="joint")
    assert answer.method == "joint"
    assert answer.converged
    assert answer.fit["fits"]
    assert answer.byzantine.side == side
    assert answer.byzantine.fraction == pytest.approx(0.25, abs=0.02)
    assert answer.interval is not None
    assert answer.interval[0] <= answer.mean <= answer.interval[1]
    half = (answer.interval[1] - answer.interval[0]) / 2
    assert abs(answer.mean - run.truth) < 2 * half
    assert half < 5
    assert answer.users == USERS
    assert [group.epsilon for group in answer.groups] == [1.0, 0.5, 0.25]
    for group in answer.groups:
        assert group.byzantine_fraction == pytest.approx(0.25, abs=0.03)
        assert group.picture is not None
        both = np.add(group.picture.honest, group.picture.poison)
        assert both.sum() == pytest.approx(1)
        assert abs(both - group.picture.observed).max() < 0.02


@pytest.mark.parametrize("mechanism", ["k-rr", "k-rr-integer"])
def test_categories_get_frequencies_each_with_an_interval(mechanism: str) -> None:
    plan = Plan.new(mechanism, 2.0, min_epsilon=0.5, categories=NAMES)
    run = simulate(plan, HELD, "targets:juice", 0.2, np.random.default_rng(1))
    answer = estimate(run.summary, method="joint")
    intervals = answer.fit["frequency_intervals"]
    assert answer.frequencies is not None
    assert run.frequencies is not None
    assert list(intervals) == list(NAMES)
    assert sum(answer.frequencies.values()) == pytest.approx(1, abs=1e-6)
    inside = [covers(intervals[name], run.frequencies[name]) for name in NAMES]
    assert sum(inside) >= 4
    for name in NAMES:
        assert covers(intervals[name], answer.frequencies[name])
        assert intervals[name][1] - intervals[name][0] < 0.1
    assert answer.byzantine.categories == ("juice",)
    assert answer.byzantine.fraction == pytest.approx(0.2, abs=0.02)
    assert answer.interval is None
    assert "made-up reports of juice" in answer.verdict
    assert "percentage points" in answer.verdict


@pytest.mark.parametrize(("attack", "nearer"), [("none", 1.4), ("uniform:3C/4,C", 5)])
def test_a_distribution_is_told_when_asked_for(attack: str, nearer: float) -> None:
    run = run_of(attack)
    answer = estimate(run.summary, method="joint", statistic="distribution")
    plain = estimate(run.summary, method="ostrich", statistic="distribution")
    assert answer.distribution is not None
    assert plain.distribution is not None
    assert run.honest is not None
    assert answer.distribution.mean == pytest.approx(answer.mean, abs=1e-3)
    apart = wasserstein(answer.distribution, run.honest)
    assert apart < wasserstein(plain.distribution, run.honest) / nearer
    for share in (0.1, 0.25, 0.5, 0.75, 0.9):
        assert covers(answer.distribution.quantile_interval(share), run.honest.quantile(share))
    assert answer_of("uniform:3C/4,C").distribution is None
    assert Estimate.from_json(answer.to_json()) == answer


def test_quantiles_that_the_data_cannot_give_are_named() -> None:
    few = run_of("none", users=500).summary
    answer = estimate(few, method="joint", statistic="distribution")
    assert answer.distribution is not None
    assert answer.distribution.unresolved
    assert "The data cannot give the " in answer.verdict
    assert f"{100 * answer.distribution.unresolved[-1]:.0f} % quantile" in answer.verdict
    assert "quantile" not in estimate(few, method="joint").verdict
    many = estimate(run_of("none").summary, method="joint", statistic="distribution")
    assert many.distribution is not None
    assert 0.5 not in (many.distribution.unresolved or ())


def test_any_distribution_is_possible_where_attackers_are_the_majority() -> None:
    analysis = JointAnalysis(run_of("uniform:3C/4,C").summary, range(3))
    majority = replace(analysis.fit, attacker_shares=np.full(3, 0.6))
    analysis.__dict__["choice"] = replace(analysis.choice, best=majority)
    assert analysis.distribution().quantile_interval(0.5) == (0.0, 100.0)


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    held = []
    for seed in range(7):
        for attack, share in (("none", 0.0), ("point:C", 0.25), ("evasion:0.3", 0.25)):
            run = run_of(attack, share, seed, users=5_000)
            answer = estimate(run.summary, method="joint")
            held.append(covers(answer.interval, run.truth))
    assert sum(held) >= 18


@pytest.mark.parametrize("attack", ["point:C", "adaptive", "evasion:0.5"])
def test_errors_are_far_below_those_of_emf_star(attack: str) -> None:
    joint, star = [], []
    for seed in (2, 3, 4):
        run = run_of(attack, 0.25, seed)
        joint.append(answer_of(attack, 0.25, seed).mean - run.truth)
        star.append(estimate(run.summary, method="emf*").mean - run.truth)
    assert np.mean(np.square(joint)) < np.mean(np.square(star)) / 10


@pytest.mark.parametrize("attack", ["none", "uniform:3C/4,C", "opposite"])
def test_an_estimate_survives_json(attack: str) -> None:
    answer = answer_of(attack)
    again = Estimate.from_json(answer.to_json())
    assert again == answer
    assert again.worst_case is not None
    assert again.worst_case == answer.worst_case
    assert again.byzantine.interval == answer.byzantine.interval
    assert isinstance(again.byzantine.interval, tuple)


def test_an_estimate_of_categories_survives_json() -> None:
    plan = Plan.new("k-rr", 2.0, min_epsilon=0.5, categories=NAMES)
    run = simulate(plan, HELD, "maximal-gain:2", 0.2, np.random.default_rng(1))
    answer = estimate(run.summary, method="joint")
    assert Estimate.from_json(answer.to_json()).to_json() == answer.to_json()


def test_the_share_of_attackers_has_an_interval_around_it() -> None:
    for attack, share in (("point:C", 0.25), ("uniform:3C/4,C", 0.1), ("evasion:0.3", 0.4)):
        answer = answer_of(attack, share)
        assert answer.byzantine.interval is not None
        low, high = answer.byzantine.interval
        assert 0 < low < answer.byzantine.fraction < high < 1
        assert covers((low, high), share)
        assert high - low < 0.1


def test_plans_and_summaries_that_cannot_be_answered_are_refused_in_a_line() -> None:
    baseline = Plan.new(protocol="baseline", epsilon=1.0, low=0, high=1)
    run = simulate(baseline, np.full(2_000, 0.3), rng=np.random.default_rng(1))
    with pytest.raises(InvalidParameter, match=r"^method must be .*baseline.*; received .*joint"):
        estimate(run.summary, method="joint")
    with pytest.raises(NotEnoughData, match="received none"):
        estimate(Summary.empty(PLAN), method="joint")
    few = np.zeros((3, PLAN.cells), dtype=np.int64)
    few[:, :5] = 1
    with pytest.raises(NotEnoughData, match="at least 16 reports"):
        estimate(Summary(PLAN, few, (0, 0, 0)), method="joint")


def test_a_group_without_reports_is_left_out() -> None:
    summary = run_of("point:C").summary
    counts = summary.counts.copy()
    counts[2] = 0
    answer = estimate(Summary(PLAN, counts, (*summary.sums[:2], 0)), method="joint")
    assert len(answer.groups) == 2
    assert answer.mean == pytest.approx(answer_of("point:C").mean, abs=5)


@pytest.mark.parametrize("share", [0.51, -0.1, math.nan, True])
def test_a_share_for_the_worst_case_is_in_reason(share: float) -> None:
    with pytest.raises(InvalidParameter, match="attackers_at_most"):
        FilterOptions(attackers_at_most=share)


def test_the_worst_case_grows_with_the_share() -> None:
    run = run_of("none", 0.0)
    ranges = [
        possible_mean(estimate(run.summary, method="joint", attackers_at_most=share))
        for share in (0.02, 0.1, 0.3)
    ]
    lows, highs = zip(*ranges, strict=True)
    assert list(lows) == sorted(lows, reverse=True)
    assert list(highs) == sorted(highs)
    assert covers(ranges[0], run.truth)


@pytest.mark.parametrize(("value", "share"), [("1", 0.05), ("1", 0.2), ("-1", 0.2), ("0", 0.1)])
def test_the_worst_case_holds_the_truth_under_input_manipulation(value: str, share: float) -> None:
    run = run_of(f"input:{value}", share)
    answer = estimate(run.summary, method="joint", attackers_at_most=share)
    assert covers(possible_mean(answer), run.truth)
    assert answer.interval is not None
    assert not covers(answer.interval, run.truth) or value == "0"


@pytest.mark.parametrize("name", ["tea", "juice"])
def test_the_worst_case_holds_every_frequency_under_input_manipulation(name: str) -> None:
    plan = Plan.new("k-rr", 2.0, min_epsilon=0.5, categories=NAMES)
    run = simulate(plan, HELD, f"input:{name}", 0.1, np.random.default_rng(1))
    answer = estimate(run.summary, method="joint", attackers_at_most=0.1)
    assert answer.worst_case is not None
    assert run.frequencies is not None
    for key, (low, high) in answer.worst_case.frequency_ranges.items():
        assert low <= run.frequencies[key] <= high
    assert "no frequency is off by more than" in answer.verdict


def test_fewer_attackers_than_the_reports_need_are_refuted() -> None:
    answer = estimate(run_of("point:C").summary, method="joint", attackers_at_most=0.05)
    assert answer.worst_case is not None
    assert not answer.worst_case.possible
    assert 0.2 < answer.worst_case.least_attackers <= 0.25
    least = 100 * answer.worst_case.least_attackers
    assert f"At least {least:.1f} % of users attack" in answer.verdict


def test_the_default_allows_for_five_percent_more_than_the_fit() -> None:
    for attack, share in (("none", 0.0), ("point:C", 0.25)):
        answer = answer_of(attack, share)
        assert answer.worst_case is not None
        assert answer.byzantine.interval is not None
        assert answer.worst_case.attackers_at_most >= answer.byzantine.interval[1] + 0.05 - 1e-9
        assert answer.worst_case.attackers_at_most < answer.byzantine.interval[1] + 0.07


def test_an_answer_that_is_one_of_several_is_in_doubt() -> None:
    answer = answer_of("uniform:O,C")
    low, high = answer.fit["other_means"]
    assert answer.interval is not None
    assert high - low > 3 * (answer.interval[1] - answer.interval[0])
    assert answer.fit["doubt"]
    assert "not the only one" in answer.verdict
    plain = answer_of("point:C")
    assert plain.fit["other_means"] is None
    assert "not the only one" not in plain.verdict


def p_value(summary: Summary) -> float:
    counts = JointCounts.of(summary, range(len(summary.plan.groups)))
    return nobody_p_value(counts, fit(counts, PoisonModel.nobody(*counts.counts.shape)))


def test_the_p_value_of_nobody_is_spread_evenly_when_nobody_attacks() -> None:
    p_values = [p_value(run_of("none", 0.0, seed, users=1_000).summary) for seed in range(30)]
    assert np.mean(np.array(p_values) < 0.05) < 0.2
    assert 0.35 < np.mean(p_values) < 0.65
    assert 0.15 < np.std(p_values) < 0.4
    assert min(p_values) < 0.2
    assert max(p_values) > 0.8


@pytest.mark.parametrize("attack", ["point:C", "uniform:O,C", "opposite", "adaptive"])
def test_the_p_value_of_nobody_is_tiny_under_attack(attack: str) -> None:
    assert p_value(run_of(attack).summary) < 1e-9
    assert answer_of(attack).fit["nobody_attacks_p_value"] < 1e-9


def test_nobody_is_suspected_among_two_categories_at_a_large_budget() -> None:
    plan = Plan.new("k-rr", 8.0, min_epsilon=1.0, categories=("yes", "no"))
    population = Population(np.array(["no", "yes"]), np.array([10_000, 10_000]))
    p_values = [
        p_value(simulate(plan, population, "none", 0.0, np.random.default_rng(seed)).summary)
        for seed in range(20)
    ]
    assert np.mean(np.array(p_values) < 0.05) < 0.2


def test_the_verdict_on_an_attack_names_its_end_its_effect_and_the_worst_case() -> None:
    answer = answer_of("uniform:3C/4,C")
    assert answer.verdict.startswith("About 24.9 % of users send values ")
    assert "towards the upper end" in answer.verdict
    assert f"is {answer.mean:.2f} (95 %: " in answer.verdict
    assert f"with them it would be {answer.fit['unfiltered_mean']:.2f}" in answer.verdict
    low, high = possible_mean(answer)
    assert f"of each group, the mean is from {low:.2f} to {high:.2f}." in answer.verdict
    assert "lower end" in answer_of("uniform:-C,-3C/4").verdict
    assert "on both sides" in answer_of("evasion:0.5").verdict


def test_the_verdict_without_an_attack_says_so() -> None:
    answer = answer_of("none", 0.0)
    p = answer.fit["nobody_attacks_p_value"]
    assert answer.verdict.startswith(f"Nobody seems to attack (p = {p:.2g}). The mean is ")
    assert answer.byzantine.fraction == 0
    assert answer.byzantine.side == "none"
    assert "do not" not in answer.verdict


def test_one_group_is_not_trusted_to_tell_poison_from_honest_reports() -> None:
    plan = Plan.new(epsilon=0.25, min_epsilon=0.25, low=0, high=100)
    for attack, doubt in (("uniform:3C/4,C", True), ("none", False)):
        run = simulate(plan, VALUES, attack, 0.2, np.random.default_rng(2))
        answer = estimate(run.summary)
        assert ("One group alone cannot tell" in answer.verdict) == doubt
        assert answer.fit["doubt"] == doubt


def found_with(p_value: float) -> Estimate:
    """The estimate of an honest collection whose fit has a given p-value."""
    analysis = JointAnalysis(run_of("none", 0.0, 2).summary, range(3))
    shift = chi2.isf(p_value, analysis.fit.degrees_of_freedom) - analysis.fit.deviance
    best = replace(analysis.fit, deviance=analysis.fit.deviance + shift)
    choice = replace(analysis.choice, best=best, nobody=best, others=())
    analysis.__dict__["choice"] = choice
    return estimate_of_analyses([analysis], Statistic.of(analysis.summary.plan))


def test_a_model_that_hardly_fits_is_told() -> None:
    poor, good, none = (found_with(p_value) for p_value in (0.005, 0.5, 1e-5))
    assert "No model explains the reports well (p = 0.005)" in poor.verdict
    assert "Somebody may attack (p = 0.00" in poor.verdict
    assert poor.fit["doubt"]
    assert "with care" not in good.verdict
    assert good.verdict.startswith("No attackers were found (p = 0.")
    assert not good.fit["doubt"]
    assert "No model explains the reports: " in none.verdict


def test_noise_that_nobody_would_notice_is_told_where_it_would_change_the_answer() -> None:
    quiet = answer_of("none", 0.0)
    assert quiet.interval is not None
    low, high = quiet.fit["interval_with_noise"]
    assert low <= quiet.interval[0] < quiet.interval[1] <= high
    warned = [warns_of_noise(seed) for seed in range(6)]
    assert any(warned)
    assert not all(warned)


def warns_of_noise(seed: int) -> bool:
    """Whether the verdict speaks of noise; it must, if and only if the interval gets much wider."""
    answer = estimate(run_of("none", 0.0, seed, users=20_000).summary)
    assert answer.interval is not None
    low, high = answer.fit["interval_with_noise"]
    warned = "of users send noise: if they do, the mean is from" in answer.verdict
    assert warned == answer.fit["noise_could_hide"]
    assert warned == (high - low >= 1.25 * (answer.interval[1] - answer.interval[0]))
    return warned


TIERED = Plan.new(epsilon=1.0, low=0, high=100, min_epsilon=0.5, tiers=[{"epsilon": 0.5}])


def of_tiers(attack: str, share: float, seed: int) -> Simulation:
    budgets = np.repeat([1.0, 0.5], USERS)
    values = np.tile(VALUES, 2)
    return simulate(TIERED, values, attack, share, np.random.default_rng(seed), budgets=budgets)


def test_tiers_are_weighed_by_their_honest_users() -> None:
    run = of_tiers("point:C", 0.25, 1)
    answer = estimate(run.summary, method="joint")
    assert [tier.epsilon for tier in answer.tiers] == [1.0, 0.5]
    weights = np.array([tier.weight for tier in answer.tiers])
    assert weights.sum() == pytest.approx(1)
    assert np.allclose(weights, 0.5, atol=0.01)
    assert answer.mean == pytest.approx(weights @ [tier.mean for tier in answer.tiers])
    assert answer.byzantine.fraction == pytest.approx(0.25, abs=0.01)
    assert answer.interval is not None
    half = (answer.interval[1] - answer.interval[0]) / 2
    assert abs(answer.mean - run.truth) < 2 * half
    assert [group.tier for group in answer.groups] == [0, 0, 1, 1, 1, 1]
    assert Estimate.from_json(answer.to_json()) == answer


def test_a_tier_that_nothing_explains_is_told_in_the_evidence() -> None:
    run = of_tiers("none", 0.0, 1)
    counts = run.summary.counts.copy()
    counts[2:] = 0
    counts[2:, -1] = run.summary.reports[2:]
    top = [
        int(number) * round(part.output_high * 2**32)
        for number, part in zip(run.summary.reports, TIERED.group_mechanisms, strict=True)
    ]
    sums = (*run.summary.sums[:2], *top[2:])
    answer = estimate(Summary(TIERED, counts, sums), method="joint")
    assert "do not use the answer" in answer.verdict
    assert answer.fit["nobody_attacks_p_value"] < 1e-6


@pytest.mark.parametrize("tiers", [2, 3, 5])
def test_the_interval_of_tiers_that_all_doubt_alike_is_no_narrower_than_their_doubt(
    tiers: int,
) -> None:
    """Each tier says 0.30 ± 0.01, or 0.45 ± 0.01 if another model is true."""
    low, high = combined_interval([(0.29, 0.46)] * tiers, np.full(tiers, 1 / tiers))
    assert low <= 0.3
    assert high >= 0.45


def test_the_interval_of_the_share_covers_the_other_models_too() -> None:
    run = run_of("noise", 0.25, 2, users=30_000)
    answer = estimate(run.summary, method="joint")
    assert "nobody" in {answer.fit["model"], *answer.fit["other_models"]}
    assert "even" in {answer.fit["model"], *answer.fit["other_models"]}
    assert covers(answer.byzantine.interval, 0.0)
    assert covers(answer.byzantine.interval, 0.25)


SPIKES = {
    "all at the upper end": np.array([1.0]),
    "half at the lower end": np.concatenate([[0.0] * 400, np.linspace(0.1, 0.6, 400)]),
}


@pytest.mark.parametrize("name", SPIKES)
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_many_users_with_equal_values_are_not_taken_for_attackers(
    name: str, epsilon: float
) -> None:
    values = SPIKES[name]
    distinct, numbers = np.unique(values, return_counts=True)
    population = Population(distinct, numbers * (1_000_000 // len(values)))
    plan = Plan.new(epsilon=epsilon, min_epsilon=epsilon / 8, low=0, high=1)
    run = simulate(plan, population, "none", 0.0, np.random.default_rng(1))
    answer = estimate(run.summary, method="joint")
    assert answer.fit["fits"]
    assert answer.byzantine.fraction < 0.001
    assert answer.mean == pytest.approx(run.truth, abs=0.005)
    assert answer.verdict.startswith("Nobody seems to attack")
