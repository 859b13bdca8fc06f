"""Frequencies of categories: the analysis, its answer, and the test that groups agree."""

from __future__ import annotations

import json
import math
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2, chi2_contingency

import unpoison
from unpoison import Estimate, Plan, Simulation, Summary, simulate
from unpoison.bench import plain_em
from unpoison.errors import InvalidParameter, NotEnoughData
from unpoison.estimate.statistic import Statistic
from unpoison.filters.buckets import Buckets
from unpoison.filters.em import maximise, shared_histogram
from unpoison.mechanisms import CategoricalMechanism, StackedTransition, make
from unpoison.protocols import (
    SCHEMES,
    FilterOptions,
    FrequencyAnalysis,
    analysis_of,
    estimate_dap,
)
from unpoison.protocols.unfiltered import unfiltered_answer
from unpoison.simulation.oracle_floor import HonestUsers, cramer_rao
from unpoison.types import FloatArray


def estimate(summary: Any, **options: Any) -> Estimate:
    """By the paper's baseline or EMF*, unless another method is asked for."""
    method = "baseline" if summary.plan.protocol == "baseline" else "emf-star"
    return unpoison.estimate(summary, **{"method": method, **options})


CLOSE = 1e-9
CATEGORICAL = ("k-rr", "k-rr-integer")
NAMES = ("tea", "coffee", "milk", "water", "juice")
HONEST = np.array([0.4, 0.3, 0.15, 0.1, 0.05])
every_mechanism = pytest.mark.parametrize("mechanism", CATEGORICAL)
every_scheme = pytest.mark.parametrize("scheme", SCHEMES)


def plan_of(
    mechanism: str = "k-rr",
    epsilon: float = 1.0,
    min_epsilon: float = 0.25,
    names: tuple[str, ...] = NAMES,
    **keys: Any,
) -> Plan:
    return Plan.new(mechanism, epsilon, min_epsilon=min_epsilon, categories=list(names), **keys)


def part_of(plan: Plan, group: int) -> CategoricalMechanism:
    part = plan.group_mechanisms[group]
    assert isinstance(part, CategoricalMechanism)
    return part


def counted(plan: Plan, rows: Any) -> Summary:
    counts = np.array(rows, dtype=np.int64)
    places = np.arange(plan.cells)
    return Summary(plan, counts, tuple(int(row @ places) * 2**32 for row in counts))


def group_counts(
    plan: Plan, group: int, users: Any, poison: FloatArray, attackers: int, rng: Any
) -> Any:
    """Reports of users (so many of each category) and of attackers, who send what poison says."""
    part, reports_per_user = part_of(plan, group), plan.all_groups[group].reports
    counts = rng.multinomial(attackers * reports_per_user, poison)
    for category, count in enumerate(users):
        chances = np.full(plan.cells, part.other)
        chances[category] = part.kept
        counts = counts + rng.multinomial(int(count) * reports_per_user, chances / chances.sum())
    return counts


@cache
def collected(
    plan: Plan,
    gamma: float = 0.0,
    targets: tuple[str, ...] = (),
    users: int = 20_000,
    seed: int = 1,
    groups: tuple[int, ...] | None = None,
) -> Summary:
    """A collection of as many users in each group, drawn from their counts.

    Attackers are in all groups, or in those named. In the baseline users are in both groups.
    """
    rng = np.random.default_rng(seed)
    names = plan.categories or ()
    honest = np.resize(HONEST, plan.cells)
    aimed = np.array([float(name in targets) for name in names])
    aimed = aimed / aimed.sum() if targets else np.full(len(names), 1 / len(names))
    rows: list[Any] = []
    values: Any = None
    for group in range(len(plan.all_groups)):
        attack = gamma if groups is None or group in groups else 0.0
        attackers = round(attack * users)
        if values is None or plan.protocol != "baseline":
            values = rng.multinomial(users - attackers, honest / honest.sum())
        rows.append(group_counts(plan, group, values, aimed, attackers, rng))
    return counted(plan, rows)


def analysed(summary: Summary, **options: Any) -> FrequencyAnalysis:
    groups = summary.plan.tier_groups(0)
    analysis = analysis_of(summary, groups, FilterOptions(**options))
    assert isinstance(analysis, FrequencyAnalysis)
    return analysis


def decoded(plan: Plan, group: int, shares: FloatArray) -> FloatArray:
    """The inverse of the dense matrix."""
    part = part_of(plan, group)
    matrix = np.full((plan.cells, plan.cells), part.other)
    np.fill_diagonal(matrix, part.kept)
    return np.asarray(np.linalg.solve(matrix, shares))


def nearest_shares(frequencies: FloatArray) -> FloatArray:
    """The nearest point of the simplex, by bisection on what is taken from all."""
    low, high = frequencies.min() - 1, frequencies.max()
    for _ in range(200):
        middle = (low + high) / 2
        more = np.maximum(frequencies - middle, 0).sum() > 1
        low, high = (middle, high) if more else (low, middle)
    return np.asarray(np.maximum(frequencies - low, 0.0))


# The analysis, against a plain one


