"""The baseline and DAP: groups, weights, tiers and estimates."""

from __future__ import annotations

import json
import math
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unpoison import Estimate, Plan, Simulation, Summary, estimate, simulate
from unpoison.bench import plain_schemes as plain
from unpoison.errors import ConvergenceWarning, InvalidParameter, NotEnoughData
from unpoison.estimate.methods import default_method, estimates, find_method, method_names
from unpoison.protocols import (
    SCHEMES,
    FilterOptions,
    MeanAnalysis,
    analysis_of,
    combined_variance,
    estimate_baseline,
    estimate_dap,
    group_weights,
    minimal_variance,
)
from unpoison.summary.binning import Binner

CLOSE = 1e-9
NUMERICAL = ("piecewise", "piecewise-integer", "square-wave", "square-wave-integer")
WEIGHTS = ("optimal", "paper")


def far_right(mechanism: str) -> str:
    return "uniform:3C/4,C" if mechanism.startswith("piecewise") else "uniform:1+b/2,1+b"


@cache
def collection(
    mechanism: str = "piecewise",
    epsilon: float = 1.0,
    min_epsilon: float = 0.25,
    users: int = 20_000,
    attack: str = "",
    byzantine_fraction: float = 0.25,
    seed: int = 2,
    protocol: str = "dap",
    shared_poison: bool = True,
) -> Simulation:
    """Beta(2,5) users on a scale of 0 to 1."""
    plan = Plan.new(mechanism, epsilon, min_epsilon, low=0, high=1, protocol=protocol)
    values = np.random.default_rng(1).beta(2, 5, users)
    rng = np.random.default_rng(seed)
    attack = attack or far_right(mechanism)
    return simulate(plan, values, attack, byzantine_fraction, rng, shared_poison=shared_poison)


# The whole of DAP against the plain one


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", NUMERICAL)
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("weights", WEIGHTS)
def test_dap_equals_the_plain_implementation(mechanism: str, scheme: str, weights: str) -> None:
    run = collection(mechanism)
    expected = plain.dap(run.summary, scheme, weights)
    answer = estimate(run.summary, method=scheme, weights=weights)
    plan = run.summary.plan
    assert answer.mean == pytest.approx(plan.natural(expected.mean), abs=CLOSE)
    assert answer.byzantine.side == expected.side
    assert answer.byzantine.fraction == pytest.approx(expected.gamma, abs=CLOSE)
    for group, mean, weight, fit in zip(
        answer.groups, expected.group_means, expected.weights, expected.fits, strict=True
    ):
        assert group.mean == pytest.approx(plan.natural(mean), abs=CLOSE)
        assert group.weight == pytest.approx(weight, abs=CLOSE)
        assert group.byzantine_fraction == pytest.approx(fit.gamma, abs=CLOSE)
        assert group.iterations == fit.iterations


@pytest.mark.parametrize("rule", ["variance", "likelihood"])
def test_dap_equals_the_plain_implementation_where_ratios_are_no_powers_of_two(rule: str) -> None:
    run = collection("piecewise", 1.5, 0.2, 10_000, "uniform:-C,-C/2")
    expected = plain.dap(run.summary, "emf-star", rule=rule)
    answer = estimate(run.summary, method="emf-star", side_rule=rule)
    assert answer.mean == pytest.approx(run.summary.plan.natural(expected.mean), abs=CLOSE)
    assert answer.byzantine.side == expected.side == "left"


def test_schemes_give_the_same_alone_and_together() -> None:
    summary = collection().summary
    together = estimate_dap(summary)
    assert tuple(together) == SCHEMES
    for scheme in SCHEMES:
        alone = estimate_dap(summary, [scheme])[scheme]
        assert alone.mean == pytest.approx(together[scheme].mean, abs=1e-11)
        assert alone.byzantine == together[scheme].byzantine
        assert [g.iterations for g in alone.groups] == [
            g.iterations for g in together[scheme].groups
        ]


