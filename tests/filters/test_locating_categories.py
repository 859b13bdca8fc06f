"""Poisoned categories: what a set of them explains, and which of them are found."""

from __future__ import annotations

import math
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize
from scipy.special import xlogy
from scipy.stats import chi2, poisson

from unpoison.bench import plain_em
from unpoison.errors import InvalidParameter
from unpoison.filters.buckets import Buckets
from unpoison.filters.em import FixedPoison, GroupCounts, ImposedFraction, Located, locate, maximise
from unpoison.filters.em import support_deviance as deviance
from unpoison.filters.em.category_deviance import unit_deviance, water_filled
from unpoison.mechanisms import CategoricalMechanism, make
from unpoison.types import BoolArray, FloatArray, IntArray

CATEGORICAL = ("k-rr", "k-rr-integer")
RULES = ("variance", "likelihood")
MANY = 1_000_000
every_rule = pytest.mark.parametrize("rule", RULES)


def response(epsilon: float, cells: int, name: str = "k-rr") -> CategoricalMechanism:
    part = make(name, epsilon, cells)
    assert isinstance(part, CategoricalMechanism)
    return part


def mask(cells: int, *chosen: int) -> BoolArray:
    return np.isin(np.arange(cells), chosen)


def probabilities(
    part: CategoricalMechanism, honest: FloatArray, gamma: float, *targets: int
) -> FloatArray:
    """Of each report, where a share γ of users send the targets alike."""
    matrix = np.full((part.cells, part.cells), part.other)
    np.fill_diagonal(matrix, part.kept)
    clean: FloatArray = matrix @ honest
    return (1 - gamma) * clean + gamma * mask(part.cells, *targets) / max(len(targets), 1)


def skewed(cells: int, first: float = 0.97) -> FloatArray:
    """Nearly everybody in the first category."""
    return np.concatenate([[first], np.full(cells - 1, (1 - first) / (cells - 1))])


def group_of(part: CategoricalMechanism, counts: FloatArray | IntArray) -> GroupCounts:
    buckets = Buckets.for_reports(part, int(counts.sum()))
    return GroupCounts(buckets, counts.astype(np.float64))


def located(
    part: CategoricalMechanism, counts: FloatArray | IntArray, rule: str = "variance"
) -> Located:
    return locate(group_of(part, counts), rule)


# How far a set of categories is from explaining the counts


def convex_optimum(
    part: CategoricalMechanism, counts: FloatArray, support: BoolArray
) -> tuple[float, float]:
    """The same by a general solver over (x, y) and dense algebra: a value, and how far off it is.

    The likelihood is concave over the simplex, so the steepest slope from a point says how much
    there can be to gain.
    """
    shares = counts / counts.sum()
    seen = shares > 0
    matrix = np.full((part.cells, part.cells), part.other)
    np.fill_diagonal(matrix, part.kept)
    columns = np.hstack([matrix, np.eye(part.cells)[:, support]])[seen]
    left = shares[seen]
    size = columns.shape[1]

    def cost(point: FloatArray) -> float:
        return float(-(left @ np.log(columns @ point)))

    def slope(point: FloatArray) -> FloatArray:
        return np.asarray(-(columns.T @ (left / (columns @ point))))

    point = np.full(size, 1 / size)
    for _ in range(300):
        point = point * -slope(point)
    whole = {"type": "eq", "fun": lambda z: z.sum() - 1, "jac": lambda z: np.ones(size)}
    optimum = optimize.minimize(  # type: ignore[call-overload]
        cost,
        point,
        jac=slope,
        bounds=[(0, 1)] * size,
        constraints=[whole],
        method="SLSQP",
        options={"ftol": 1e-16, "maxiter": 1000},
    )
    polished = np.maximum(optimum.x, 0.0) / np.maximum(optimum.x, 0.0).sum()
    best = min(point, polished, key=cost)
    saturated = float(-(left @ np.log(left)))
    return cost(best) - saturated, float((-slope(best)).max() - 1)