def plain_answer(
    summary: Summary, scheme: str, targets: tuple[str, ...], suppression: float = 0.5
) -> tuple[FloatArray, list[FloatArray], float]:
    """Frequencies, each group's poison, and γ̂, with dense matrices and the targets given."""
    plan, groups = summary.plan, range(len(summary.plan.groups))
    support = np.array([name in targets for name in plan.categories or ()])
    counts = [summary.counts[t].astype(np.float64) for t in groups]
    buckets = [Buckets.for_reports(plan.group_mechanisms[t], int(counts[t].sum())) for t in groups]
    own = [plain_em.emf(buckets[t], counts[t], support).poison for t in groups]
    smallest = min(groups, key=lambda t: plan.groups[t].epsilon)
    gamma = float(own[smallest].sum())
    poison = []
    for t in groups:
        kept = own[t] >= suppression * gamma / (plan.cells / 2)
        left = np.where(kept & support if (kept & support).any() else support, own[smallest], 0)
        scaled = left * gamma / left.sum() if left.sum() else left
        poison.append({"emf": own[t], "emf-star": own[smallest], "cemf-star": scaled}[scheme])
    frequencies, weights = [], []
    for t in groups:
        left = counts[t] / counts[t].sum() - poison[t]
        frequencies.append(decoded(plan, t, left / left.sum()))
        part = part_of(plan, t)
        worst = max(part.kept * (1 - part.kept), part.other * (1 - part.other))
        weights.append(counts[t].sum() * left.sum() * (part.kept - part.other) ** 2 / worst)
    return np.average(frequencies, axis=0, weights=weights), poison, gamma


@every_mechanism
@every_scheme
@pytest.mark.parametrize("targets", [("water",), ("tea",), ("tea", "juice"), ()])
def test_an_estimate_equals_the_plain_one(
    mechanism: str, scheme: str, targets: tuple[str, ...]
) -> None:
    summary = collected(plan_of(mechanism), 0.25 if targets else 0.0, targets)
    expected, poison, gamma = plain_answer(summary, scheme, targets)
    answer = estimate(summary, method=scheme, post_processing="none")
    assert answer.byzantine.categories == targets
    assert answer.byzantine.fraction == pytest.approx(gamma, abs=CLOSE)
    assert answer.frequencies is not None
    assert tuple(answer.frequencies) == NAMES
    np.testing.assert_allclose(list(answer.frequencies.values()), expected, atol=CLOSE)
    for group, group_poison in zip(answer.groups, poison, strict=True):
        assert group.byzantine_fraction == pytest.approx(group_poison.sum(), abs=CLOSE)
        assert group.frequencies is not None
        shares = summary.counts[group.group] / summary.reports[group.group] - group_poison
        np.testing.assert_allclose(
            list(group.frequencies.values()),
            decoded(summary.plan, group.group, shares / shares.sum()),
            atol=CLOSE,
        )


@every_mechanism
@every_scheme
def test_frequencies_before_post_processing_add_up_to_one(mechanism: str, scheme: str) -> None:
    summary = collected(plan_of(mechanism), 0.3, ("juice", "milk"))
    answer = estimate(summary, method=scheme, post_processing="none")
    assert answer.frequencies is not None
    assert sum(answer.frequencies.values()) == pytest.approx(1, abs=1e-9)
    parts = [group.frequencies for group in answer.groups]
    parts += [tier.frequencies for tier in answer.tiers]
    for part in parts:
        assert part is not None
        assert sum(part.values()) == pytest.approx(1, abs=1e-9)


@pytest.mark.slow
@every_scheme
@pytest.mark.parametrize("targets", [("juice",), ("tea",), ("coffee", "juice")])
def test_attackers_are_taken_out(scheme: str, targets: tuple[str, ...]) -> None:
    summary = collected(plan_of(min_epsilon=0.0625), 0.25, targets, users=200_000)
    answer = estimate(summary, method=scheme)
    assert answer.byzantine.categories == targets
    assert answer.byzantine.fraction == pytest.approx(0.25, abs=0.03)
    assert answer.frequencies is not None
    error = np.abs(np.array(list(answer.frequencies.values())) - HONEST).max()
    plain_error = np.abs(np.array(list(answer.fit["unfiltered_frequencies"].values())) - HONEST)
    assert error < plain_error.max() / 2
    if scheme != "emf":
        assert error < 0.06


@every_mechanism
def test_all_schemes_are_alike_when_nobody_attacks(mechanism: str) -> None:
    summary = collected(plan_of(mechanism), users=50_000)
    answers = estimate_dap(summary)
    for answer in answers.values():
        assert answer.byzantine.categories == ()
        assert answer.byzantine.fraction == 0
        assert answer.frequencies == answers["emf"].frequencies
        assert answer.frequencies is not None
        assert np.abs(np.array(list(answer.frequencies.values())) - HONEST).max() < 0.03


def test_the_star_with_one_category_is_algorithm_4() -> None:
    summary = collected(plan_of(), 0.25, ("milk",))
    analysis = analysed(summary)
    gamma = analysis.probe.byzantine_fraction
    for group in analysis.groups:
        solution = analysis.solution("emf-star", group)
        counts = analysis.counts[group]
        (imposed,) = maximise([counts.emf_star(analysis.supports[group], gamma)])
        np.testing.assert_array_equal(solution.poison, analysis.probe.solution.poison)
        np.testing.assert_allclose(solution.poison, imposed.poison, atol=1e-15)
        assert solution.likelihood == pytest.approx(imposed.likelihood, abs=0.1)
        np.testing.assert_allclose(solution.honest, imposed.honest, atol=0.01)