def test_the_side_and_the_fraction_come_from_the_group_with_the_smallest_epsilon() -> None:
    answers = estimate_dap(collection().summary)
    emf, star = answers["emf"], answers["emf-star"]
    budgets = [group.epsilon for group in emf.groups]
    smallest = budgets.index(min(budgets))
    assert emf.fit["probing_group"] == smallest
    assert emf.byzantine.fraction == emf.groups[smallest].byzantine_fraction
    assert len({group.byzantine_fraction for group in emf.groups}) == len(budgets)
    for group in star.groups:
        assert group.byzantine_fraction == pytest.approx(star.byzantine.fraction)


# Group means


@pytest.mark.parametrize("mechanism", ["piecewise", "piecewise-integer"])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_group_mean_is_the_sum_less_the_poison_over_the_honest_reports(
    mechanism: str, scheme: str
) -> None:
    summary = collection(mechanism).summary
    analysis = MeanAnalysis(summary, summary.plan.tier_groups(0), FilterOptions())
    for group in analysis.groups:
        part, reports = summary.plan.group_mechanisms[group], int(summary.reports[group])
        total = reports * float(part.decode(np.array(summary.sum(group) / reports)))
        poison = analysis.solution(scheme, group).poison
        buckets = analysis.counts[group].buckets
        middles = part.decode(part.bucket_values(buckets.output_edges))
        expected = (total - reports * (poison @ middles)) / (reports - reports * poison.sum())
        assert analysis.mean(scheme, group) == pytest.approx(expected, rel=1e-9)


def test_the_mean_is_the_weighted_mean_of_the_groups() -> None:
    for scheme in SCHEMES:
        answer = estimate(collection().summary, method=scheme)
        assert sum(group.weight for group in answer.groups) == pytest.approx(1)
        combined = sum(group.weight * group.mean for group in answer.groups)
        assert answer.mean == pytest.approx(combined, abs=1e-12)


def test_a_picture_adds_up_to_what_was_observed() -> None:
    for group in estimate(collection().summary, method="emf").groups:
        assert group.picture is not None
        assert sum(group.picture.observed) == pytest.approx(1)
        fitted = sum(group.picture.honest) + sum(group.picture.poison)
        assert fitted == pytest.approx(1, abs=1e-9)
        assert sum(group.picture.poison) == pytest.approx(group.byzantine_fraction)
        assert len(group.picture.edges) == len(group.picture.observed) + 1


# Weights


sizes = st.floats(1.0, 1e6)
spreads = st.floats(0.1, 1e4)


@settings(deadline=None)
@given(st.lists(st.tuples(sizes, spreads), min_size=1, max_size=6), st.integers(0, 2**32 - 1))
def test_no_weights_beat_the_optimal_ones(groups: list[tuple[float, float]], seed: int) -> None:
    reports, variances = (np.array(column) for column in zip(*groups, strict=True))
    weights = group_weights("optimal", reports, reports, variances)
    least = combined_variance(weights, reports, variances)
    assert weights.sum() == pytest.approx(1)
    assert least == pytest.approx(minimal_variance(reports, variances))
    rng = np.random.default_rng(seed)
    for concentration in (0.1, 1.0, 10.0):
        other = rng.dirichlet(np.full(len(reports), concentration))
        assert combined_variance(other, reports, variances) >= least * (1 - 1e-12)


@settings(deadline=None)
@given(st.lists(spreads, min_size=1, max_size=6), sizes)
def test_the_weights_of_the_paper_are_optimal_where_all_groups_have_equally_many_users(
    variances: list[float], honest: float
) -> None:
    spread, users = np.array(variances), np.full(len(variances), honest)
    weights = group_weights("paper", users, users, spread)
    assert combined_variance(weights, users, spread) == pytest.approx(
        minimal_variance(users, spread)
    )


@settings(deadline=None)
@given(st.lists(st.tuples(sizes, spreads), min_size=1, max_size=6))
def test_the_weights_of_the_paper_are_as_printed(groups: list[tuple[float, float]]) -> None:
    users, variances = (np.array(column) for column in zip(*groups, strict=True))
    inverse = sum(1 / (n * v) for n, v in groups)
    printed = [1 / (n * v * inverse) for n, v in groups]
    np.testing.assert_allclose(group_weights("paper", users, users, variances), printed)


