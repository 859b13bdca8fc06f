"""The EM loop against plain implementations: likelihood, totals, convergence, smoothing."""

from __future__ import annotations

import warnings
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unpoison.bench import plain_em
from unpoison.errors import ConvergenceWarning, InvalidParameter
from unpoison.filters.buckets import Buckets
from unpoison.filters.em import (
    FreePoison,
    GroupCounts,
    ImposedFraction,
    Problem,
    Smoothing,
    Solution,
    maximise,
    tolerance,
)
from unpoison.mechanisms import make
from unpoison.types import BoolArray, FloatArray

CLOSE = 1e-9
GAMMA = 0.25
SCHEMES = ("emf", "emf-star", "cemf-star")
GROUPS = [
    ("piecewise", 2.0, 20_000),
    ("piecewise", 0.5, 5_000),
    ("piecewise", 0.125, 40_000),
    ("piecewise-integer", 1.0, 10_000),
    ("square-wave", 1.0, 10_000),
    ("square-wave-integer", 0.25, 10_000),
]


def poisoned_group(mechanism: str, epsilon: float, reports: int, seed: int = 1) -> GroupCounts:
    """Honest reports of skewed values, with a share GAMMA in the last eighth of the domain."""
    part = make(mechanism, epsilon)
    buckets = Buckets.for_reports(part, reports)
    rng = np.random.default_rng(seed)
    span = part.input_high - part.input_low
    honest = round(reports * (1 - GAMMA))
    values = part.perturb(part.input_low + span * rng.beta(2, 5, honest), rng)
    width = part.output_high - part.output_low
    poison = part.output_high - width / 8 * rng.random(reports - honest)
    cells = np.floor((np.concatenate([values, poison]) - part.output_low) / width * part.cells)
    counts = np.bincount(np.minimum(cells, part.cells - 1).astype(np.int64), minlength=part.cells)
    return GroupCounts(buckets, buckets.count(counts))


def right(group: GroupCounts) -> BoolArray:
    middle = (group.buckets.mechanism.input_low + group.buckets.mechanism.input_high) / 2
    return group.support("right", middle)


def fast(group: GroupCounts, scheme: str) -> Problem:
    if scheme == "emf":
        return group.emf(right(group))
    if scheme == "emf-star":
        return group.emf_star(right(group), GAMMA)
    poison = maximise([group.emf(right(group))])[0].poison
    return group.cemf_star(right(group), GAMMA, poison)


def slow(group: GroupCounts, scheme: str) -> plain_em.Fit:
    buckets, counts = group.buckets, group.counts
    if scheme == "emf":
        return plain_em.emf(buckets, counts, right(group))
    if scheme == "emf-star":
        return plain_em.emf_star(buckets, counts, right(group), GAMMA)
    poison = plain_em.emf(buckets, counts, right(group)).poison
    kept = plain_em.concentrated(buckets, right(group), GAMMA, poison)
    return plain_em.emf_star(buckets, counts, kept, GAMMA)


def smoothing_problem(group: GroupCounts) -> Problem:
    buckets = group.buckets
    start = np.full(buckets.inputs, 1 / buckets.inputs)
    stop = tolerance(buckets.mechanism.epsilon)
    nowhere = np.zeros(buckets.outputs)
    return Problem(buckets.transition, group.counts, start, nowhere, Smoothing(), stop)


def assert_same(solution: Solution, expected: plain_em.Fit | Solution, within: float) -> None:
    assert solution.iterations == expected.iterations
    assert solution.converged == expected.converged
    np.testing.assert_allclose(solution.honest, expected.honest, rtol=0, atol=within)
    np.testing.assert_allclose(solution.poison, expected.poison, rtol=0, atol=within)
    np.testing.assert_allclose(solution.likelihoods, expected.likelihoods, rtol=within)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("kind", GROUPS, ids=str)
def test_the_fast_filter_equals_the_plain_one(kind: tuple[str, float, int], scheme: str) -> None:
    group = poisoned_group(*kind)
    (solution,) = maximise([fast(group, scheme)])
    assert solution.iterations > 1
    assert_same(solution, slow(group, scheme), CLOSE)


def test_many_problems_side_by_side_equal_the_plain_ones() -> None:
    groups = [poisoned_group(*kind) for kind in GROUPS]
    cases = [(group, scheme) for group in groups for scheme in SCHEMES]
    solutions = maximise([fast(group, scheme) for group, scheme in cases])
    assert len({solution.iterations for solution in solutions}) > len(GROUPS)
    for (group, scheme), solution in zip(cases, solutions, strict=True):
        assert_same(solution, slow(group, scheme), CLOSE)


@pytest.mark.parametrize("kind", GROUPS, ids=str)
def test_smoothed_em_equals_the_plain_one(kind: tuple[str, float, int]) -> None:
    group = poisoned_group(*kind)
    (solution,) = maximise([smoothing_problem(group)])
    assert_same(solution, plain_em.ems(group.buckets, group.counts), CLOSE)


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(st.permutations(range(len(GROUPS))), st.integers(1, len(GROUPS)))
def test_an_answer_does_not_depend_on_its_company(order: list[int], size: int) -> None:
    groups = [poisoned_group(*GROUPS[index]) for index in order[:size]]
    problems = [fast(group, "emf") for group in groups]
    problems += [fast(groups[0], "emf-star"), smoothing_problem(groups[-1])]
    for together, problem in zip(maximise(problems), problems, strict=True):
        assert_same(together, maximise([problem])[0], 1e-11)


