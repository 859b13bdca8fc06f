"""The fit category by category: names what is pushed and nothing else, with true intervals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy

from unpoison import Plan, Summary
from unpoison.filters.categories import SupportCounts, fit_categories
from unpoison.filters.categories.lines import through_origin, variances, with_poison
from unpoison.filters.categories.possible import least_attackers, possible_frequencies
from unpoison.filters.categories.tails import log_tails
from unpoison.types import BoolArray, FloatArray

USERS = 400_000
EVERYWHERE = np.ones(4, dtype=bool)


def zipf(categories: int) -> FloatArray:
    weights = 1 / np.arange(1, categories + 1)
    return np.asarray(weights / weights.sum())


def collection(
    categories: int = 1000,
    attackers: float = 0.0,
    targets: tuple[int, ...] = (),
    attacked: BoolArray = EVERYWHERE,
    epsilon: float = 2.0,
    users: int = USERS,
    seed: int = 1,
) -> tuple[SupportCounts, FloatArray]:
    """Counts of k-RR with attackers who name their targets; and the honest frequencies."""
    rng = np.random.default_rng(seed)
    names = [str(number) for number in range(categories)]
    plan = Plan.new("k-rr", epsilon, categories=names)
    frequencies = zipf(categories)
    rows, size = [], users // len(plan.groups)
    for group, (mechanism, members) in enumerate(
        zip(plan.group_mechanisms, plan.groups, strict=True)
    ):
        bad = round(attackers * size) if attacked[group] else 0
        values = np.arange(categories, dtype=np.float64)
        honest = rng.multinomial(size - bad, frequencies) * members.reports
        row = mechanism.draw_counts(values, honest, rng)
        if bad:
            row = row + rng.multinomial(bad * members.reports, _over(targets, categories))
        rows.append(row)
    summary = Summary(plan, np.array(rows), (0,) * len(rows))
    supports = SupportCounts.of_categories(summary, range(len(rows)))
    return supports, frequencies


def _over(targets: tuple[int, ...], categories: int) -> FloatArray:
    shares = np.zeros(categories)
    shares[list(targets)] = 1 / len(targets)
    return shares


def test_lines_are_those_of_least_squares() -> None:
    """The closed form against a general solver, category by category, with the same weights."""
    supports, _ = collection(50, 0.1, (7,))
    lines = with_poison(supports, EVERYWHERE)
    spread = variances(supports, lines.honest, np.maximum(lines.poison, 0.0))
    for category in range(50):
        root = 1 / np.sqrt(spread[:, category])
        design = np.stack([supports.signal, supports.pushed], axis=1) * root[:, None]
        solution = np.linalg.lstsq(design, supports.lift[:, category] * root, rcond=None)[0]
        # The weights are those of the round before: they have settled to a few digits.
        assert lines.honest[category] == pytest.approx(solution[0], rel=1e-2, abs=1e-4)
        assert lines.poison[category] == pytest.approx(solution[1], rel=1e-2, abs=1e-5)


@pytest.mark.parametrize("categories", [300, 1000, 10_000])
@pytest.mark.parametrize(("attackers", "pushed"), [(0.02, 1), (0.1, 10), (0.3, 10)])
def test_pushed_categories_are_found_and_no_others(
    categories: int, attackers: float, pushed: int
) -> None:
    targets = tuple(range(categories - pushed, categories))
    supports, frequencies = collection(categories, attackers, targets)
    fit = fit_categories(supports)
    named = set(np.flatnonzero(fit.pushed))
    assert named >= set(targets)
    # Half a category a collection may be named falsely, once it is known to be attacked.
    assert len(named) <= len(targets) + 2
    assert fit.attackers.kind == "alike"
    share = float(fit.attackers.shares.max())
    assert share == pytest.approx(attackers, abs=4 * fit.attackers.deviation)
    assert fit.nobody_p_value < 1e-6
    assert fit.fit_p_value > 0.001
    naive = through_origin(supports).honest
    honest_error = ((fit.frequencies - frequencies) ** 2).sum()
    assert honest_error < ((naive - frequencies) ** 2).sum() / 5


@pytest.mark.parametrize("groups", [(0,), (1, 2), (3,), (0, 1, 2)])
def test_groups_in_which_categories_are_pushed_are_found(groups: tuple[int, ...]) -> None:
    attacked = np.isin(np.arange(4), groups)
    supports, frequencies = collection(500, 0.15, (400, 401), attacked)
    fit = fit_categories(supports)
    assert (fit.attackers.shares > 0).tolist() == attacked.tolist()
    assert set(np.flatnonzero(fit.pushed)) == {400, 401}
    low, high = fit.intervals()
    top = np.argsort(-frequencies)[:50]
    assert np.mean((low[top] <= frequencies[top]) & (frequencies[top] <= high[top])) >= 0.85


def test_intervals_of_the_most_frequent_cover_the_truth() -> None:
    covered = []
    for seed in range(40):
        targets = tuple(range(290, 300)) if seed % 2 else ()
        supports, frequencies = collection(300, 0.1 if targets else 0.0, targets, seed=seed)
        low, high = fit_categories(supports).intervals()
        top = np.argsort(-frequencies)[:50]
        covered.append(np.mean((low[top] <= frequencies[top]) & (frequencies[top] <= high[top])))
        assert (high > low).all()
    assert np.mean(covered) >= 0.93


@pytest.mark.parametrize(("categories", "users"), [(300, 20_000), (5000, 20_000), (30_000, 40_000)])
def test_quiet_collections_name_nobody(categories: int, users: int) -> None:
    """Also where most categories expect a report or less, which normal tails would not survive."""
    fits = [fit_categories(collection(categories, users=users, seed=seed)[0]) for seed in range(30)]
    assert sum(fit.pushed.any() for fit in fits) <= 4
    assert sum(fit.nobody_p_value < 0.05 for fit in fits) <= 5


def test_the_tail_is_bounded_for_rare_categories() -> None:
    """Chernoff's bound is above the exact tail of a Poisson variable, and not far above."""
    one = np.ones(2)
    for reports in (3.0, 6.0, 12.0, 40.0):
        counts = np.array([[reports], [1e6]])
        supports = SupportCounts(
            counts, np.array([1e4, 1e10]), 1e-4 * one, 1e-9 * one, one, 0 * one, 1e9 * one
        )
        lines = replace(through_origin(supports), honest=np.zeros(1))
        bound = log_tails(supports, lines, np.array([True, False]))[0]
        exact = np.log(scipy.special.pdtrc(reports - 1, 1.0))
        assert exact <= bound
        assert bound - exact < 3.5