def test_the_weights_of_the_paper_are_worse_where_groups_differ_in_size() -> None:
    users, variances = np.array([100.0, 1000.0]), np.array([2.0, 2.0])
    weights = group_weights("paper", users, users, variances)
    assert combined_variance(weights, users, variances) > 2 * minimal_variance(users, variances)


def test_the_weights_of_an_estimate_count_honest_reports() -> None:
    summary = collection().summary
    answer = estimate(summary, method="emf")
    gammas = np.array([group.byzantine_fraction for group in answer.groups])
    variances = np.array([part.worst_variance for part in summary.plan.group_mechanisms])
    honest = summary.reports * (1 - gammas)
    expected = honest / variances / (honest / variances).sum()
    np.testing.assert_allclose([group.weight for group in answer.groups], expected)


def test_both_kinds_of_weights_can_be_chosen() -> None:
    summary = collection().summary
    by_rule = {rule: estimate(summary, method="emf-star", weights=rule) for rule in WEIGHTS}
    assert {rule: answer.fit["weights"] for rule, answer in by_rule.items()} == {
        rule: rule for rule in WEIGHTS
    }
    shares = {rule: [g.weight for g in answer.groups] for rule, answer in by_rule.items()}
    assert shares["optimal"] != pytest.approx(shares["paper"])


# The baseline


def baseline(mechanism: str = "piecewise", *, shared_poison: bool = True) -> Simulation:
    return collection(
        mechanism, 2.0, 0.25, 100_000, protocol="baseline", shared_poison=shared_poison
    )


@pytest.mark.parametrize("mechanism", NUMERICAL)
def test_the_baseline_recovers_the_mean_when_both_reports_carry_the_same_poison(
    mechanism: str,
) -> None:
    run = baseline(mechanism)
    answer = estimate_baseline(run.summary)
    ignored = estimate(run.summary, method="ostrich")
    assert answer.byzantine.side == "right"
    assert abs(answer.mean - run.truth) < 0.15
    assert abs(answer.mean - run.truth) < abs(ignored.mean - run.truth) / 2


def test_the_baseline_is_absurd_when_poison_scales_with_the_report_domain() -> None:
    run = baseline(shared_poison=False)
    answer = estimate_baseline(run.summary)
    assert abs(answer.byzantine.fraction - 0.25) < 0.03
    assert answer.mean < -1


def test_the_baseline_is_the_formula_of_the_paper() -> None:
    summary = baseline().summary
    analysis = analysis_of(summary, [0, 1], FilterOptions())
    poison = analysis.probe.solution.poison
    gamma = poison.sum()
    middles = analysis.counts[1].buckets.decoded_values
    poison_mean = (poison @ middles) / gamma
    count = int(summary.reports[0])
    mean = (summary.sum(0) - count * gamma * poison_mean) / (count - count * gamma)
    answer = estimate_baseline(summary)
    assert answer.mean == pytest.approx(summary.plan.natural(mean), abs=CLOSE)
    assert [group.weight for group in answer.groups] == [1, 0]


def test_users_of_the_baseline_count_once() -> None:
    assert estimate_baseline(baseline().summary).users == 100_000


def test_the_baseline_needs_both_reports_of_every_user() -> None:
    plan = baseline().summary.plan
    binner = Binner(plan)
    binner.add_group(0, np.zeros(100))
    binner.add_group(1, np.zeros(99))
    with pytest.raises(NotEnoughData, match="100 and 99"):
        estimate_baseline(binner.summary())


# Tiers