@pytest.mark.slow
@pytest.mark.parametrize("cells", [2, 3, 5, 8])
@pytest.mark.parametrize("epsilon", [0.001, 0.0625, 0.5, 2.0, 8.0])
def test_the_deviance_is_that_of_a_general_convex_solver(cells: int, epsilon: float) -> None:
    rng = np.random.default_rng([cells, round(1000 * epsilon)])
    part = response(epsilon, cells)
    checked = 0
    for concentration in (0.2, 1.0, 10.0, 100.0):
        shares = rng.dirichlet(np.full(cells, concentration))
        counts = rng.multinomial(1000, shares).astype(np.float64)
        support = rng.random(cells) < rng.choice([0.2, 0.5])
        expected, short = convex_optimum(part, counts, support)
        likelihood_loss = deviance(part, counts, support) / 2000
        assert expected - max(short, 0) - 1e-12 <= likelihood_loss <= expected + 1e-12
        checked += short < 1e-6
    assert checked >= 3


@pytest.mark.parametrize("epsilon", [0.0625, 1.0])
def test_the_deviance_is_that_of_a_long_em(epsilon: float) -> None:
    part = response(epsilon, 4)
    buckets = Buckets.for_reports(part, 600)
    counts, support = np.array([50.0, 150.0, 100.0, 300.0]), mask(4, 3)
    start = np.full(4, 0.2)
    fit = plain_em.expectation_maximisation(
        buckets.transition.dense(), counts, start, start * support, plain_em.free, 1e-13, 1_000_000
    )
    saturated = float(xlogy(counts, counts / 600).sum())
    assert deviance(part, counts, support) == pytest.approx(
        2 * (saturated - fit.likelihoods[-1]), abs=1e-7
    )
    assert deviance(part, counts, support) > 1


counts_of_categories = st.lists(st.integers(0, 500), min_size=2, max_size=9).filter(
    lambda counts: sum(counts) >= 16
)
budgets = st.sampled_from([0.001, 0.0625, 0.5, 1.0, 4.0, 16.0])


@pytest.mark.slow
@settings(deadline=None)
@given(counts_of_categories, budgets, st.sampled_from([1, 10**6]), st.data())
def test_a_larger_support_never_explains_less(
    counts: list[int], epsilon: float, times: int, data: st.DataObject
) -> None:
    order = data.draw(st.permutations(range(len(counts))))
    part, many = response(epsilon, len(counts)), np.array(counts) * float(times)
    supports = [mask(len(counts), *order[:size]) for size in range(len(counts) + 1)]
    deviances = [deviance(part, many, support) for support in supports]
    assert all(math.isfinite(value) and value >= 0 for value in deviances)
    slack = 1e-13 * many.sum()
    assert all(small >= large - slack for small, large in pairwise(deviances))
    assert deviances[-1] == 0