def test_the_poison_of_the_smallest_epsilon_serves_all_groups() -> None:
    analysis = analysed(collected(plan_of(), 0.25, ("tea", "juice")))
    assert analysis.probing_group == 2
    for group in analysis.groups:
        assert analysis.supports[group].tolist() == [True, False, False, False, True]
        star = analysis.solution("emf-star", group)
        np.testing.assert_array_equal(star.poison, analysis.probe.solution.poison)
        assert star.honest.sum() == pytest.approx(1 - star.byzantine_fraction, abs=1e-12)
    own = [analysis.solution("emf", group).byzantine_fraction for group in analysis.groups]
    assert len(set(own)) == 3


@cache
def uneven() -> Summary:
    """Of ten attackers nine send tea and one juice."""
    plan, rng = plan_of(epsilon=0.5, min_epsilon=0.125), np.random.default_rng(1)
    poison = np.array([0.9, 0, 0, 0, 0.1])
    honest = (700_000 * HONEST).astype(int)
    return counted(plan, [group_counts(plan, t, honest, poison, 300_000, rng) for t in range(3)])


@pytest.mark.slow
def test_cemf_star_leaves_out_categories_with_little_poison_and_keeps_the_total() -> None:
    summary = uneven()
    star, concentrated = (analysed(summary, suppression=1.0) for _ in range(2))
    assert star.place() == {"categories": ("tea", "juice")}
    for group in star.groups:
        before = star.solution("emf-star", group)
        after = concentrated.solution("cemf-star", group)
        assert before.poison[4] > 0
        assert after.poison[4] == 0
        assert after.byzantine_fraction == pytest.approx(before.byzantine_fraction, abs=1e-12)
    expected, _, _ = plain_answer(summary, "cemf-star", ("tea", "juice"), suppression=1.0)
    answer = estimate(summary, method="cemf-star", suppression=1.0, post_processing="none")
    assert answer.frequencies is not None
    np.testing.assert_allclose(list(answer.frequencies.values()), expected, atol=CLOSE)


@pytest.mark.parametrize("suppression", [0.0, 0.1, 1e6])
def test_cemf_star_with_nothing_or_with_all_suppressed_is_emf_star(suppression: float) -> None:
    analysis = analysed(uneven(), suppression=suppression)
    for group in analysis.groups:
        star, other = (analysis.solution(s, group) for s in ("emf-star", "cemf-star"))
        np.testing.assert_allclose(star.poison, other.poison, atol=1e-15)


def test_the_rule_reaches_the_search() -> None:
    plan = plan_of(epsilon=math.log(2), min_epsilon=math.log(2), names=NAMES[:4])
    summary = counted(plan, [[190_000, 280_000, 260_000, 270_000]])
    by_rule = {
        rule: estimate(summary, side_rule=rule).byzantine.categories
        for rule in ("variance", "likelihood")
    }
    assert by_rule == {"variance": ("coffee",), "likelihood": ("water",)}


def test_a_picture_of_categories_adds_up_to_what_was_observed() -> None:
    many = tuple(f"c{place}" for place in range(200))
    for names in (NAMES, many):
        answer = estimate(collected(plan_of(names=names), 0.25, (names[2],)))
        for group in answer.groups:
            picture = group.picture
            assert picture is not None
            assert picture.edges[0] == 0
            assert picture.edges[-1] == len(names)
            assert len(picture.observed) == min(len(names), 64)
            assert sum(picture.observed) == pytest.approx(1)
            assert sum(picture.honest) + sum(picture.poison) == pytest.approx(1)
            assert sum(picture.poison) == pytest.approx(group.byzantine_fraction)


# Several tiers, and the baseline


def tiered() -> Summary:
    """The second tier's users drink nothing but water and are attacked otherwise."""
    tier = {"epsilon": 0.5, "min_epsilon": 0.25}
    plan = plan_of(epsilon=1.0, min_epsilon=0.25, tiers=[tier])
    rng = np.random.default_rng(3)
    first, second = (40_000 * HONEST).astype(int), np.array([0, 0, 0, 30_000, 0])
    tea, juice = np.eye(5)[0], np.eye(5)[4]
    rows = [group_counts(plan, group, first, tea, 10_000, rng) for group in range(3)]
    rows += [group_counts(plan, group, second, juice, 20_000, rng) for group in (3, 4)]
    return counted(plan, rows)


@every_scheme
def test_tiers_are_combined_by_their_honest_users(scheme: str) -> None:
    summary = tiered()
    answer = estimate(summary, method=scheme, post_processing="none")
    assert [tier.categories for tier in answer.tiers] == [("tea",), ("juice",)]
    assert answer.byzantine.categories == ("tea", "juice")
    gammas = [tier.byzantine_fraction for tier in answer.tiers]
    assert gammas == pytest.approx([0.2, 0.4], abs=0.03)
    assert answer.byzantine.fraction == pytest.approx(np.average(gammas, weights=[150, 100]))
    assert [tier.weight for tier in answer.tiers] == pytest.approx([120 / 180, 60 / 180], abs=0.1)
    combined = sum(
        tier.weight * np.array(list((tier.frequencies or {}).values())) for tier in answer.tiers
    )
    assert answer.frequencies is not None
    np.testing.assert_allclose(list(answer.frequencies.values()), combined, atol=1e-12)
    for group in answer.groups:
        assert group.tier == (0 if group.group < 3 else 1)


