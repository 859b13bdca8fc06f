"""Probing for poison: initial means, buckets, poison ranges, side rules, and closed forms."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import optimize

from unpoison import Plan, Simulation, estimate, simulate
from unpoison.bench import plain_em
from unpoison.errors import InvalidParameter
from unpoison.filters.buckets import Buckets
from unpoison.filters.em import (
    GroupCounts,
    ImposedFraction,
    Probe,
    maximise,
    middle_of_inputs,
    pessimistic_mean,
    probe,
    smoothed_mean,
)
from unpoison.filters.sides import without_extremes
from unpoison.mechanisms import Mechanism, make
from unpoison.types import BoolArray, FloatArray

Vector = np.ndarray[tuple[int], np.dtype[np.float64]]
SIDES = ("left", "right")
NUMERICAL = ("piecewise", "piecewise-integer", "square-wave", "square-wave-integer")
FAR = {
    ("piecewise", "right"): "uniform:3C/4,C",
    ("piecewise", "left"): "uniform:-C,-3C/4",
    ("square-wave", "right"): "uniform:1+b/2,1+b",
    ("square-wave", "left"): "uniform:-b,-b/2",
}


def far(mechanism: str, side: str) -> str:
    return FAR[mechanism.removesuffix("-integer"), side]


def collection(
    attack: str,
    epsilon: float,
    users: int = 50_000,
    mechanism: str = "piecewise",
    byzantine_fraction: float = 0.25,
    seed: int = 2,
) -> Simulation:
    """One group of Beta(2,5) users, each with one report at ε."""
    plan = Plan.new(mechanism=mechanism, epsilon=epsilon, min_epsilon=epsilon, low=0, high=1)
    values = np.random.default_rng(1).beta(2, 5, users)
    return simulate(plan, values, attack, byzantine_fraction, np.random.default_rng(seed))


def probed(run: Simulation, rule: str) -> Probe:
    group = GroupCounts.of(run.summary, 0)
    middle = middle_of_inputs(group.buckets.mechanism)
    return probe(group, dict.fromkeys(SIDES, middle), rule)


# Theorem 2: O'


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mechanism", "byzantine_fraction"),
    [
        ("piecewise", 0.1),
        ("piecewise", 0.45),
        ("piecewise-integer", 0.1),
        ("piecewise-integer", 0.45),
        ("square-wave", 0.1),
        ("square-wave", 0.45),
        ("square-wave-integer", 0.1),
        ("square-wave-integer", 0.45),
    ],
)
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("epsilon", [0.25, 1.0, 4.0])
def test_the_pessimistic_mean_is_on_the_safe_side_of_the_honest_mean(
    mechanism: str, side: str, epsilon: float, byzantine_fraction: float
) -> None:
    attack = far(mechanism, side)
    run = collection(attack, epsilon, 20_000, mechanism, byzantine_fraction)
    part = run.summary.plan.group_mechanisms[0]
    guess = pessimistic_mean(part, run.summary.counts[0], side)
    truth = run.summary.plan.normalise_one(run.truth)
    assert guess <= truth if side == "right" else guess >= truth
    assert part.input_low <= guess <= part.input_high


cells_of_reports = st.lists(st.integers(0, 63), min_size=2, max_size=40)


@settings(deadline=None)
@given(cells_of_reports, st.data(), st.sampled_from([0.2, 0.35, 0.5]))
def test_no_poison_of_any_shape_makes_the_pessimistic_mean_unsafe(
    honest: list[int], data: st.DataObject, gamma_sup: float
) -> None:
    most = int(gamma_sup * len(honest) / (1 - gamma_sup))
    poison = data.draw(st.lists(st.integers(0, 63), max_size=most))
    assume(len(poison) <= gamma_sup * (len(poison) + len(honest)))
    part = make("piecewise", 1.0, cells=64)
    reports = np.array(honest + poison)
    counts = np.bincount(reports, minlength=64)
    decoded = part.decode(part.bucket_values(part.grid()))
    honest_mean = float(np.clip(decoded[honest].mean(), -1, 1))
    assert pessimistic_mean(part, counts, "right", gamma_sup) <= honest_mean + 1e-12
    assert pessimistic_mean(part, counts, "left", gamma_sup) >= honest_mean - 1e-12


@settings(deadline=None)
@given(cells_of_reports, st.sampled_from([0.1, 0.3, 0.5]), st.sampled_from(SIDES))
def test_the_extremes_that_are_taken_away_are_the_most_extreme_reports(
    reports: list[int], share: float, side: str
) -> None:
    ordered = sorted(reports, reverse=side == "right")
    expected = ordered[math.ceil(share * len(reports)) :]
    kept = without_extremes(np.bincount(reports, minlength=64), side, share)
    np.testing.assert_array_equal(kept, np.bincount(expected, minlength=64))


def test_the_pessimistic_mean_is_clipped_to_the_input_domain() -> None:
    run = collection("uniform:3C/4,C", 1 / 16, 20_000)
    part, counts = run.summary.plan.group_mechanisms[0], run.summary.counts[0]
    kept = without_extremes(counts, "right", 0.5)
    raw = kept @ part.bucket_values(part.grid()) / kept.sum()
    assert raw < -5
    assert pessimistic_mean(part, counts, "right") == -1


def test_a_smaller_bound_on_attackers_brings_the_pessimistic_mean_nearer() -> None:
    run = collection("uniform:3C/4,C", 2.0, 20_000)
    part, counts = run.summary.plan.group_mechanisms[0], run.summary.counts[0]
    guesses = [pessimistic_mean(part, counts, "right", bound) for bound in (0.5, 0.4, 0.3, 0.25)]
    assert all(later > earlier for earlier, later in pairwise(guesses))
    assert guesses[-1] <= run.summary.plan.normalise_one(run.truth)


def test_the_papers_first_guess_for_square_wave_is_what_smoothed_em_finds() -> None:
    run = collection("uniform:1+b/2,1+b", 1.0, 20_000, "square-wave")
    part, counts = run.summary.plan.group_mechanisms[0], run.summary.counts[0]
    kept = without_extremes(counts, "right", 0.5)
    buckets = Buckets.for_reports(part, int(kept.sum()))
    histogram = plain_em.ems(buckets, plain_em.bucket_counts(buckets, kept)).honest
    middles = (buckets.input_edges[1:] + buckets.input_edges[:-1]) / 2
    expected = float(histogram @ middles / histogram.sum())
    assert smoothed_mean(part, counts, "right") == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("gamma_sup", [0.0, -0.1, 0.51, 1.0, math.nan, math.inf])
def test_a_bound_on_attackers_outside_its_range_is_refused(gamma_sup: float) -> None:
    part = make("piecewise", 1.0, cells=4)
    with pytest.raises(InvalidParameter, match=r"gamma_sup must be in \(0, 1/2\]"):
        pessimistic_mean(part, np.array([1, 2, 3, 4]), "right", gamma_sup)


# Theorem 3: small ε


def true_model(epsilon: float, reports: int, side: str) -> tuple[GroupCounts, FloatArray]:
    """Expected counts, not sampled: a quarter is poison, in the outer eighth of one side."""
    part = make("piecewise", epsilon)
    buckets = Buckets.for_reports(part, reports)
    values = 2 * np.random.default_rng(0).beta(2, 5, 2000) - 1
    honest = part.cell_probabilities(values, buckets.output_edges).mean(axis=0)
    poison = np.where(outer_eighth(buckets, side), 1.0, 0.0)
    poison *= 0.25 / poison.sum()
    return GroupCounts(buckets, reports * (0.75 * honest + poison)), poison


def outer_eighth(buckets: Buckets, side: str) -> BoolArray:
    places = (np.arange(buckets.outputs) + 0.5) / buckets.outputs
    return places > 7 / 8 if side == "right" else places < 1 / 8


@pytest.mark.parametrize("side", SIDES)
def test_as_epsilon_falls_the_poison_histogram_tends_to_the_true_one(side: str) -> None:
    histogram_errors, fraction_errors = [], []
    for epsilon in (4.0, 1.0, 0.25, 1 / 16):
        group, poison = true_model(epsilon, 100_000, side)
        (solution,) = maximise([group.emf(group.support(side, 0.0))])
        histogram_errors.append(np.abs(solution.poison - poison).sum())
        fraction_errors.append(abs(solution.byzantine_fraction - 0.25))
    for errors in (histogram_errors, fraction_errors):
        assert all(later < earlier for earlier, later in pairwise(errors))
        assert errors[-1] < errors[0] / 10


# Theorem 4: the closed form


def objective(weights: FloatArray, histogram: FloatArray) -> float:
    return float(weights @ np.log(histogram))


positive_weights = st.lists(st.floats(1e-3, 1.0), min_size=2, max_size=8)


@settings(deadline=None)
@given(positive_weights, positive_weights, st.floats(0.01, 0.99), st.integers(0, 2**32 - 1))
def test_no_feasible_histograms_beat_the_closed_form(
    honest_weights: list[float], poison_weights: list[float], gamma: float, seed: int
) -> None:
    weights = [np.array(honest_weights), np.array(poison_weights)]
    honest, poison = (histogram.copy() for histogram in weights)
    ImposedFraction(gamma)(honest, poison)
    assert honest.sum() == pytest.approx(1 - gamma)
    assert poison.sum() == pytest.approx(gamma)
    best = objective(weights[0], honest) + objective(weights[1], poison)
    rng = np.random.default_rng(seed)
    for spread in (0.3, 1.0, 100.0):
        other_honest = (1 - gamma) * rng.dirichlet(spread * honest / honest.sum() + 0.01)
        other_poison = gamma * rng.dirichlet(spread * poison / poison.sum() + 0.01)
        if other_honest.min() > 0 and other_poison.min() > 0:
            other = objective(weights[0], other_honest) + objective(weights[1], other_poison)
            assert other <= best + 1e-9


@pytest.mark.parametrize("gamma", [0.1, 0.25, 0.45])
def test_a_numerical_optimiser_finds_the_closed_form(gamma: float) -> None:
    rng = np.random.default_rng(5)
    honest_weights, poison_weights = rng.random(4) + 0.1, rng.random(3) + 0.1
    weights = np.concatenate([honest_weights, poison_weights])
    totals = np.array([[1.0] * 4 + [0.0] * 3, [0.0] * 4 + [1.0] * 3])

    def loss(histogram: Vector) -> float:
        return -objective(weights, histogram)

    optimum = optimize.minimize(
        loss,
        np.concatenate([np.full(4, (1 - gamma) / 4), np.full(3, gamma / 3)]),
        method="SLSQP",
        bounds=[(1e-9, 1.0)] * 7,
        constraints=optimize.LinearConstraint(totals, [1 - gamma, gamma], [1 - gamma, gamma]),
        tol=1e-14,
    )
    ImposedFraction(gamma)(honest_weights, poison_weights)
    closed = np.concatenate([honest_weights, poison_weights])
    np.testing.assert_allclose(optimum.x, closed, atol=1e-5)


# Theorem 5: suppression


def narrowing_supports(buckets: Buckets) -> list[BoolArray]:
    """From every bucket down to the poisoned ones, in steps."""
    first = int(np.argmax(outer_eighth(buckets, "right")))
    cuts = np.linspace(0, first, 6).astype(int)
    return [np.arange(buckets.outputs) >= cut for cut in cuts]


@pytest.mark.parametrize("epsilon", [2.0, 1.0, 0.5])
@pytest.mark.parametrize("seed", [3, 4, 5])
def test_each_suppression_of_clean_buckets_brings_the_poison_histogram_nearer(
    epsilon: float, seed: int
) -> None:
    expected, poison = true_model(epsilon, 40_000, "right")
    shares = expected.counts / expected.counts.sum()
    counts = np.random.default_rng(seed).multinomial(40_000, shares).astype(np.float64)
    group = GroupCounts(expected.buckets, counts)
    supports = narrowing_supports(group.buckets)
    solutions = maximise([group.emf_star(support, 0.25) for support in supports])
    errors = [np.abs(solution.poison - poison).sum() for solution in solutions]
    masses = [solution.poison[poison > 0].sum() for solution in solutions]
    assert all(later < earlier for earlier, later in pairwise(errors))
    assert all(later > earlier for earlier, later in pairwise(masses))
    assert errors[-1] < 0.6 * errors[0]


@pytest.mark.parametrize("epsilon", [2.0, 1.0, 0.5])
def test_suppression_of_all_clean_buckets_brings_both_histograms_nearer(epsilon: float) -> None:
    group, poison = true_model(epsilon, 40_000, "right")
    values = 2 * np.random.default_rng(0).beta(2, 5, 2000) - 1
    honest = 0.75 * np.histogram(values, group.buckets.input_edges)[0] / len(values)
    supports = narrowing_supports(group.buckets)
    problems = [group.emf_star(support, 0.25) for support in (supports[0], supports[-1])]
    all_buckets, true_buckets = maximise([replace(problem, tolerance=1e-3) for problem in problems])

    def distance(one: FloatArray, other: FloatArray) -> float:
        return float(np.abs(np.cumsum(one - other)).mean())

    assert distance(true_buckets.poison, poison) < distance(all_buckets.poison, poison) / 2
    assert distance(true_buckets.honest, honest) < distance(all_buckets.honest, honest)


# Buckets and poison ranges


@settings(deadline=None)
@given(st.integers(16, 10**8), st.floats(0.01, 8.0))
def test_piecewise_buckets_are_as_many_as_the_paper_says(reports: int, epsilon: float) -> None:
    buckets = Buckets.for_reports(make("piecewise", epsilon), reports)
    outputs = min(math.isqrt(reports), 2**14)
    growth = math.exp(epsilon / 2)
    assert buckets.outputs == outputs
    assert abs(buckets.inputs - max(2, outputs * (growth - 1) / (growth + 1))) < 1 + 1e-6
    assert buckets.inputs >= 2


@pytest.mark.parametrize(
    ("epsilon", "reports", "outputs", "inputs"),
    [(2.0, 166_667, 408, 188), (1 / 16, 5_333_333, 2309, 36), (1 / 16, 100, 10, 2)],
)
def test_buckets_at_the_sizes_of_the_paper(
    epsilon: float, reports: int, outputs: int, inputs: int
) -> None:
    for mechanism in ("piecewise", "piecewise-integer"):
        buckets = Buckets.for_reports(make(mechanism, epsilon, 2**14), reports)
        assert (buckets.outputs, buckets.inputs) == (outputs, inputs)


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 2.0, 4.0])
def test_square_wave_buckets_are_as_many_as_the_paper_says(epsilon: float) -> None:
    e = math.exp(epsilon)
    b = (epsilon * e - e + 1) / (2 * e * (e - 1 - epsilon))
    buckets = Buckets.for_reports(make("square-wave", epsilon), 90_000)
    assert buckets.outputs == 300
    assert buckets.inputs == math.floor(300 / (1 + 2 * b))


def test_there_are_never_more_buckets_than_cells() -> None:
    buckets = Buckets.for_reports(make("piecewise", 1.0, cells=64), 10**6)
    assert buckets.outputs == 64


def edges_of(mechanism: Mechanism) -> tuple[float, float]:
    """The report domain in the paper's units."""
    landmarks = mechanism.landmarks()
    return landmarks["L"], landmarks["R"]