def tiered() -> tuple[Simulation, Plan]:
    tier = {"epsilon": 0.5, "min_epsilon": 0.25}
    plan = Plan.new(epsilon=1.0, min_epsilon=0.25, low=0, high=1, tiers=[tier])
    rng = np.random.default_rng(1)
    cautious = rng.random(40_000) < 0.4
    values = np.where(cautious, rng.beta(5, 2, 40_000), rng.beta(2, 5, 40_000))
    budgets = np.where(cautious, 0.6, 3.0)
    run = simulate(plan, values, "uniform:3C/4,C", 0.25, np.random.default_rng(2), budgets=budgets)
    return run, plan


@pytest.mark.slow
def test_each_tier_is_estimated_as_if_it_were_alone() -> None:
    run, plan = tiered()
    answer = estimate(run.summary, method="emf-star")
    for number, tier in enumerate(plan.all_tiers):
        groups = list(plan.tier_groups(number))
        alone_plan = Plan("piecewise", tier.epsilon, tier.groups, low=0.0, high=1.0)
        sums = tuple(run.summary.sums[group] for group in groups)
        alone = Summary(alone_plan, run.summary.counts[groups], sums)
        expected = estimate(alone, method="emf-star")
        assert answer.tiers[number].mean == pytest.approx(expected.mean, abs=CLOSE)
        assert answer.tiers[number].epsilon == tier.epsilon
        fraction = answer.tiers[number].byzantine_fraction
        assert fraction == pytest.approx(expected.byzantine.fraction, abs=CLOSE)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_tiers_are_combined_by_their_honest_users(scheme: str) -> None:
    run, plan = tiered()
    answer = estimate(run.summary, method=scheme)
    honest = []
    for number in range(len(plan.all_tiers)):
        groups = [answer.groups[group] for group in plan.tier_groups(number)]
        assert {group.tier for group in groups} == {number}
        assert sum(group.weight for group in groups) == pytest.approx(1)
        honest.append(sum(g.users * (1 - g.byzantine_fraction) for g in groups))
    shares = np.array(honest) / sum(honest)
    np.testing.assert_allclose([tier.weight for tier in answer.tiers], shares)
    means = [tier.mean for tier in answer.tiers]
    assert answer.mean == pytest.approx(float(shares @ means), abs=1e-12)


def test_the_fraction_of_attackers_is_averaged_over_the_users_of_all_tiers() -> None:
    run, plan = tiered()
    answer = estimate(run.summary, method="emf")
    users = [run.summary.users[list(plan.tier_groups(tier))].sum() for tier in (0, 1)]
    fractions = [tier.byzantine_fraction for tier in answer.tiers]
    assert fractions[0] != fractions[1]
    expected = np.average(fractions, weights=users)
    assert answer.byzantine.fraction == pytest.approx(expected)
    histogram = answer.byzantine.histogram
    assert histogram is not None
    assert sum(histogram.fractions) == pytest.approx(fractions[0])


def test_tiers_whose_values_differ_have_different_means_and_the_whole_is_between() -> None:
    run, _ = tiered()
    answer = estimate(run.summary, method="emf-star")
    careless, cautious = (tier.mean for tier in answer.tiers)
    assert careless < answer.mean < cautious
    assert cautious - careless > 0.1


# What is refused


@pytest.mark.parametrize("method", SCHEMES)
def test_the_schemes_of_dap_are_refused_for_a_baseline_plan(method: str) -> None:
    with pytest.raises(InvalidParameter, match="method must be baseline"):
        estimate(baseline().summary, method=method)


def test_the_baseline_is_refused_for_a_dap_plan() -> None:
    with pytest.raises(
        InvalidParameter, match="method must be joint, emf, emf-star, cemf-star or a defence"
    ):
        estimate(collection().summary, method="baseline")


def thin_summary(in_last_group: int) -> Summary:
    plan = Plan.new(epsilon=0.5, min_epsilon=0.25, low=0, high=1)
    binner = Binner(plan)
    rng = np.random.default_rng(1)
    for group, count in ((0, 1000), (1, in_last_group)):
        binner.add_group(group, plan.group_mechanisms[group].perturb(np.zeros(count), rng))
    return binner.summary()