def test_each_tier_is_as_if_it_were_alone() -> None:
    summary = tiered()
    answer = estimate(summary, post_processing="none")
    alone = plan_of(epsilon=0.5, min_epsilon=0.25)
    second = estimate(counted(alone, summary.counts[3:]), post_processing="none")
    first = estimate(counted(plan_of(), summary.counts[:3]), post_processing="none")
    assert answer.tiers[0].frequencies == pytest.approx(first.frequencies, abs=1e-12)
    assert answer.tiers[1].frequencies == pytest.approx(second.frequencies, abs=1e-12)
    assert [tier.epsilon for tier in answer.tiers] == [1.0, 0.5]


@every_mechanism
def test_the_baseline_takes_the_poison_of_the_smaller_budget_from_the_other(
    mechanism: str,
) -> None:
    plan = plan_of(mechanism, 2.0, 0.25, protocol="baseline")
    summary = collected(plan, 0.25, ("milk",), users=200_000)
    answer = estimate(summary, post_processing="none")
    buckets = Buckets.for_reports(plan.group_mechanisms[1], 200_000)
    support = np.array([name == "milk" for name in NAMES])
    probed = plain_em.emf(buckets, summary.counts[1].astype(np.float64), support)
    left = summary.counts[0] / 200_000 - probed.poison
    assert answer.method == "baseline"
    assert answer.users == 200_000
    assert answer.byzantine.categories == ("milk",)
    assert answer.frequencies is not None
    np.testing.assert_allclose(
        list(answer.frequencies.values()), decoded(plan, 0, left / left.sum()), atol=CLOSE
    )
    assert np.abs(np.array(list(answer.frequencies.values())) - HONEST).max() < 0.05
    assert [group.weight for group in answer.groups] == [1, 0]


def test_the_baseline_finds_nothing_where_nobody_attacks() -> None:
    summary = collected(plan_of(epsilon=2.0, protocol="baseline"), users=200_000)
    answer = estimate(summary)
    assert answer.byzantine.categories == ()
    assert answer.frequencies is not None
    assert np.abs(np.array(list(answer.frequencies.values())) - HONEST).max() < 0.02


def test_schemes_and_protocols_do_not_mix() -> None:
    both = collected(plan_of(epsilon=2.0, protocol="baseline"))
    with pytest.raises(InvalidParameter, match="baseline"):
        estimate(both, method="emf")
    with pytest.raises(InvalidParameter, match="for a dap plan; received baseline"):
        estimate(collected(plan_of()), method="baseline")


# From simulated users to frequencies


@cache
def simulated(mechanism: str, attack: str) -> Simulation:
    drinks = np.random.default_rng(1).choice(NAMES, 60_000, p=HONEST)
    plan = plan_of(mechanism, min_epsilon=0.0625)
    return simulate(plan, drinks, attack, 0.25, np.random.default_rng(2))


@pytest.mark.slow
@every_mechanism
@pytest.mark.parametrize(
    ("attack", "poisoned"),
    [
        ("none", ()),
        ("targets:milk", ("milk",)),
        ("targets:juice,coffee", ("coffee", "juice")),
        ("maximal-gain", ("juice",)),
        ("maximal-gain:2", ("water", "juice")),
        ("random", NAMES),
    ],
)
def test_a_simulation_knows_frequencies_and_targets(
    mechanism: str, attack: str, poisoned: tuple[str, ...]
) -> None:
    run = simulated(mechanism, attack)
    assert run.poisoned == poisoned
    assert run.frequencies is not None
    assert tuple(run.frequencies) == NAMES
    assert sum(run.frequencies.values()) == pytest.approx(1)
    assert np.abs(np.array(list(run.frequencies.values())) - HONEST).max() < 0.02
    assert math.isnan(run.truth)
    assert run.honest is None
    assert run.floor == run.cramer_rao > 0
    answer = estimate(run.summary)
    assert answer.frequencies is not None
    if attack != "random":
        assert answer.byzantine.categories == poisoned
        errors = [answer.frequencies[name] - run.frequencies[name] for name in NAMES]
        assert np.mean(np.square(errors)) < 12 * run.floor


# Trusting everybody


@pytest.mark.slow
@pytest.mark.parametrize(
    ("epsilon", "min_epsilon", "cells", "users"),
    [
        (1.0, 0.0625, 5, 300),
        (4.0, 0.25, 5, 300),
        (1.0, 0.0625, 100, 300),
        (4.0, 0.25, 100, 300),
        (16.0, 4.0, 20, 200),
    ],
)
def test_honest_groups_seldom_differ(
    epsilon: float, min_epsilon: float, cells: int, users: int
) -> None:
    """Users of small budgets send up to sixteen reports each, and some categories are rare."""
    plan = plan_of("k-rr", epsilon, min_epsilon, tuple(map(str, range(cells))))
    groups = [list(range(len(plan.all_groups)))]
    rng = np.random.default_rng([cells, round(epsilon)])
    honest = rng.dirichlet(np.full(cells, 0.5))
    p_values = []
    for _ in range(100):
        rows = []
        for group in groups[0]:
            values = rng.multinomial(users, honest)
            rows.append(group_counts(plan, group, values, np.eye(cells)[0], 0, rng))
        p_values.append(unfiltered_answer(counted(plan, rows), groups).p_value)
    assert sum(p < 0.01 for p in p_values) <= 4
    assert sum(p < 0.1 for p in p_values) <= 20
    assert min(p_values) > 1e-4