@settings(deadline=None)
@given(
    st.sampled_from(NUMERICAL),
    st.integers(16, 40_000),
    st.floats(0.05, 4.0),
    st.floats(0.0, 1.0),
)
def test_the_poison_range_has_the_size_of_the_footnote(
    name: str, reports: int, epsilon: float, share: float
) -> None:
    mechanism = make(name, epsilon)
    initial_mean = mechanism.input_low + share * (mechanism.input_high - mechanism.input_low)
    buckets = Buckets.for_reports(mechanism, reports)
    group = GroupCounts(buckets, np.ones(buckets.outputs))
    low, high = edges_of(mechanism)
    parts = {
        "right": buckets.outputs * (high - initial_mean) / (high - low),
        "left": buckets.outputs * (initial_mean - low) / (high - low),
    }
    for side, part in parts.items():
        assume(abs(part - round(part)) > 1e-6 or share in (0.0, 1.0))
        support = group.support(side, initial_mean)
        assert abs(support.sum() - math.ceil(round(part, 6))) == 0
        ends = support[-support.sum() :] if side == "right" else support[: support.sum()]
        assert ends.all()


def test_the_poison_range_around_zero_is_half_of_the_domain() -> None:
    for outputs, half in ((100, 50), (101, 51)):
        group = GroupCounts(Buckets(make("piecewise", 1.0), outputs, 10), np.ones(outputs))
        assert [group.support(side, 0.0).sum() for side in SIDES] == [half, half]