@pytest.mark.parametrize("method", SCHEMES)
@pytest.mark.parametrize("reports", [0, 1, 15])
def test_a_group_that_is_empty_or_too_small_is_refused(method: str, reports: int) -> None:
    with pytest.raises(NotEnoughData, match=f"received {reports} in the group of epsilon 0.25"):
        estimate(thin_summary(reports), method=method)


@pytest.mark.filterwarnings("ignore::unpoison.errors.ConvergenceWarning")
@pytest.mark.parametrize("method", SCHEMES)
def test_the_smallest_group_that_is_allowed_has_an_answer(method: str) -> None:
    answer = estimate(thin_summary(16), method=method)
    assert math.isfinite(answer.mean)
    assert math.isfinite(answer.byzantine.fraction)


def test_no_reports_at_all_are_refused() -> None:
    summary = Summary.empty(Plan.new(epsilon=0.5, low=0, high=1))
    for method in method_names():
        if method != "baseline":
            with pytest.raises(NotEnoughData):
                estimate(summary, method=method)


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("weights", "best", "weights must be one of optimal, paper"),
        ("side_rule", "coin", "side_rule must be one of variance, likelihood"),
        ("initial_mean", "optimistic", "initial_mean must be one of middle, pessimistic"),
        ("gamma_sup", 0.6, r"gamma_sup must be in \(0, 1/2\]"),
        ("gamma_sup", 0, r"gamma_sup must be in \(0, 1/2\]"),
        ("suppression", -1, "suppression must not be negative"),
        ("suppression", math.nan, "suppression must be a finite number"),
        ("suppression", "much", "suppression must be a finite number"),
        ("max_iterations", 0, "max_iterations must be a whole number, at least 1"),
        ("max_iterations", 1.5, "max_iterations must be a whole number"),
        ("initial_mean", None, "initial_mean must be a finite number"),
    ],
)
def test_an_option_that_breaks_its_rule_is_refused_by_name(
    option: str, value: Any, message: str
) -> None:
    options: dict[str, Any] = {option: value}
    with pytest.raises(InvalidParameter, match=message) as caught:
        estimate(collection().summary, method="emf-star", **options)
    assert caught.value.parameter == option


@pytest.mark.parametrize("given_mean", [-0.1, 1.1])
def test_an_initial_mean_outside_the_value_range_is_refused(given_mean: float) -> None:
    with pytest.raises(InvalidParameter, match=r"initial_mean must be in \[0"):
        estimate(collection().summary, method="emf", initial_mean=given_mean)


def test_an_unknown_option_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="'weigths'"):
        estimate(collection().summary, method="emf", weigths="paper")


def test_an_unknown_method_is_refused_with_a_suggestion() -> None:
    with pytest.raises(InvalidParameter, match="did you mean 'emf-star'"):
        estimate(collection().summary, method="emf-sta")


# Choices that change the answer


@pytest.mark.parametrize(("alias", "name"), [("emf*", "emf-star"), ("cemf*", "cemf-star")])
def test_a_star_is_accepted_in_the_name_of_a_method(alias: str, name: str) -> None:
    assert find_method(alias).name == name
    summary = collection().summary
    assert estimate(summary, method=alias) == estimate(summary, method=name)


@pytest.mark.slow
def test_there_is_a_default_for_either_protocol() -> None:
    for summary in (collection().summary, baseline().summary):
        assert estimate(summary).method == default_method(summary.plan)
        assert default_method(summary.plan) in method_names()


def test_several_methods_at_once_answer_by_name() -> None:
    summary = collection().summary
    answers = estimates(summary, ["trimming", "emf*", "emf"])
    assert list(answers) == ["trimming", "emf-star", "emf"]
    assert all(answer.method == name for name, answer in answers.items())


def test_the_initial_mean_moves_the_poison_range() -> None:
    summary = collection().summary

    def poisoned(**options: Any) -> tuple[int, float]:
        histogram = estimate(summary, method="emf", **options).byzantine.histogram
        assert histogram is not None
        inside = np.flatnonzero(np.array(histogram.fractions) > 0)
        return int(inside[0]), histogram.edges[int(inside[0])]

    middle, low, high = poisoned(), poisoned(initial_mean=0.0), poisoned(initial_mean=1.0)
    assert low[0] < middle[0] < high[0]
    assert poisoned(initial_mean=0.5) == middle
    assert poisoned(initial_mean="pessimistic")[1] <= middle[1]
    assert low[1] <= -1 + 1e-9