def test_problems_are_left_as_they_were() -> None:
    group = poisoned_group("piecewise", 0.5, 5_000)
    problem = fast(group, "emf-star")
    before = [array.copy() for array in (problem.counts, problem.honest, problem.poison)]
    maximise([problem, problem])
    for array, copy in zip((problem.counts, problem.honest, problem.poison), before, strict=True):
        np.testing.assert_array_equal(array, copy)


counts_of_any_kind = st.lists(st.integers(0, 1000), min_size=12, max_size=12).filter(any)


def small_group(epsilon: float, counts: list[int]) -> GroupCounts:
    buckets = Buckets(make("piecewise", epsilon), len(counts), 5)
    return GroupCounts(buckets, np.array(counts, dtype=np.float64))


def run_for(problem: Problem, iterations: int) -> Solution:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return maximise([replace(problem, tolerance=0.0)], iterations)[0]


def assert_never_falls(likelihoods: FloatArray) -> None:
    slack = 1e-12 * np.abs(likelihoods).max()
    assert all(later >= earlier - slack for earlier, later in pairwise(likelihoods))


@settings(max_examples=60, deadline=None)
@given(
    counts_of_any_kind,
    st.lists(st.booleans(), min_size=12, max_size=12),
    st.sampled_from([0.1, 0.5, 1.0, 3.0]),
)
def test_the_likelihood_of_emf_never_falls(
    counts: list[int], support: list[bool], epsilon: float
) -> None:
    group = small_group(epsilon, counts)
    assert_never_falls(run_for(group.emf(np.array(support)), 60).likelihoods)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    counts_of_any_kind,
    st.lists(st.booleans(), min_size=12, max_size=12).filter(any),
    st.sampled_from([0.1, 0.5, 1.0, 3.0]),
    st.floats(0.01, 0.6),
)
def test_the_likelihood_of_emf_star_never_falls_once_the_total_is_imposed(
    counts: list[int], support: list[bool], epsilon: float, gamma: float
) -> None:
    """The start (line 1 of Alg. 4) has another total of poison; from the first M-step it is γ̂."""
    group = small_group(epsilon, counts)
    assert_never_falls(run_for(group.emf_star(np.array(support), gamma), 60).likelihoods[1:])


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(counts_of_any_kind, st.sampled_from([0.1, 0.5, 1.0, 3.0]), st.floats(0.01, 0.6))
def test_the_likelihood_of_cemf_star_never_falls_once_the_total_is_imposed(
    counts: list[int], epsilon: float, gamma: float
) -> None:
    group = small_group(epsilon, counts)
    poison = run_for(group.emf(right(group)), 40).poison
    problem = group.cemf_star(right(group), gamma, poison)
    assert_never_falls(run_for(problem, 60).likelihoods[1:])


@settings(max_examples=60, deadline=None)
@given(
    counts_of_any_kind,
    st.lists(st.booleans(), min_size=12, max_size=12),
    st.integers(1, 20),
)
def test_the_histograms_of_emf_sum_to_one_together(
    counts: list[int], support: list[bool], iterations: int
) -> None:
    solution = run_for(small_group(1.0, counts).emf(np.array(support)), iterations)
    assert solution.honest.sum() + solution.poison.sum() == pytest.approx(1, abs=1e-12)
    assert solution.honest.min() >= 0
    assert solution.poison.min() >= 0


@settings(max_examples=60, deadline=None)
@given(counts_of_any_kind, st.floats(0, 0.9), st.integers(1, 20))
def test_the_histograms_of_emf_star_have_the_imposed_totals(
    counts: list[int], gamma: float, iterations: int
) -> None:
    group = small_group(1.0, counts)
    solution = run_for(group.emf_star(right(group), gamma), iterations)
    seen = group.counts[right(group)].any()
    assert solution.byzantine_fraction == pytest.approx(gamma if seen else 0.0, abs=1e-12)
    assert solution.honest.sum() == pytest.approx(1 - gamma if seen else 1.0, abs=1e-12)


def test_poison_stays_out_of_buckets_that_are_not_in_the_support() -> None:
    group = poisoned_group("piecewise", 0.5, 5_000)
    places = np.arange(group.buckets.outputs)
    (solution,) = maximise([group.emf(places % 3 == 0)])
    assert (solution.poison[places % 3 != 0] == 0).all()
    assert (solution.poison[places % 3 == 0] > 0).any()


def test_suppressed_buckets_stay_empty_and_the_others_take_all_poison() -> None:
    group = poisoned_group("piecewise", 0.25, 20_000)
    (solution,) = maximise([group.emf(right(group))])
    threshold = 0.5 * GAMMA / (group.buckets.outputs / 2)
    suppressed = solution.poison < threshold
    (concentrated,) = maximise([group.cemf_star(right(group), GAMMA, solution.poison)])
    assert right(group)[suppressed].sum() > 10
    assert (concentrated.poison[suppressed] == 0).all()
    assert concentrated.poison[~suppressed].sum() == pytest.approx(GAMMA)