@pytest.mark.slow
@settings(deadline=None)
@given(counts_of_categories, budgets, st.data())
def test_the_deviance_is_in_proportion_to_the_reports(
    counts: list[int], epsilon: float, data: st.DataObject
) -> None:
    chosen = data.draw(st.sets(st.integers(0, len(counts) - 1)))
    part, few = response(epsilon, len(counts)), np.array(counts, dtype=np.float64)
    once = deviance(part, few, mask(len(counts), *chosen))
    often = deviance(part, few * 1e7, mask(len(counts), *chosen)) / 1e7
    assert often == pytest.approx(once, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("name", CATEGORICAL)
def test_the_order_of_categories_does_not_matter(name: str) -> None:
    rng = np.random.default_rng(3)
    part = response(0.5, 7, name)
    for _ in range(20):
        counts = rng.multinomial(2000, rng.dirichlet(np.full(7, 0.5))).astype(np.float64)
        support, order = rng.random(7) < 0.4, rng.permutation(7)
        assert deviance(part, counts[order], support[order]) == pytest.approx(
            deviance(part, counts, support), rel=1e-9, abs=1e-9
        )


@pytest.mark.parametrize("reports", [1e3, 1e9, 1e15])
@pytest.mark.parametrize("cells", [2, 3, 15, 100])
def test_what_honest_users_or_poison_on_the_support_make_is_explained(
    cells: int, reports: float
) -> None:
    part, honest = response(0.5, cells), skewed(cells)
    clean = reports * probabilities(part, honest, 0.0)
    slack = 1e-13 * reports
    assert deviance(part, clean, mask(cells)) == pytest.approx(0, abs=slack)
    for targets in ((0,), (cells - 1,), (0, cells - 1)):
        poisoned = reports * probabilities(part, honest, 0.3, *targets)
        assert deviance(part, poisoned, mask(cells, *targets)) == pytest.approx(0, abs=slack)


def test_a_share_of_honest_users_that_must_be_all_is_found_to_the_last_digit() -> None:
    """Poison on the rarer of two categories is of no use, whatever the number of reports."""
    part, counts = response(0.0625, 2), np.array([871_756_530.0, 128_243_470.0])
    alone, with_poison = (deviance(part, counts, mask(2, *targets)) for targets in ((), (1,)))
    assert with_poison == pytest.approx(alone, rel=1e-12)
    assert deviance(part, counts, mask(2, 0)) == 0


def test_categories_that_nobody_reported_are_fitted() -> None:
    part = response(1.0, 4)
    for counts in ([1000, 0, 0, 0], [0, 0, 500, 500], [0, 1, 0, 99]):
        for size in range(4):
            total_deviance = deviance(part, np.array(counts) * 1.0, mask(4, *range(size)))
            expected, short = convex_optimum(part, np.array(counts) * 1.0, mask(4, *range(size)))
            assert total_deviance / 2 / sum(counts) == pytest.approx(expected, abs=max(short, 1e-9))


def test_a_deviance_has_the_distribution_that_the_limit_assumes() -> None:
    """At a tiny ε honest users cannot bend the counts, so all k − 1 degrees are left."""
    rng, part = np.random.default_rng(1), response(0.001, 15)
    even = probabilities(part, np.full(15, 1 / 15), 0.0)
    collections = [rng.multinomial(MANY, even).astype(np.float64) for _ in range(400)]
    deviances = [deviance(part, counts, mask(15)) for counts in collections]
    assert np.mean(deviances) == pytest.approx(14, abs=5 * math.sqrt(28 / 400))
    assert np.mean(np.array(deviances) > chi2(14).isf(0.1)) == pytest.approx(0.1, abs=0.06)


@pytest.mark.slow
@settings(deadline=None)
@given(
    st.lists(st.integers(0, 1000), min_size=1, max_size=6),
    st.floats(0.1, 2.0),
    st.floats(0.0, 1.0),
)
def test_water_filling_is_the_best_of_all_choices_of_what_lies_on_the_floor(
    counts: list[int], total: float, depth: float
) -> None:
    shares = np.array(counts) / 1000
    floor = depth * total / len(shares)
    filled = water_filled(shares, total, floor)
    assert filled.sum() == pytest.approx(total, rel=1e-9)
    assert filled.min() >= floor * (1 - 1e-9)
    best = -math.inf
    for code in range(2 ** len(shares) - 1):
        low = np.array([bool(code >> place & 1) for place in range(len(shares))])
        rest = total - floor * low.sum()
        if shares[~low].sum() <= 0:
            continue
        tried = np.where(low, floor, shares / shares[~low].sum() * rest)
        if tried.min() >= floor * (1 - 1e-12):
            best = max(best, float(xlogy(shares, np.maximum(tried, 1e-300)).sum()))
    if best > -math.inf:
        assert xlogy(shares, np.maximum(filled, 1e-300)).sum() == pytest.approx(best, abs=1e-9)


def test_water_without_shares_is_spread_evenly() -> None:
    assert water_filled(np.zeros(4), 1.0, 0.1).tolist() == [0.25] * 4


# What noise alone does to a deviance


@pytest.mark.parametrize("expected", [1.25, 2.0, 7.5, 60.0, 900.0, 1100.0, 1e5])
def test_the_deviance_of_one_category_is_that_of_poisson_counts(expected: float) -> None:
    counts = np.arange(int(expected + 40 * math.sqrt(expected) + 40))
    terms = 2 * (xlogy(counts, counts / expected) - counts + expected)
    mean = float(poisson.pmf(counts, expected) @ terms)
    assert unit_deviance(expected) == pytest.approx(mean, abs=1e-6)


def test_with_few_reports_the_limit_is_that_of_the_worst_case() -> None:
    limits = [unit_deviance(expected) for expected in (0.0, 1e-3, 1.0, 1.25, 3, 10, 1e3, 1e4, 1e12)]
    assert limits[0] == limits[1] == limits[2] == limits[3] == max(limits)
    assert all(before >= after >= 1 for before, after in pairwise(limits))


# Which categories are found


@pytest.mark.parametrize(("name", "rule"), [*zip(CATEGORICAL, RULES, strict=True)])
@pytest.mark.parametrize(
    ("cells", "targets"),
    [
        (2, (0,)),
        (2, (1,)),
        (3, (1,)),
        (3, (0, 2)),
        (15, (9,)),
        (15, (9, 10, 11)),
        (15, (0, 7, 14)),
        (15, tuple(range(10))),
        (15, tuple(range(14))),
        (100, (99,)),
        (100, (0, 49, 50, 98)),
        (100, tuple(range(0, 100, 2))),
    ],
)
def test_poisoned_categories_are_found(
    cells: int, targets: tuple[int, ...], name: str, rule: str
) -> None:
    part = response(0.0625, cells, name)
    honest = np.random.default_rng(cells).dirichlet(np.full(cells, 1.0))
    chances = probabilities(part, honest, 0.25, *targets)
    location = located(part, np.random.default_rng(7).multinomial(MANY, chances), rule)
    assert location.categories == targets
    assert location.byzantine_fraction == pytest.approx(0.25, abs=0.03)
    assert location.deviances[0] > location.allowed >= location.deviances[1]
    assert not location.ruled
    assert location.solution.poison[~mask(cells, *targets)].sum() == 0
    assert location.runs == [location.solution]


@every_rule
@pytest.mark.parametrize("target", [0, 1, 14])
def test_a_target_is_found_whatever_the_honest_users_crowd_on(target: int, rule: str) -> None:
    part = response(0.0625, 15)
    for first in (0.97, 1.0):
        chances = probabilities(part, skewed(15, first), 0.1, target)
        location = located(part, np.random.default_rng(1).multinomial(MANY, chances), rule)
        assert location.categories == (target,)


def test_a_few_attackers_among_many_reports_are_found() -> None:
    part = response(0.0625, 15)
    chances = probabilities(part, np.full(15, 1 / 15), 0.01, 3)
    location = located(part, np.random.default_rng(1).multinomial(10**8, chances))
    assert location.categories == (3,)


def test_the_numbers_of_found_categories_rise() -> None:
    location = located(
        response(0.0625, 15),
        MANY * probabilities(response(0.0625, 15), np.full(15, 1 / 15), 0.3, 14, 2, 8),
    )
    assert location.categories == (2, 8, 14)


@pytest.mark.parametrize("cells", [2, 3, 15, 100])
def test_nothing_is_found_where_nobody_attacks(cells: int) -> None:
    rng, alarms, trials = np.random.default_rng(cells), 0, 0
    for epsilon in (0.0625, 0.5, 2.0):
        for honest in (np.full(cells, 1 / cells), skewed(cells), skewed(cells, 1.0)):
            chances = probabilities(response(epsilon, cells), honest, 0.0)
            for _ in range(6):
                counts = rng.multinomial(20_000, chances)
                location = located(response(epsilon, cells), counts)
                alarms += bool(location.categories)
                trials += 1
                if not location.categories:
                    assert location.byzantine_fraction == 0
                    assert not location.ruled
    assert trials > 50
    assert alarms <= 1


@pytest.mark.parametrize(("cells", "reports"), [(1000, 1000), (1000, 3000)])
def test_few_reports_a_category_raise_no_alarm(cells: int, reports: int) -> None:
    rng, part = np.random.default_rng(5), response(0.0625, cells)
    chances = probabilities(part, np.full(cells, 1 / cells), 0.0)
    alarms = [bool(located(part, rng.multinomial(reports, chances)).categories) for _ in range(40)]
    assert sum(alarms) <= 1


@pytest.mark.slow
def test_few_reports_a_category_do_not_make_the_wrong_ones_suspicious() -> None:
    rng, part = np.random.default_rng(5), response(0.0625, 1000)
    chances = probabilities(part, np.full(1000, 1 / 1000), 0.3, 17)
    targets = [located(part, rng.multinomial(3000, chances)).categories for _ in range(8)]
    assert targets.count((17,)) == 8


@pytest.mark.slow
@settings(deadline=None, max_examples=40)
@given(counts_of_categories, budgets, st.sampled_from(RULES), st.sampled_from([1, 100]))
def test_no_found_category_can_be_left_out(
    counts: list[int], epsilon: float, rule: str, times: int
) -> None:
    """Whatever the counts are, even such as no attack makes."""
    part, many = response(epsilon, len(counts)), np.array(counts) * float(times)
    location = located(part, many, rule)
    whole = mask(len(counts), *location.categories)
    assert deviance(part, many, whole) <= location.allowed
    for category in location.categories:
        assert deviance(part, many, whole & ~mask(len(counts), category)) > location.allowed
    assert set(np.flatnonzero(location.solution.poison)) <= set(location.categories)


@pytest.mark.slow
@settings(deadline=None, max_examples=40)
@given(counts_of_categories, budgets, st.sampled_from([1, 100]))
def test_no_smaller_set_explains_the_counts(counts: list[int], epsilon: float, times: int) -> None:
    part, many = response(epsilon, len(counts)), np.array(counts) * float(times)
    location = located(part, many, "variance")
    explaining = [
        set(chosen)
        for chosen in combinations(range(len(counts)), len(location.categories))
        if deviance(part, many, mask(len(counts), *chosen)) <= location.allowed
    ]
    assert set(location.categories) in explaining
    assert location.ruled == (len(explaining) > 1)
    for chosen in combinations(range(len(counts)), max(len(location.categories) - 1, 0)):
        if len(chosen) < len(location.categories):
            assert deviance(part, many, mask(len(counts), *chosen)) > location.allowed


@pytest.mark.slow
@settings(deadline=None, max_examples=25)
@given(counts_of_categories, budgets, st.data())
def test_of_all_sets_of_one_size_that_of_the_largest_counts_explains_most(
    counts: list[int], epsilon: float, data: st.DataObject
) -> None:
    cells = len(counts)
    part, many = response(epsilon, cells), np.array(counts) * 10.0
    size = data.draw(st.integers(1, cells - 1))
    largest = np.argsort(-many, kind="stable")[:size].tolist()
    least = deviance(part, many, mask(cells, *largest))
    for chosen in combinations(range(cells), size):
        assert deviance(part, many, mask(cells, *chosen)) >= least - 1e-7


def plainly_chosen(
    part: CategoricalMechanism, counts: FloatArray, allowed: float, rule: str
) -> set[int]:
    """Place by place among all categories that are in some smallest set with those before."""
    cells = part.cells
    buckets = Buckets.for_reports(part, int(counts.sum()))
    explaining = [
        set(chosen)
        for size in range(cells + 1)
        for chosen in combinations(range(cells), size)
        if deviance(part, counts, mask(cells, *chosen)) <= allowed
    ]
    fewest = min(len(chosen) for chosen in explaining)
    smallest = [chosen for chosen in explaining if len(chosen) == fewest]
    categories = set.intersection(*smallest)
    while len(categories) < fewest:
        left = sorted(
            set().union(*(chosen for chosen in smallest if categories <= chosen)) - categories
        )
        while len(left) > 1:
            halves = left[: len(left) // 2], left[len(left) // 2 :]
            first, second = (
                plain_em.emf(buckets, counts, mask(cells, *categories, *s)) for s in halves
            )
            better = np.var(first.honest) < np.var(second.honest)
            if rule == "likelihood":
                better = first.likelihoods[-1] > second.likelihoods[-1]
            left = halves[0] if better else halves[1]
        categories.add(left[0])
    return categories


@pytest.mark.slow
@every_rule
def test_places_that_several_categories_could_have_are_filled_by_the_rule(rule: str) -> None:
    rng, part, sizes = np.random.default_rng(4), response(1.0, 6), []
    for _ in range(40):
        counts = np.round(1000 * rng.dirichlet(np.full(6, 3.0)))
        location = located(part, counts, rule)
        if location.ruled and len(location.categories) > 1:
            assert set(location.categories) == plainly_chosen(part, counts, location.allowed, rule)
            sizes.append(len(location.categories))
    assert len(sizes) >= 3


@every_rule
def test_many_ways_to_explain_the_counts_are_no_hindrance(rule: str) -> None:
    """Poison on half of all categories at a large ε: nearly all of them could be any others."""
    part = response(1.0, 40)
    honest = np.random.default_rng(1).dirichlet(np.ones(40))
    chances = probabilities(part, honest, 0.25, *range(0, 40, 2))
    counts = np.random.default_rng(2).multinomial(100_000, chances)
    location = located(part, counts, rule)
    assert location.ruled
    assert location.deviances[1] <= location.allowed
    assert 0 < len(location.categories) <= 20


EITHER = np.array([0.19, 0.27, 0.27, 0.27])
"""Too few report the first category; poison on the first two or on the last two explains that."""
TWO_WAYS = np.array([0.19, 0.28, 0.26, 0.27])


@every_rule
@pytest.mark.parametrize("shares", [EITHER, TWO_WAYS])
def test_where_either_side_explains_the_counts_the_rule_chooses(
    rule: str, shares: FloatArray
) -> None:
    part, counts = response(math.log(2), 4), MANY * shares
    buckets = Buckets.for_reports(part, MANY)
    halves = [mask(4, 0, 1), mask(4, 2, 3)]
    location = located(part, counts, rule)
    assert [deviance(part, counts, half) for half in halves] == [0, 0]
    assert deviance(part, counts, mask(4)) > location.allowed
    assert location.ruled
    first, second = (plain_em.emf(buckets, counts, half) for half in halves)
    better = {
        "variance": np.var(first.honest) < np.var(second.honest),
        "likelihood": first.likelihoods[-1] > second.likelihoods[-1],
    }
    expected = {0, 1} if better[rule] else {2, 3}
    assert set(location.categories) <= expected
    assert location.categories


def test_the_rules_may_choose_different_sides() -> None:
    """Each leaves less spread, or comes nearer to the counts, on another side."""
    part = response(math.log(2), 4)
    by_rule = {rule: located(part, MANY * TWO_WAYS, rule).categories for rule in RULES}
    assert by_rule == {"variance": (1,), "likelihood": (3,)}


def test_an_unknown_rule_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="did you mean 'variance'"):
        located(response(math.log(2), 4), MANY * EITHER, "varianze")


# Poison that is given category by category


def test_given_poison_stays_as_it_is() -> None:
    part = response(0.5, 4)
    counts = np.array([100.0, 200.0, 300.0, 400.0])
    poison = np.array([0.0, 0.05, 0.0, 0.15])
    (solution,) = maximise([group_of(part, counts).with_fixed_poison(poison)])
    np.testing.assert_array_equal(solution.poison, poison)
    assert solution.honest.sum() == pytest.approx(0.8, abs=1e-12)


def test_no_poison_is_a_plain_em() -> None:
    part, counts = response(0.5, 3), np.array([500.0, 300.0, 200.0])
    (solution,) = maximise([group_of(part, counts).with_fixed_poison(np.zeros(3))])
    (alone,) = maximise([group_of(part, counts).emf(mask(3))])
    np.testing.assert_allclose(solution.honest, alone.honest, atol=1e-12)
    assert solution.byzantine_fraction == 0


def test_given_poison_fits_as_well_as_what_the_counts_allow() -> None:
    """With the rest decoded: where it is a distribution, that is the maximum of the likelihood."""
    part = response(1.0, 3)
    honest, poison = np.array([0.5, 0.25, 0.05]), np.array([0.0, 0.0, 0.2])
    counts = MANY * (probabilities(part, honest / 0.8, 0.0) * 0.8 + poison)
    problem = group_of(part, counts).with_fixed_poison(poison)
    (solution,) = maximise([problem])
    np.testing.assert_allclose(solution.honest, honest, atol=0.005)


def test_the_m_steps_agree_on_one_category() -> None:
    honest, poison = np.array([0.2, 0.3, 0.1]), np.array([0.0, 0.4, 0.0])
    results = []
    for step in (ImposedFraction(0.25), FixedPoison(np.array([0.0, 0.25, 0.0]))):
        x, y = honest.copy(), poison.copy()
        step(x, y)
        results.append(np.concatenate([x, y]))
    np.testing.assert_allclose(results[0], results[1], atol=1e-15)