def test_p_values_are_uniform_where_users_report_once() -> None:
    """Two groups of one report a user: nothing in the bound on the variance is to spare."""
    group = {"epsilon": 1.0, "reports": 1, "share": 0.5}
    plan = Plan.new("k-rr", 1.0, categories=list(NAMES), groups=[group, group])
    rng = np.random.default_rng(1)
    p_values = []
    for _ in range(200):
        values = rng.multinomial(3000, HONEST, size=2)
        rows = [group_counts(plan, t, values[t], np.eye(5)[0], 0, rng) for t in (0, 1)]
        p_values.append(unfiltered_answer(counted(plan, rows), [[0, 1]]).p_value)
    counts = np.histogram(p_values, np.linspace(0, 1, 5))[0]
    assert np.abs(counts - 50).max() < 5 * math.sqrt(200 * 3 / 16)


def test_the_statistic_of_two_groups_is_the_plain_one() -> None:
    """With equal budgets the test is Pearson's, of two rows of counts."""
    group = {"epsilon": 1.0, "reports": 1, "share": 0.5}
    plan = Plan.new("k-rr", 1.0, categories=list(NAMES), groups=[group, group])
    summary = counted(plan, [[240, 220, 190, 180, 170], [270, 190, 210, 175, 155]])
    answer = unfiltered_answer(summary, [[0, 1]])
    assert answer.p_value == pytest.approx(chi2_contingency(summary.counts).pvalue, rel=1e-6)
    together = decoded(plan, 0, summary.counts.sum(axis=0) / 2000)
    assert list((answer.frequencies or {}).values()) == pytest.approx(together.tolist(), abs=1e-9)


def test_the_statistic_of_unlike_groups_is_that_of_weighted_least_squares() -> None:
    """Frequencies that add up to 1, fitted by the normal equations, three times over."""
    plan = plan_of(epsilon=4.0, min_epsilon=1.0)
    rows = [[40, 35, 12, 8, 5], [60, 50, 50, 24, 16], [110, 90, 70, 76, 54]]
    shares = [np.array(row) / sum(row) for row in rows]
    fitted = np.full(5, 0.2)
    for _ in range(3):
        left, right, apart = np.zeros((6, 6)), np.zeros(6), 0.0
        left[5, :5] = left[:5, 5] = right[5] = 1.0
        terms = []
        for group, share in enumerate(shares):
            part, reports_per_user = part_of(plan, group), plan.groups[group].reports
            gain = part.kept - part.other
            expected = part.other + gain * nearest_shares(fitted)
            spread = expected * (1 + (reports_per_user - 1) * gain) / sum(rows[group])
            left[:5, :5] += np.diag(gain**2 / spread)
            right[:5] += gain * (share - part.other) / spread
            terms.append((share - part.other, gain, spread))
        fitted = np.linalg.solve(left, right)[:5]
        apart = sum(float(((y - gain * fitted) ** 2 / v).sum()) for y, gain, v in terms)
    answer = unfiltered_answer(counted(plan, rows), [[0, 1, 2]])
    assert answer.p_value == pytest.approx(chi2(8).sf(apart), rel=1e-6)
    assert 0.001 < answer.p_value < 0.9


def test_one_group_agrees_with_itself() -> None:
    plan = plan_of(epsilon=1.0, min_epsilon=1.0)
    summary = collected(plan, 0.25, ("milk",))
    answer = unfiltered_answer(summary, [[0]])
    assert answer.p_value == 1
    expected = decoded(plan, 0, summary.counts[0] / summary.counts[0].sum())
    assert list((answer.frequencies or {}).values()) == pytest.approx(expected.tolist())


def test_frequencies_of_everybody_are_unbiased_and_combine_tiers_by_users() -> None:
    summary = tiered()
    frequencies = estimate(summary, post_processing="none").fit["unfiltered_frequencies"]
    alone = [
        unfiltered_answer(counted(plan_of(), summary.counts[:3]), [[0, 1, 2]]),
        unfiltered_answer(counted(plan_of(epsilon=0.5), summary.counts[3:]), [[0, 1]]),
    ]
    first, second = (np.array(list((part.frequencies or {}).values())) for part in alone)
    np.testing.assert_allclose(list(frequencies.values()), 0.6 * first + 0.4 * second, atol=1e-12)
    assert sum(frequencies.values()) == pytest.approx(1)


@pytest.mark.parametrize("users", [3_000, 20_000])
def test_attackers_in_the_group_with_the_largest_budget_alone_are_noticed(users: int) -> None:
    summary = collected(plan_of(epsilon=2.0), 0.25, ("milk",), users, groups=(0,))
    answer = estimate(summary)
    assert answer.byzantine.categories == ()
    assert answer.fit["agreement_p_value"] < 1e-6
    assert answer.verdict.startswith("Somebody attacks in a way that emf-star does not see")
    assert "Do not rely on the frequencies" in answer.verdict


# The verdict


def test_nobody_is_accused_when_nobody_attacks() -> None:
    answer = estimate(collected(plan_of(), users=50_000))
    assert answer.verdict == "No attack found: honest users explain the reports by themselves."
    assert answer.fit["agreement_p_value"] > 1e-3
    assert answer.fit["chosen_by_rule"] is False
    deviances = answer.fit["deviance"]
    assert deviances["none"] == deviances["found"] <= deviances["allowed"]