def test_a_larger_suppression_factor_leaves_fewer_buckets() -> None:
    group = poisoned_group("piecewise", 0.25, 20_000)
    poison = maximise([group.emf(right(group))])[0].poison
    kept = [
        (group.cemf_star(right(group), GAMMA, poison, factor).poison > 0).sum()
        for factor in (0.0, 0.5, 3.0, 4.0)
    ]
    assert kept[0] == right(group).sum()
    assert all(more > fewer for more, fewer in pairwise(kept))


def test_nothing_is_suppressed_where_nothing_would_be_left() -> None:
    group = poisoned_group("piecewise", 0.25, 5_000)
    nowhere = np.zeros(group.buckets.outputs)
    problem = group.cemf_star(right(group), GAMMA, nowhere)
    np.testing.assert_array_equal(problem.poison > 0, right(group))


def test_a_converged_answer_stopped_at_the_first_small_change() -> None:
    group = poisoned_group("piecewise", 0.5, 5_000)
    problem = fast(group, "emf")
    (solution,) = maximise([problem])
    changes = np.abs(np.diff(solution.likelihoods))
    assert problem.tolerance == pytest.approx(0.01 * np.exp(0.5))
    assert solution.converged
    assert changes[-1] < problem.tolerance
    assert (changes[:-1] >= problem.tolerance).all()


def test_the_last_likelihood_belongs_to_the_returned_histograms() -> None:
    group = poisoned_group("piecewise", 0.5, 5_000)
    (solution,) = maximise([fast(group, "emf")])
    mixture = group.buckets.transition.dense() @ solution.honest + solution.poison
    assert solution.likelihood == pytest.approx(float(group.counts @ np.log(mixture)), rel=1e-12)


def test_the_iteration_bound_is_kept_and_told() -> None:
    group = poisoned_group("piecewise", 0.5, 5_000)
    whole = maximise([fast(group, "emf")])[0].likelihoods
    with pytest.warns(ConvergenceWarning, match="3 iterations"):
        (solution,) = maximise([fast(group, "emf")], max_iterations=3)
    assert not solution.converged
    assert solution.iterations == 3
    np.testing.assert_allclose(solution.likelihoods, whole[:4], rtol=1e-12)


def test_only_the_problem_that_reaches_the_bound_is_unconverged() -> None:
    quick, long = (poisoned_group("piecewise", epsilon, 5_000) for epsilon in (4.0, 0.5))
    needed = [maximise([fast(group, "emf")])[0].iterations for group in (quick, long)]
    assert needed[0] < needed[1]
    with pytest.warns(ConvergenceWarning) as caught:
        both = maximise([fast(long, "emf"), fast(quick, "emf")], max_iterations=needed[0])
    assert [solution.converged for solution in both] == [False, True]
    assert len(caught) == 1


@pytest.mark.parametrize("bound", [0, -1])
def test_a_bound_below_one_is_refused(bound: int) -> None:
    group = poisoned_group("piecewise", 0.5, 1_000)
    with pytest.raises(InvalidParameter, match="max_iterations must be at least 1"):
        maximise([fast(group, "emf")], max_iterations=bound)


def test_no_problems_have_no_answers() -> None:
    assert maximise([]) == []


@settings(deadline=None)
@given(st.lists(st.floats(0, 1), min_size=2, max_size=30))
def test_smoothing_preserves_mass_and_never_roughens(heights: list[float]) -> None:
    before = np.array(heights)
    after = before.copy()
    Smoothing()(after, np.zeros(1))
    assert after.sum() == pytest.approx(before.sum(), abs=1e-12)
    assert np.abs(np.diff(after)).sum() <= np.abs(np.diff(before)).sum() + 1e-12
    assert after.max() <= before.max() + 1e-15
    assert after.min() >= before.min() - 1e-15


def test_smoothing_spreads_a_spike_over_its_neighbours() -> None:
    spike = np.array([0.0, 0.0, 1.0, 0.0, 0.0])
    Smoothing()(spike, np.zeros(1))
    assert spike.tolist() == [0.0, 0.25, 0.5, 0.25, 0.0]


def test_smoothed_em_gives_a_smoother_histogram_than_plain_em() -> None:
    group = poisoned_group("square-wave", 1.0, 10_000)
    rough = replace(smoothing_problem(group), m_step=FreePoison())
    smooth, unsmooth = maximise([smoothing_problem(group), rough])
    assert smooth.honest.sum() == pytest.approx(1, abs=1e-12)
    assert np.abs(np.diff(smooth.honest)).sum() < np.abs(np.diff(unsmooth.honest)).sum() / 2


def test_an_imposed_fraction_of_zero_leaves_no_poison() -> None:
    honest, poison = np.array([0.2, 0.4]), np.array([0.4])
    ImposedFraction(0.0)(honest, poison)
    assert poison.tolist() == [0.0]
    assert honest.sum() == pytest.approx(1)