def test_the_iteration_bound_reaches_the_estimate() -> None:
    with pytest.warns(ConvergenceWarning):
        answer = estimate(collection().summary, method="emf", max_iterations=5)
    assert not answer.converged
    assert max(group.iterations for group in answer.groups) == 5
    assert estimate(collection().summary, method="emf").converged


# The Estimate


@pytest.mark.parametrize("method", [*SCHEMES, "ostrich", "trimming"])
def test_an_estimate_survives_its_json_form(method: str) -> None:
    answer = estimate(collection().summary, method=method)
    assert Estimate.from_json(answer.to_json()) == answer
    assert "\n" not in answer.to_json()


@pytest.mark.slow
def test_the_estimate_of_a_baseline_and_of_tiers_survive_their_json_form() -> None:
    for summary in (baseline().summary, tiered()[0].summary):
        answer = estimate(summary)
        assert Estimate.from_json(answer.to_json()) == answer


@pytest.mark.parametrize("method", SCHEMES)
def test_an_estimate_has_the_keys_that_are_promised(method: str) -> None:
    keys = json.loads(estimate(collection().summary, method=method).to_json())
    assert {"mean", "interval", "byzantine", "groups", "fit", "converged", "verdict"} <= set(keys)
    assert keys["interval"] is None
    assert keys["converged"] is True
    assert isinstance(keys["verdict"], str)
    assert {"fraction", "side", "histogram"} <= set(keys["byzantine"])
    assert keys["byzantine"]["side"] in {"left", "right", "both", "none"}
    histogram = keys["byzantine"]["histogram"]
    assert len(histogram["edges"]) == len(histogram["fractions"]) + 1
    assert sum(histogram["fractions"]) == pytest.approx(keys["byzantine"]["fraction"])
    promised = {"epsilon", "reports", "mean", "weight", "byzantine_fraction"}
    assert all(promised <= set(group) for group in keys["groups"])
    assert [group["epsilon"] for group in keys["groups"]] == [1.0, 0.5, 0.25]


@pytest.mark.parametrize(
    "text",
    ["", "null", "[]", "{}", '{"mean": 1}', '{"byzantine": "x"}', '{"byzantine": []}', "3"],
)
def test_foreign_json_is_refused_as_an_estimate(text: str) -> None:
    with pytest.raises(InvalidParameter, match="estimate must be an estimate's JSON"):
        Estimate.from_json(text)


def test_an_estimate_with_a_part_of_the_wrong_shape_is_refused() -> None:
    keys = estimate(collection().summary, method="emf").to_dict()
    broken: list[dict[str, object]] = [
        {**keys, "byzantine": {**keys["byzantine"], "histogram": [1]}},
        {**keys, "groups": ["x"]},
        {**keys, "tiers": [1]},
        {**keys, "interval": 5},
        {**keys, "colour": "red"},
    ]
    for broken_keys in broken:
        with pytest.raises(InvalidParameter, match="estimate must be"):
            Estimate.from_json(json.dumps(broken_keys))


def test_the_verdict_says_whether_there_is_an_attack() -> None:
    attacked = estimate(collection().summary, method="emf-star")
    nobody = collection("piecewise", 0.125, 0.0625, 200_000, "none")
    peaceful = estimate(nobody.summary, method="emf-star")
    assert "upper end" in attacked.verdict
    assert "No clear attack" in peaceful.verdict