def test_an_attack_is_named_with_its_categories_and_its_effect() -> None:
    answer = estimate(collected(plan_of(), 0.25, ("milk", "juice"), 50_000))
    assert answer.frequencies is not None
    plain_ones = answer.fit["unfiltered_frequencies"]
    assert "made-up reports of milk and juice" in answer.verdict
    assert f"{100 * answer.byzantine.fraction:.1f} % of users" in answer.verdict
    for name in ("milk", "juice"):
        assert f"{name} has {100 * answer.frequencies[name]:.1f} % without them" in answer.verdict
        assert f"{100 * plain_ones[name]:.1f} % with them" in answer.verdict
    deviances = answer.fit["deviance"]
    assert deviances["none"] > deviances["allowed"] >= deviances["found"]
    assert answer.fit["probing_group"] == 2


def test_only_some_of_many_targets_are_told() -> None:
    names = tuple(f"c{place}" for place in range(15))
    answer = estimate(collected(plan_of(names=names), 0.3, names[:5], 200_000))
    assert answer.byzantine.categories == names[:5]
    assert "made-up reports of c0, c1, c2 and 2 more" in answer.verdict
    assert "c2 has" in answer.verdict
    assert "c3 has" not in answer.verdict


def test_a_majority_of_attackers_is_said_to_break_every_method() -> None:
    plan = plan_of()
    answer = estimate(counted(plan, [[10, 10, 980, 10, 10]] * 3))
    assert answer.byzantine.fraction > 0.5
    assert answer.verdict.endswith("do not use the frequencies.")


def test_a_choice_by_rule_is_said_to_be_one() -> None:
    plan = plan_of(epsilon=math.log(2), min_epsilon=math.log(2), names=NAMES[:4])
    answer = estimate(counted(plan, [[190_000, 270_000, 270_000, 270_000]]))
    assert answer.fit["chosen_by_rule"] is True
    assert answer.verdict.endswith("take the names with care.")


# The answer as JSON


def no_key(keys: Any, *names: str) -> None:
    if isinstance(keys, dict):
        assert not set(names) & set(keys)
        for value in keys.values():
            no_key(value, *names)
    elif isinstance(keys, list):
        for value in keys:
            no_key(value, *names)


def refuse(name: str) -> None:
    raise AssertionError(f"{name} is not JSON")


CONTRACT = [("dap", method, 0.25, ("milk", "tea")) for method in (*SCHEMES, "ostrich")] + [
    ("baseline", "baseline", 0.25, ("milk",)),
    ("dap", "emf-star", 0.0, ()),
]


@pytest.mark.parametrize(("protocol", "method", "gamma", "targets"), CONTRACT)
@pytest.mark.parametrize("post_processing", ["none", "clip", "norm-sub"])
def test_the_json_of_categories_has_frequencies_and_names(
    protocol: str, method: str, gamma: float, targets: tuple[str, ...], post_processing: str
) -> None:
    summary = collected(plan_of(epsilon=2.0, protocol=protocol), gamma, targets)
    answer = estimate(summary, method=method, post_processing=post_processing)
    text = answer.to_json()
    keys = json.loads(text, parse_constant=refuse)
    assert list(keys["frequencies"]) == list(NAMES)
    no_key(keys, "mean", "side", "distribution", "unfiltered_mean", "log_likelihood")
    located = targets if method != "ostrich" else ()
    assert tuple(keys["byzantine"]["categories"]) == tuple(n for n in NAMES if n in located)
    assert math.isnan(answer.mean)
    again = Estimate.from_json(text)
    assert again == answer
    assert again.to_json() == text
    if method != "ostrich":
        assert set(keys["fit"]["unfiltered_frequencies"]) == set(NAMES)
        assert all(set(group["frequencies"]) == set(NAMES) for group in keys["groups"])
        assert all("categories" in tier for tier in keys["tiers"])
        assert len(keys["byzantine"]["histogram"]["fractions"]) == len(NAMES)


@pytest.mark.parametrize("mechanism", ["piecewise", "square-wave"])
@pytest.mark.parametrize("method", [*SCHEMES, "ostrich", "trimming"])
def test_the_json_of_numbers_has_neither(mechanism: str, method: str) -> None:
    plan = Plan.new(mechanism, 1.0, min_epsilon=0.5, low=0, high=1)
    values = np.random.default_rng(1).beta(2, 5, 2000)
    summary = simulate(plan, values, "none", 0, np.random.default_rng(2)).summary
    answer = estimate(summary, method=method)
    keys = json.loads(answer.to_json(), parse_constant=refuse)
    no_key(keys, "frequencies", "categories", "unfiltered_frequencies", "deviance")
    assert keys["mean"] == answer.mean
    assert keys["distribution"] is None
    assert "side" in keys["byzantine"]
    assert Estimate.from_json(answer.to_json()) == answer


def test_names_of_any_kind_survive_json() -> None:
    names = ('say "tea"', "café, au lait", "mean", "side", "7", " ")
    answer = estimate(collected(plan_of(names=names), 0.25, ("mean", "7")))
    assert answer.byzantine.categories == ("mean", "7")
    keys = json.loads(answer.to_json())
    assert tuple(keys["frequencies"]) == names
    assert Estimate.from_json(answer.to_json()) == answer