def test_a_side_that_does_not_exist_is_refused() -> None:
    group = GroupCounts(Buckets(make("piecewise", 1.0), 10, 2), np.ones(10))
    with pytest.raises(InvalidParameter, match="side must be one of left, right"):
        group.support("rigth", 0.0)


# Side probing


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["variance", "likelihood"])
@pytest.mark.parametrize(
    ("attack", "side"),
    [
        ("uniform:3C/4,C", "right"),
        ("uniform:C/2,C", "right"),
        ("uniform:O,C/2", "right"),
        ("uniform:O,C", "right"),
        ("uniform:-C,-3C/4", "left"),
        ("uniform:-C,-C/2", "left"),
        ("uniform:-C/2,O", "left"),
    ],
)
@pytest.mark.parametrize("epsilon", [0.5, 0.125])
def test_both_rules_find_the_side_of_an_ordinary_attack(
    attack: str, side: str, rule: str, epsilon: float
) -> None:
    assert probed(collection(attack, epsilon), rule).side == side


@pytest.mark.parametrize("mechanism", NUMERICAL)
@pytest.mark.parametrize("side", SIDES)
def test_every_mechanism_shows_the_side_and_roughly_the_fraction(mechanism: str, side: str) -> None:
    run = collection(far(mechanism, side), 0.125, mechanism=mechanism)
    for rule in ("variance", "likelihood"):
        probe_result = probed(run, rule)
        assert probe_result.side == side
        assert abs(probe_result.byzantine_fraction - 0.25) < 0.06