def test_natural_units_scale_the_answer() -> None:
    values = np.random.default_rng(1).beta(2, 5, 20_000)
    means = []
    for low, high in ((0.0, 1.0), (-50.0, 150.0)):
        plan = Plan.new(epsilon=1.0, min_epsilon=0.25, low=low, high=high)
        scaled = np.clip(low + values * (high - low), low, high)
        run = simulate(plan, scaled, "uniform:3C/4,C", 0.25, np.random.default_rng(2))
        means.append((estimate(run.summary, method="emf-star").mean - low) / (high - low))
    assert means[0] == pytest.approx(means[1], abs=1e-6)


# Accuracy, as ratios to the oracle floor


def errors(method: str, mechanism: str, trials: int, users: int = 200_000) -> list[float]:
    """Errors in units of the root of the floor."""
    scaled_errors = []
    for seed in range(trials):
        run = collection(mechanism, 2.0, 0.25, users, seed=seed)
        answer = estimate(run.summary, method=method)
        scaled_errors.append((answer.mean - run.truth) / math.sqrt(run.floor))
    return scaled_errors


def mean_square(ratios: list[float]) -> float:
    return float(np.mean(np.square(ratios)))


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", NUMERICAL)
def test_emf_star_is_far_nearer_to_the_floor_than_ostrich(mechanism: str) -> None:
    ours = mean_square(errors("emf-star", mechanism, 4))
    ostrich = mean_square(errors("ostrich", mechanism, 4))
    assert ostrich > 10_000
    assert ours < ostrich / 300
    assert ours < 200


@pytest.mark.slow
def test_imposing_the_probed_fraction_beats_plain_emf() -> None:
    assert mean_square(errors("emf-star", "piecewise", 4)) < mean_square(
        errors("emf", "piecewise", 4)
    )


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", ["piecewise", "square-wave"])
def test_integer_mechanisms_are_as_good_as_continuous_ones(mechanism: str) -> None:
    trials = 10
    continuous = np.array(errors("emf-star", mechanism, trials, 50_000))
    integer = np.array(errors("emf-star", f"{mechanism}-integer", trials, 50_000))
    spread = math.sqrt((continuous.var(ddof=1) + integer.var(ddof=1)) / trials)
    assert abs(continuous.mean() - integer.mean()) < 5 * spread
    assert mean_square(integer.tolist()) < 3 * mean_square(continuous.tolist())


@pytest.mark.slow
@pytest.mark.usefixtures("no_cramer_rao")
def test_without_an_attack_ostrich_reaches_the_floor_of_its_collection() -> None:
    ratios = []
    for seed in range(200):
        run = collection("piecewise", 1.0, 1.0, 5_000, "none", 0.0, seed)
        answer = estimate(run.summary, method="ostrich")
        ratios.append((answer.mean - run.truth) ** 2 / run.floor)
    assert abs(np.mean(ratios) - 1) < 5 * math.sqrt(2 / len(ratios))


@pytest.mark.slow
def test_a_tier_without_users_is_left_out() -> None:
    plan = Plan.new(epsilon=1.0, min_epsilon=0.25, low=0, high=1, tiers=[{"epsilon": 0.5}])
    values = np.random.default_rng(1).beta(2, 5, 20_000)
    run = simulate(plan, values, "uniform:3C/4,C", 0.25, np.random.default_rng(2))
    answer = estimate(run.summary)
    assert [tier.epsilon for tier in answer.tiers] == [1.0]
    assert {group.tier for group in answer.groups} == {0}
    with pytest.raises(NotEnoughData, match="needs reports"):
        estimate(Summary.empty(plan))


@pytest.mark.filterwarnings("ignore::unpoison.errors.ConvergenceWarning")
def test_an_estimate_has_converged_only_if_what_it_rests_on_has() -> None:
    summary = collection().summary
    bounds = (5, 60, 100_000)
    for method in SCHEMES:
        verdicts = [estimate(summary, method=method, max_iterations=bound) for bound in bounds]
        assert [answer.converged for answer in verdicts][::2] == [False, True]
    probed = MeanAnalysis(summary, range(len(summary.plan.groups)), FilterOptions()).probe
    last = max(solution.iterations for solution in probed.solutions.values())
    assert not estimate(summary, method="emf-star", max_iterations=last - 1).converged