# Ostrich


@every_mechanism
def test_ostrich_is_em_over_all_groups(mechanism: str) -> None:
    plan = plan_of(mechanism)
    summary = collected(plan, 0.25, ("milk",))
    total = summary.counts.sum()
    rows = []
    for group, part in enumerate(plan.group_mechanisms):
        matrix = part.transition(np.empty(0), np.empty(0)).dense()
        rows.append(matrix * summary.counts[group].sum() / total)
    fit = plain_em.expectation_maximisation(
        np.vstack(rows),
        summary.counts.ravel().astype(np.float64),
        np.full(5, 0.2),
        np.zeros(15),
        plain_em.free,
        0.0001 * math.e,
    )
    frequencies = estimate(summary, method="ostrich").frequencies
    assert list((frequencies or {}).values()) == pytest.approx(
        (fit.honest / fit.honest.sum()).tolist()
    )
    assert frequencies is not None
    assert frequencies["milk"] > 0.5


def test_trimming_refuses_categories() -> None:
    with pytest.raises(InvalidParameter, match="must be one that takes categories"):
        estimate(collected(plan_of()), method="trimming")


def test_ostrich_works_with_few_reports_or_none_in_some_groups() -> None:
    plan = plan_of()
    summary = counted(plan, [[4, 3, 0, 1, 0], [0, 0, 0, 0, 0], [400, 300, 150, 100, 50]])
    frequencies = estimate(summary, method="ostrich").frequencies
    assert sum((frequencies or {}).values()) == pytest.approx(1)
    for bad in ([[4, 3, 0, 1, 0], [0] * 5, [2, 1, 1, 1, 1]], [[1] * 5, [1] * 5, [1] * 5]):
        with pytest.raises(NotEnoughData, match="at least 16 reports that are trusted"):
            estimate(counted(plan, bad), method="ostrich")


def test_a_scheme_needs_reports_in_every_group() -> None:
    with pytest.raises(NotEnoughData, match=r"received 10 in the group of epsilon 1$"):
        estimate(counted(plan_of(), [[2] * 5, [200] * 5, [200] * 5]))


# Several groups, one histogram


def test_stacked_transitions_are_the_parts_under_one_another() -> None:
    parts = [make("k-rr", epsilon, 4) for epsilon in (0.5, 2.0)]
    transitions = [part.transition(np.empty(0), np.empty(0)) for part in parts]
    stacked = StackedTransition(transitions, [0.25, 0.75])
    expected = np.vstack([0.25 * transitions[0].dense(), 0.75 * transitions[1].dense()])
    np.testing.assert_allclose(stacked.dense(), expected, atol=1e-15)
    weights = np.arange(8.0)
    np.testing.assert_allclose(stacked.adjoint(weights), expected.T @ weights, atol=1e-12)
    assert stacked.dense().sum(axis=0) == pytest.approx(np.ones(4))


@pytest.mark.parametrize("mechanism", ["piecewise", "square-wave", "square-wave-integer"])
def test_a_shared_histogram_of_numbers_is_a_plain_ems_of_stacked_matrices(mechanism: str) -> None:
    rng = np.random.default_rng(1)
    parts = [make(mechanism, epsilon, 256) for epsilon in (1.0, 0.5)]
    counts = rng.multinomial([400, 900], np.full(256, 1 / 256))
    edges, solution = shared_histogram(parts, counts)
    buckets = [Buckets(part, out, 20) for part, out in zip(parts, (20, 30), strict=True)]
    shares = (400 / 1300, 900 / 1300)
    matrix = np.vstack([b.transition.dense() * s for b, s in zip(buckets, shares, strict=True)])
    binned = [plain_em.bucket_counts(b, row) for b, row in zip(buckets, counts, strict=True)]
    start = np.full(20, 1 / 20)
    fit = plain_em.expectation_maximisation(
        matrix, np.concatenate(binned), start, np.zeros(50), plain_em.smoothed, 0.01 * math.e
    )
    np.testing.assert_allclose(edges, buckets[0].input_edges)
    np.testing.assert_allclose(solution.honest, fit.honest, atol=1e-9)
    assert solution.iterations == fit.iterations


# The least error


@every_mechanism
@pytest.mark.parametrize("epsilon", [0.25, 1.0, 4.0])
@pytest.mark.parametrize("honest", [HONEST, np.array([0.96, 0.01, 0.01, 0.01, 0.01])])
def test_the_cramer_rao_bound_is_the_covariance_of_maximum_likelihood(
    mechanism: str, epsilon: float, honest: FloatArray
) -> None:
    plan = plan_of(mechanism, epsilon, epsilon)
    users = 10_000
    inputs = np.repeat(np.arange(5.0), (users * honest).round().astype(int))
    part = part_of(plan, 0)
    matrix = np.full((5, 5), part.other) + np.eye(5) * (part.kept - part.other)
    shares = matrix @ honest
    inverse = np.linalg.inv(matrix)
    multinomial = (np.diag(shares) - np.outer(shares, shares)) / users
    covariance = inverse @ multinomial @ inverse.T
    own = (np.diag(honest) - np.outer(honest, honest)) / users
    bound = cramer_rao(HonestUsers(plan, inputs, np.array([float(users)])))
    assert bound == pytest.approx(np.trace(covariance - own) / 5, rel=1e-9)
    assert bound > 0