def test_the_worst_case_holds_the_truth_and_no_fewer_attackers_explain() -> None:
    supports, frequencies = collection(400, 0.2, (399,))
    low, high = possible_frequencies(supports, 0.2)
    assert (low <= frequencies).all()
    assert (frequencies <= high).all()
    assert 0 < least_attackers(supports) <= 0.2
    assert least_attackers(collection(400)[0]) == 0.0


def test_one_budget_alone_names_nobody() -> None:
    """Poison and honest users look alike in groups of one signal: nothing is claimed."""
    supports, _ = collection(300, 0.3, (299,))
    first = SupportCounts(
        supports.counts[:1],
        supports.reports[:1],
        supports.baseline[:1],
        supports.signal[:1],
        supports.pushed[:1],
        supports.unpushed[:1],
        supports.users[:1],
    )
    fit = fit_categories(first)
    assert not fit.pushed.any()
    assert fit.attackers.kind == "nobody"


@pytest.mark.parametrize("weights", [(1, 2, 4, 8), (8, 4, 2, 1), (1, 8, 1, 8)])
@pytest.mark.parametrize("attackers", [0.05, 0.2])
def test_poison_that_differs_between_groups_spoils_no_other_category(
    weights: tuple[int, ...], attackers: float
) -> None:
    """Nor is it taken for honest users where it weakens with the signal, as their reports do."""
    supports, frequencies = collection(400)
    shares = attackers * np.array(weights) / max(weights)
    added = np.round(supports.reports * shares / (1 - shares))
    counts = supports.counts.copy()
    counts[:, 399] += added
    users = supports.users / (1 - shares)
    poisoned = replace(supports, counts=counts, reports=supports.reports + added, users=users)
    fit = fit_categories(poisoned)
    assert fit.attackers.kind == "own"
    assert np.flatnonzero(fit.pushed).tolist() == [399]
    assert fit.attackers.shares.max() == pytest.approx(shares.max(), abs=0.03)
    low, high = fit.intervals()
    assert low[399] <= frequencies[399] <= high[399]
    covered = (low <= frequencies) & (frequencies <= high)
    assert covered.mean() >= 0.9
