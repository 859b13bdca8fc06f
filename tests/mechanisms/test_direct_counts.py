"""Counts drawn directly are distributed as if every report had been drawn."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import ks_2samp

from support.goodness_of_fit import ALMOST_NEVER, p_value
from unpoison import Plan, simulate
from unpoison.attacks import Attack, parse_attack
from unpoison.errors import InvalidParameter
from unpoison.estimate import Estimate
from unpoison.estimate.methods import estimates
from unpoison.mechanisms import make, mechanisms
from unpoison.mechanisms.direct_counts import draw_windows
from unpoison.simulation.ground_truth import GroundTruth
from unpoison.simulation.honest_inputs import HonestInputs
from unpoison.simulation.oracle_floor import HonestUsers, cramer_rao, oracle_floor
from unpoison.simulation.population import Population
from unpoison.types import FloatArray

every_mechanism = pytest.mark.parametrize("name", list(mechanisms))
BUDGETS = [1 / 16, 1.0, 6.0]


def some_values(name: str, epsilon: float) -> FloatArray:
    part = make(name, epsilon, 40)
    if part.categorical:
        return np.array([0.0, 7.0, 39.0])
    return part.input_low + np.array([0, 0.1234, 0.5, 1]) * (part.input_high - part.input_low)


@every_mechanism
@pytest.mark.parametrize("epsilon", BUDGETS)
def test_counts_follow_the_probabilities_of_cells(name: str, epsilon: float) -> None:
    part, values = make(name, epsilon, 40), some_values(name, epsilon)
    numbers = np.arange(1, len(values) + 1) * 50_000
    counts = part.draw_counts(values, numbers, np.random.default_rng(1))
    assert counts.sum() == numbers.sum()
    assert p_value(counts, numbers @ part.cell_probabilities(values, part.grid())) > ALMOST_NEVER


@pytest.mark.slow
@every_mechanism
def test_counts_vary_as_those_of_single_reports_do(name: str) -> None:
    part, values = make(name, 1.0, 40), some_values(name, 1.0)
    numbers, rng = np.full(len(values), 50), np.random.default_rng(1)
    repeated = np.repeat(values, numbers)
    grid = part.grid()
    counted = [int(part.draw_counts(values, numbers, rng)[7]) for _ in range(2000)]
    single = [
        int(np.histogram(part.perturb(repeated, rng) + (0.5 if part.discrete else 0), grid)[0][7])
        for _ in range(2000)
    ]
    assert ks_2samp(counted, single).pvalue > ALMOST_NEVER


@pytest.mark.parametrize("cells", [2, 3, 5, 8, 37])
def test_windows_cover_what_they_overlap(cells: int) -> None:
    rng = np.random.default_rng(cells)
    for _ in range(20):
        width = float(rng.random() * cells)
        start = np.array([rng.random() * (cells - width)])
        counts = draw_windows(start, width, np.array([10_000]), cells, rng)
        overlap = np.diff(np.clip(np.arange(cells + 1) - start, 0, width))
        assert p_value(counts, 10_000 * overlap / overlap.sum()) > ALMOST_NEVER


ATTACKS = {
    "uniform:C/3,C": "piecewise",
    "point:C/3": "piecewise",
    "evasion:0.3": "piecewise",
    "targets:a,c": "k-rr",
    "maximal-gain:2": "k-rr",
    "random": "k-rr",
    "gaussian:C/3,C": "piecewise",
    "beta:C/3,C,2,3/2": "piecewise",
    "triangular:-C,C,C/3": "piecewise",
    "noise": "piecewise-integer",
    "input:1/3": "piecewise",
    "input:b": "k-rr",
    "adaptive:2,C/3,C": "piecewise",
    "opposite:C/3,C": "piecewise",
}
"""Parameters beyond the examples that the contract of attacks is checked with, and a mechanism."""


def truth_of(mechanism: str) -> GroundTruth:
    if mechanism == "k-rr":
        plan = Plan.new(mechanism, 1.0, categories=["a", "b", "c"])
        return GroundTruth(plan, HonestInputs(np.array([0.0, 1.0, 2.0]), np.array([5, 3, 2])))
    plan = Plan.new(mechanism, 1.0, low=0, high=1, cells=64)
    return GroundTruth(plan, HonestInputs(np.array([-0.2, 0.1])))


@pytest.mark.parametrize("text", ATTACKS)
def test_poison_reaches_the_same_cells_whether_counted_or_sent(text: str) -> None:
    attack, target = parse_attack(text), truth_of(ATTACKS[text]).target(0)
    counts = attack.poison_counts(target, 60_000, np.random.default_rng(1))
    sent = Attack.poison_counts(attack, target, 600_000, np.random.default_rng(2))
    assert counts.sum() == 60_000
    assert ((counts > 0) == (sent > 0)).all()
    assert p_value(counts, sent / 10) > ALMOST_NEVER


def answers(fast: bool, mechanism: str, trials: int) -> list[Estimate]:
    keys = {"categories": ["a", "b", "c"]} if mechanism == "k-rr" else {"low": 0, "high": 1}
    plan = Plan.new(mechanism, 1.0, min_epsilon=0.25, **keys)
    rng = np.random.default_rng(3 if fast else 4)
    if mechanism == "k-rr":
        values = np.repeat(["a", "b", "c"], [500, 300, 200])
    else:
        values = np.random.default_rng(1).beta(2, 5, 1000).round(2)
    attack = "targets:c" if mechanism == "k-rr" else "uniform:C/2,C"
    attack = "uniform:1+b/2,1+b" if mechanism == "square-wave" else attack
    users = Population.of(values) if fast else values
    runs = [simulate(plan, users, attack, 0.2, stream) for stream in rng.spawn(trials)]
    return [estimates(run.summary, ["ostrich"])["ostrich"] for run in runs]


@pytest.mark.slow
@pytest.mark.usefixtures("no_cramer_rao")
@pytest.mark.parametrize("mechanism", ["piecewise", "square-wave", "piecewise-integer", "k-rr"])
def test_estimates_are_distributed_alike(mechanism: str) -> None:
    def statistic(answer: Estimate) -> float:
        return answer.frequencies["b"] if answer.frequencies else answer.mean

    counted = [statistic(answer) for answer in answers(True, mechanism, 80)]
    single = [statistic(answer) for answer in answers(False, mechanism, 80)]
    assert ks_2samp(counted, single).pvalue > ALMOST_NEVER


def test_groups_and_roles_are_as_many_as_planned() -> None:
    plan = Plan.new(epsilon=1.0, min_epsilon=0.25, low=0, high=1)
    population = Population(np.array([0.25, 0.5]), np.array([700, 299]))
    run = simulate(plan, population, "point:C", 0.1, np.random.default_rng(1))
    assert run.summary.users.tolist() == [333, 333, 333]
    assert run.byzantine_fraction == 100 / 999
    assert 0.25 < run.truth < 0.5


def test_truth_and_floor_are_those_of_the_honest_users() -> None:
    plan = Plan.new(epsilon=1.0, min_epsilon=0.25, low=0, high=1)
    values = np.random.default_rng(1).beta(2, 5, 3000).round(2)
    one_by_one = simulate(plan, values, "none", 0, np.random.default_rng(1))
    as_counts = simulate(plan, Population.of(values), "none", 0, np.random.default_rng(1))
    assert as_counts.truth == pytest.approx(one_by_one.truth)
    assert as_counts.floor == pytest.approx(one_by_one.floor)
    assert as_counts.cramer_rao == pytest.approx(one_by_one.cramer_rao)
    assert as_counts.honest is not None
    assert as_counts.honest.fractions == pytest.approx(one_by_one.honest.fractions)  # type: ignore[union-attr]


def test_numbers_are_weights_of_the_floor() -> None:
    plan = Plan.new(epsilon=1.0, min_epsilon=0.5, low=0, high=1)
    values, numbers = np.array([-0.5, 0.1, 0.7]), np.array([3, 2, 1])
    users = np.array([3.0, 3.0])
    for bound in (oracle_floor, cramer_rao):
        repeated = bound(HonestUsers(plan, np.repeat(values, numbers), users))
        weighted = bound(HonestUsers(plan, values, users, numbers=numbers))
        assert weighted == pytest.approx(repeated)


def test_attackers_of_categories_are_named() -> None:
    plan = Plan.new("k-rr", 1.0, min_epsilon=0.5, categories=["a", "b", "c"])
    population = Population(np.array(["a", "b", "c"]), np.array([500, 400, 100]))
    run = simulate(plan, population, "maximal-gain:2", 0.2, np.random.default_rng(1))
    assert run.poisoned == ("b", "c")
    assert run.frequencies is not None
    assert sum(run.frequencies.values()) == pytest.approx(1)


def test_a_population_of_many_numbers_keeps_the_mean() -> None:
    values = np.random.default_rng(1).lognormal(size=50_000)
    population = Population.of(values, quanta=64)
    assert len(population.values) <= 64
    assert population.users == 50_000
    mean = float(population.values @ population.numbers / population.users)
    assert mean == pytest.approx(values.mean())
    width = (values.max() - values.min()) / 64
    nearest = np.abs(values[:, None] - population.values).min(axis=1)
    assert nearest.max() <= width


def test_a_population_can_be_resampled_to_any_size() -> None:
    population = Population.of(["x", "y", "y"]).resampled(10**9, np.random.default_rng(1))
    assert population.users == 10**9
    assert population.numbers[1] / population.users == pytest.approx(2 / 3, abs=1e-3)


@pytest.mark.parametrize("numbers", [[1], [0, 0], [-1, 2]])
def test_a_population_needs_counts(numbers: list[int]) -> None:
    with pytest.raises(InvalidParameter, match="numbers"):
        Population(np.array([0.0, 1.0]), np.array(numbers))


def test_what_cannot_be_drawn_as_counts_is_refused() -> None:
    population = Population.of([0.1, 0.2, 0.3])
    baseline = Plan.new(protocol="baseline", low=0, high=1)
    tiered = Plan.new(low=0, high=1, tiers=[{"epsilon": 0.5}])
    for plan in (baseline, tiered):
        with pytest.raises(InvalidParameter, match="dap plan without tiers"):
            simulate(plan, population)
    with pytest.raises(InvalidParameter, match="budgets"):
        simulate(Plan.new(low=0, high=1), population, budgets=[1.0])