def dense_bound(plan: Plan, honest: FloatArray, users: FloatArray) -> float:
    """The information of all reports, inverted on what leaves the sum as it is."""
    present = honest > 0
    total = np.zeros((int(present.sum()),) * 2)
    for group, part in enumerate(plan.all_groups):
        matrix = plan.group_mechanisms[group].transition(np.empty(0), np.empty(0)).dense()
        reports = users[group] * part.reports
        seen = matrix[:, present]
        total += reports * seen.T @ np.diag(1 / (matrix @ honest)) @ seen
    basis = np.linalg.svd(np.ones((1, len(total))))[2][1:].T
    covariance = basis @ np.linalg.inv(basis.T @ total @ basis) @ basis.T
    return float(np.trace(covariance)) / len(honest)


@pytest.mark.parametrize("honest", [HONEST, np.array([0.5, 0.0, 0.3, 0.0, 0.2])])
def test_the_cramer_rao_bound_of_several_groups_is_that_of_dense_algebra(
    honest: FloatArray,
) -> None:
    plan, users = plan_of(), np.array([1000.0, 2000.0, 3000.0])
    inputs = np.repeat(np.arange(5.0), (1000 * honest).round().astype(int))
    own = float((honest * (1 - honest)).sum()) / 5 / 6000
    expected = dense_bound(plan, honest, users) - own
    assert cramer_rao(HonestUsers(plan, inputs, users)) == pytest.approx(expected, rel=1e-9)


def test_the_cramer_rao_bound_is_not_above_what_a_linear_estimator_has() -> None:
    """The optimal weights of groups are at best as good, category by category."""
    plan, users = plan_of(), np.full(3, 1000.0)
    inputs = np.repeat(np.arange(5.0), (1000 * HONEST).astype(int))
    variances = []
    for group, part in enumerate(plan.groups):
        mechanism = part_of(plan, group)
        gain = mechanism.kept - mechanism.other
        shares = mechanism.other + gain * HONEST
        variances.append((shares * (1 - shares)).sum() / gain**2 / (1000 * part.reports))
    linear = 1 / sum(1 / variance for variance in variances) / 5
    own = float((HONEST * (1 - HONEST)).sum()) / 5 / 3000
    bound = cramer_rao(HonestUsers(plan, inputs, users))
    assert 0.9 * (linear - own) < bound <= linear - own


def test_the_bound_is_reached_by_decoding_one_group() -> None:
    plan = plan_of(epsilon=1.0, min_epsilon=1.0)
    rng = np.random.default_rng(1)
    values = (2000 * HONEST).astype(int)
    errors = []
    for _ in range(300):
        counts = group_counts(plan, 0, values, np.eye(5)[0], 0, rng)
        errors.append(np.mean((decoded(plan, 0, counts / 2000) - HONEST) ** 2))
    bound = cramer_rao(HonestUsers(plan, np.repeat(np.arange(5.0), values), np.array([2000.0])))
    assert np.mean(errors) == pytest.approx(bound, rel=0.2)


@pytest.mark.parametrize("cells", [2, 5000])
def test_the_bound_is_quick_and_finite_for_any_number_of_categories(cells: int) -> None:
    plan = plan_of(names=tuple(map(str, range(cells))))
    inputs = (np.arange(10_000) % cells).astype(np.float64)
    assert 0 < cramer_rao(HonestUsers(plan, inputs, np.full(3, 3000.0))) < math.inf


def test_the_bound_is_zero_where_all_are_in_one_category() -> None:
    assert cramer_rao(HonestUsers(plan_of(), np.zeros(100), np.full(3, 30.0))) == 0


# What is asked


def test_what_is_asked_must_fit_the_plan() -> None:
    summary = collected(plan_of())
    for name in ("mean", "distribution"):
        with pytest.raises(InvalidParameter, match="statistic must be frequencies for categories"):
            estimate(summary, statistic=name)
    with pytest.raises(InvalidParameter, match="did you mean 'frequencies'"):
        estimate(summary, statistic="frequency")
    with pytest.raises(InvalidParameter, match="did you mean 'norm-sub'"):
        estimate(summary, post_processing="normsub")
    numbers = Plan.new(epsilon=1.0, low=0, high=1)
    with pytest.raises(InvalidParameter, match="must be mean or distribution for numbers"):
        Statistic.of(numbers, "frequencies")
    with pytest.raises(InvalidParameter, match="goes with the frequencies of categories"):
        Statistic.of(numbers, "distribution", "clip")
    assert Statistic.of(numbers) == Statistic("mean")
    assert estimate(summary, statistic="frequencies") == estimate(summary)


@pytest.mark.parametrize("method", ["emf-star", "ostrich"])
def test_frequencies_are_post_processed_as_asked(method: str) -> None:
    summary = collected(plan_of(epsilon=0.125, min_epsilon=0.125), users=500)
    raw, clipped, projected = (
        np.array(
            list((estimate(summary, method=method, post_processing=p).frequencies or {}).values())
        )
        for p in ("none", "clip", "norm-sub")
    )
    if method == "emf-star":
        assert raw.min() < 0
    np.testing.assert_allclose(clipped, np.clip(raw, 0, 1))
    np.testing.assert_allclose(projected, nearest_shares(raw), atol=1e-9)
    default = estimate(summary, method=method).frequencies
    assert list((default or {}).values()) == projected.tolist()
