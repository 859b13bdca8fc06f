"""More than 256 categories by the default method: the Estimate, its verdict and its JSON."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from unpoison import Estimate, Plan, Summary, estimate, simulate
from unpoison.estimate.methods import default_method
from unpoison.protocols.many_categories import CategoriesAnalysis
from unpoison.simulation import Simulation

NAMES = [f"c{number}" for number in range(1000)]
PLAN = Plan.new("k-rr", 2.0, categories=NAMES)


@pytest.fixture(scope="module")
def values() -> np.ndarray:
    weights = 1 / np.arange(1, 1001)
    return np.random.default_rng(1).choice(NAMES, 200_000, p=weights / weights.sum())


@pytest.fixture(scope="module")
def poisoned(values: np.ndarray) -> Simulation:
    return simulate(PLAN, values, "targets:c998,c999", 0.1, np.random.default_rng(2))


@pytest.fixture(scope="module")
def answer(poisoned: Simulation) -> Estimate:
    return estimate(poisoned.summary)


def test_it_is_the_default_and_names_what_is_pushed(answer: Estimate) -> None:
    assert default_method(PLAN) == answer.method == "joint"
    assert set(answer.byzantine.categories or ()) == {"c998", "c999"}
    assert answer.byzantine.fraction == pytest.approx(0.1, abs=0.01)
    assert answer.byzantine.finding == "found"
    assert "push c99" in answer.verdict
    low, high = answer.byzantine.interval or (1.0, 0.0)
    assert low < 0.1 < high


def test_frequencies_are_near_the_truth(answer: Estimate, poisoned: Simulation) -> None:
    assert answer.frequencies is not None
    assert poisoned.frequencies is not None
    assert sum(answer.frequencies.values()) == pytest.approx(1.0)
    assert answer.frequencies["c0"] == pytest.approx(poisoned.frequencies["c0"], abs=0.02)
    intervals = answer.fit["frequency_intervals"]
    covered = [
        intervals[name][0] <= poisoned.frequencies[name] <= intervals[name][1]
        for name in NAMES[:50]
    ]
    assert sum(covered) >= 45


def test_it_survives_json(answer: Estimate) -> None:
    assert Estimate.from_json(answer.to_json()).to_json() == answer.to_json()


def test_the_worst_case_is_told(answer: Estimate, poisoned: Simulation) -> None:
    assert answer.worst_case is not None
    assert answer.worst_case.possible
    assert 0.1 <= answer.worst_case.attackers_at_most <= 0.2
    truth = poisoned.frequencies or {}
    ranges = answer.worst_case.frequency_ranges
    assert all(low <= truth[name] <= high for name, (low, high) in ranges.items())
    assert "no frequency is off by more than" in answer.verdict


def test_a_share_that_explains_nothing_is_refused(poisoned: Simulation) -> None:
    answer = estimate(poisoned.summary, attackers_at_most=0.0)
    assert answer.worst_case is not None
    assert not answer.worst_case.possible
    assert "At least" in answer.verdict


def test_a_quiet_collection_is_unclear_and_says_why(values: np.ndarray) -> None:
    run = simulate(PLAN, values, rng=np.random.default_rng(3))
    answer = estimate(run.summary)
    assert answer.byzantine.categories == ()
    assert answer.byzantine.finding == "unclear"
    assert "would not be seen" in answer.verdict
    assert not answer.fit["doubt"]


def test_one_group_alone_is_told(values: np.ndarray) -> None:
    rng = np.random.default_rng(4)
    run = simulate(PLAN, values, "some-groups:0;targets:c999", 0.2, rng)
    answer = estimate(run.summary)
    assert "of group 0 alone push c999" in answer.verdict
    assert answer.fit["attacked_groups"] == [0]


def test_tiers_are_added_up(values: np.ndarray) -> None:
    plan = Plan.new("k-rr", 2.0, categories=NAMES, tiers=[{"epsilon": 1.0}])
    budgets = np.where(np.arange(len(values)) % 2, 2.0, 1.0)
    run = simulate(plan, values, "targets:c999", 0.1, np.random.default_rng(5), budgets=budgets)
    answer = estimate(run.summary)
    assert answer.byzantine.categories == ("c999",)
    assert answer.byzantine.fraction == pytest.approx(0.1, abs=0.02)
    assert len(answer.tiers) == 2


def test_a_majority_of_attackers_is_not_answered(values: np.ndarray) -> None:
    honest = simulate(PLAN, values, rng=np.random.default_rng(6)).summary
    counts = honest.counts.copy()
    counts[:, 999] += (1.5 * honest.reports).astype(np.int64)
    answer = estimate(Summary(PLAN, counts, honest.sums))
    assert "do not use the answer" in answer.verdict
    assert answer.fit["doubt"]


def test_only_pushed_categories_are_named_however_little_poison_a_line_has() -> None:
    """A pushed category whose line says less than nothing is named before one that is not."""
    plan = Plan.new("k-rr", 2.0, min_epsilon=0.5, categories=NAMES[:300])
    run = simulate(plan, NAMES[:300] * 200, "targets:c7", 0.1, np.random.default_rng(7))
    analysis = CategoriesAnalysis(run.summary, range(3))
    fit = analysis.fit
    pushed = np.isin(np.arange(300), [7, 8])
    poison = np.where(pushed, fit.attackers.lines.poison, 0.0)
    poison[8] = -1e-6
    lines = replace(fit.attackers.lines, poison=poison)
    changed = replace(fit, pushed=pushed, attackers=replace(fit.attackers, lines=lines))
    analysis.__dict__["fit"] = changed
    assert analysis.place() == {"categories": ("c7", "c8")}


def test_weights_of_groups_are_those_that_reports_deserve(answer: Estimate) -> None:
    weights = [group.weight for group in answer.groups]
    assert sum(weights) == pytest.approx(1.0)
    assert weights[0] > 0.5, "half of all users, and the largest budget"