def test_a_probe_keeps_the_evidence_for_both_sides() -> None:
    probe_result = probed(collection("uniform:3C/4,C", 0.5), "variance")
    assert set(probe_result.solutions) == set(SIDES)
    assert probe_result.solution is probe_result.solutions["right"]
    assert probe_result.byzantine_fraction == probe_result.solutions["right"].byzantine_fraction


def test_the_variance_rule_fails_where_all_poison_is_at_one_point() -> None:
    """Alg. 3 prefers the side with the flatter x̂; the likelihoods leave no doubt."""
    run = collection("point:C", 1 / 16, 100_000)
    by_variance, by_likelihood = probed(run, "variance"), probed(run, "likelihood")
    assert by_variance.side == "left"
    assert by_likelihood.side == "right"
    assert abs(by_likelihood.byzantine_fraction - 0.25) < 0.03
    left, right = (by_likelihood.solutions[side] for side in SIDES)
    assert right.likelihood - left.likelihood > 10_000
    assert left.honest.var() < right.honest.var()


def test_the_rule_is_reachable_from_the_front_door_and_decides_the_answer() -> None:
    run = collection("point:C", 1 / 16, 100_000)
    by_rule = {
        rule: estimate(run.summary, method="emf", side_rule=rule)
        for rule in ("variance", "likelihood")
    }
    assert {rule: answer.byzantine.side for rule, answer in by_rule.items()} == {
        "variance": "left",
        "likelihood": "right",
    }
    assert [answer.fit["side_rule"] for answer in by_rule.values()] == ["variance", "likelihood"]
    errors = {rule: (answer.mean - run.truth) ** 2 for rule, answer in by_rule.items()}
    assert errors["likelihood"] < errors["variance"] / 10


def test_an_unknown_rule_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="did you mean 'variance'"):
        probed(collection("none", 1.0, 1000), "varianse")
