"""Broken clients: what reports show of them, and that healthy clients show nothing of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from unpoison import Plan, Summary, simulate
from unpoison.datasets import datasets
from unpoison.filters.client_faults import diagnose, find_dropout
from unpoison.filters.client_faults.broken_mechanism import BrokenMechanism, Users
from unpoison.filters.client_faults.clipping import ClippingClient
from unpoison.filters.client_faults.hypotheses import Hypotheses
from unpoison.filters.client_faults.lattices import Lattice, usual_lattices
from unpoison.filters.client_faults.rounded_groups import RoundedGroups
from unpoison.filters.client_faults.rounding import (
    DIRECTIONS,
    DOWN,
    HALF_UP,
    NEAREST,
    TOWARDS_ZERO,
    UP,
    RoundingClient,
)
from unpoison.filters.client_faults.spikes import spikes
from unpoison.filters.client_faults.wrong_budget import WrongBudgetClient
from unpoison.mechanisms import Mechanism, make
from unpoison.reports.perturbation import perturb_group
from unpoison.simulation import Population
from unpoison.simulation.faults import Fault

pytestmark = pytest.mark.usefixtures("no_cramer_rao")

NUMBERS = ("piecewise", "square-wave", "piecewise-integer", "square-wave-integer")
POPULATION = Population.of(np.random.default_rng(1).beta(2, 5, 20_000))
DRAWS = 200_000


def plan_of(mechanism: str, epsilon: float = 1.0, least: float = 0.25) -> Plan:
    return Plan.new(mechanism, epsilon, least, low=0, high=1)


def counted(
    plan: Plan,
    fault: str | Fault | None = None,
    share: float = 1.0,
    attack: str = "none",
    gamma: float = 0.0,
    seed: int = 1,
    population: Population = POPULATION,
) -> Summary:
    rng = np.random.default_rng(seed)
    return simulate(
        plan, population, attack, gamma, rng, fault=fault, faulty_fraction=share
    ).summary


def tier(plan: Plan) -> range:
    return range(len(plan.groups))


def rounded(summary: Summary) -> RoundedGroups:
    return RoundedGroups.of(summary, tier(summary.plan))


@dataclass(frozen=True)
class RoundingBy(Fault):
    """Rounds reports in any way."""

    spacing: float
    direction: str

    def reports(self, plan, group, inputs, rng):  # type: ignore[no-untyped-def]
        return rounded_by(perturb_group(plan, group, inputs, rng), self.spacing, self.direction)


def rounded_by(reports: np.ndarray, spacing: float, direction: str) -> np.ndarray:
    number = reports / spacing
    multiples = {
        NEAREST: np.round(number),
        HALF_UP: np.floor(number + 0.5),
        DOWN: np.floor(number),
        UP: np.ceil(number),
        TOWARDS_ZERO: np.trunc(number),
    }
    return np.asarray(np.round(spacing * multiples[direction], 9))


# Mechanisms of broken clients


def shares_of_buckets(part: Mechanism, reports: np.ndarray) -> np.ndarray:
    """Shares of reports by 32 cells, as a Summary counts these."""
    per_unit = part.cells / (part.output_high - part.output_low)
    cells = np.floor((reports - part.output_low) * per_unit)
    accepted = cells[(cells >= 0) & (cells < part.cells)].astype(int)
    return np.asarray(np.bincount(accepted // 32, minlength=part.cells // 32) / len(reports))


@pytest.mark.parametrize("mechanism", NUMBERS)
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_a_rounding_client_reports_as_often_as_rounded_reports_do(
    mechanism: str, direction: str
) -> None:
    part = make(mechanism, 1.0, 1024)
    spacing = 50.0 if part.discrete else 0.25
    reports = part.perturb(np.full(DRAWS, 0.3), np.random.default_rng(1))
    sent = rounded_by(reports, spacing, direction)
    client = RoundingClient(part, spacing, direction)
    expected = client.probabilities(np.array([0.3]), part.grid()[::32])[0]
    assert shares_of_buckets(part, sent) == pytest.approx(expected, abs=5 * np.sqrt(0.25 / DRAWS))


@pytest.mark.parametrize("mechanism", NUMBERS)
def test_a_clipping_client_reports_as_often_as_clipped_reports_do(mechanism: str) -> None:
    part = make(mechanism, 1.0, 1024)
    low, high = (100.0, 700.0) if part.discrete else (0.125, 0.75)
    reports = np.clip(part.perturb(np.full(DRAWS, 0.3), np.random.default_rng(1)), low, high)
    client = ClippingClient(part, low, high)
    expected = client.probabilities(np.array([0.3]), part.grid()[::32])[0]
    assert shares_of_buckets(part, reports) == pytest.approx(
        expected, abs=5 * np.sqrt(0.25 / DRAWS)
    )


def test_refused_reports_leave_the_distribution_of_those_that_are_accepted() -> None:
    healthy, other = make("piecewise", 1.0, 512), make("piecewise", 0.25, 512)
    values, histogram = np.array([-0.9, 0.0, 0.8]), np.array([0.2, 0.5, 0.3])
    share, rng = 0.4, np.random.default_rng(1)
    broken = BrokenMechanism(healthy, WrongBudgetClient(other), share, Users(values, histogram))
    held = rng.choice(values, DRAWS, p=histogram)
    is_broken = rng.random(DRAWS) < share
    reports = np.where(is_broken, other.perturb(held, rng), healthy.perturb(held, rng))
    accepted = np.abs(reports) <= healthy.output_high
    assert accepted.mean() == pytest.approx(broken.accepted_share, abs=0.01)
    assert is_broken[accepted].mean() == pytest.approx(broken.report_share, abs=0.01)
    edges = healthy.grid()[::32]
    expected = histogram @ broken.cell_probabilities(values, edges)
    shares = np.histogram(reports[accepted], edges)[0] / accepted.sum()
    assert shares == pytest.approx(expected, abs=0.005)
    assert expected.sum() == pytest.approx(1)


@pytest.mark.parametrize("client", ["rounding", "clipping", "budget"])
def test_a_broken_mechanism_averages_over_inputs_as_over_single_values(client: str) -> None:
    healthy = make("piecewise", 1.0, 512)
    clients = {
        "rounding": RoundingClient(healthy, 0.3),
        "clipping": ClippingClient(healthy, -1.0, 1.0),
        "budget": WrongBudgetClient(make("piecewise", 2.0, 512)),
    }
    broken = BrokenMechanism(healthy, clients[client], 0.5)
    edges, inputs = healthy.grid()[::16], np.linspace(-1, 1, 5)
    fine = np.linspace(-1, 1, 4001)[:-1] + 1 / 4000
    average = broken.cell_probabilities(fine, edges).reshape(4, 1000, -1).mean(axis=1)
    assert pytest.approx(average, abs=1e-4) == broken.transition(inputs, edges).dense().T
    # Between kinks, all probabilities are linear, but for what is refused at the ends.
    kinks = broken.kinks(edges)
    middles = (kinks[1:] + kinks[:-1]) / 2
    at_kinks = broken.cell_probabilities(kinks, edges)
    linear = (at_kinks[1:] + at_kinks[:-1]) / 2
    assert broken.cell_probabilities(middles, edges) == pytest.approx(linear, abs=1e-5)


# Rounding


def healthy_chance(lattice: Lattice, value: float) -> float:
    part = lattice.mechanism
    return float(part.cell_probabilities(np.array([value]), part.grid())[0][lattice.cells].sum())


@pytest.mark.parametrize("mechanism", NUMBERS)
@pytest.mark.parametrize("epsilon", [0.25, 1.0, 8.0])
def test_no_value_puts_more_reports_on_a_lattice_than_the_bound(
    mechanism: str, epsilon: float
) -> None:
    part = make(mechanism, epsilon)
    rng = np.random.default_rng(1)
    values = np.linspace(part.input_low, part.input_high, 11).tolist() + rng.random(20).tolist()
    for lattice in usual_lattices(part):
        most = max(healthy_chance(lattice, value) for value in values)
        assert most <= lattice.most_honest + 1e-9


@pytest.mark.parametrize("mechanism", NUMBERS)
@pytest.mark.parametrize("epsilon", [0.5, 4.0])
@pytest.mark.parametrize("share", [0.1, 1.0])
def test_rounded_reports_are_recognised(mechanism: str, epsilon: float, share: float) -> None:
    plan = plan_of(mechanism, epsilon)
    discrete = plan.group_mechanisms[0].discrete
    for decimals, spacing in ((-1, 10.0), (-2, 100.0)) if discrete else ((1, 0.1), (2, 0.01)):
        summary = counted(plan, f"rounding:{decimals}", share)
        faults = rounded(summary).faults()
        assert [fault.detail["spacing"] for fault in faults] == [spacing]
        assert faults[0].groups == tuple(tier(plan))
        assert faults[0].share == pytest.approx(share, abs=0.03)


@pytest.mark.parametrize("direction", [DOWN, UP, TOWARDS_ZERO, NEAREST])
def test_the_way_of_rounding_shows_at_the_ends(direction: str) -> None:
    # A spacing that does not divide the domain, so that its ends tell the ways apart.
    plan = plan_of("piecewise", 2.0, 0.25)
    groups = rounded(counted(plan, RoundingBy(0.5, direction)))
    assert groups.direction() == (direction, True)


def test_spacings_that_are_powers_of_two_are_recognised() -> None:
    faults = rounded(counted(plan_of("piecewise"), RoundingBy(1 / 16, NEAREST))).faults()
    assert [fault.detail["spacing"] for fault in faults] == [1 / 16]


@pytest.mark.parametrize(
    "attack", ["point:1", "point:C", "opposite:3C/4,C", "evasion:0.3,-1,1,C", "uniform:0,1"]
)
def test_attackers_at_a_few_points_do_not_round(attack: str) -> None:
    assert rounded(counted(plan_of("piecewise"), None, 0, attack, 0.3)).groups == ()


def test_attackers_who_send_four_multiples_of_one_do_not_round() -> None:
    plan = plan_of("piecewise", 1.0, 1.0)
    honest = counted(plan)
    counts = honest.counts.copy()
    for value in (1.0, 2.0, 3.0, 4.0):
        counts[0, Lattice(plan.group_mechanisms[0], 1.0).cells[int(value) + 4]] += 1000
    assert rounded(Summary(plan, counts, honest.sums)).groups == ()


def test_categories_are_not_rounded() -> None:
    plan = Plan.new("k-rr", 2.0, 0.5, categories=["tea", "milk", "juice"])
    run = simulate(plan, np.repeat(["tea", "milk", "juice"], 2000), rng=np.random.default_rng(1))
    assert rounded(run.summary).groups == ()


@pytest.mark.slow
def test_few_reports_leave_many_cells_empty_and_are_not_rounded() -> None:
    for seed in range(8):
        population = Population.of(np.random.default_rng(seed).random(200))
        assert (
            rounded(counted(plan_of("piecewise", 4.0), seed=seed, population=population)).groups
            == ()
        )


# Clipped reports


def test_the_ends_of_a_clipped_range_stand_out_and_those_of_windows_do_not() -> None:
    plan = plan_of("piecewise", 8.0, 4.0)
    assert sorted(spikes(counted(plan, "clipped-reports", 0.5), [0, 1])) == [-1, 1]
    values = Population(np.array([0.1, 0.5, 0.518]), np.array([10_000, 10_000, 10_000]))
    assert spikes(counted(plan, population=values), [0, 1]) == []


def test_a_range_that_leaves_a_group_without_reports_is_not_tried() -> None:
    plan = plan_of("piecewise", 4.0, 0.25)
    summary = counted(plan, None, 0, "some-groups:4;opposite:8,16", 0.3)
    hypotheses = Hypotheses(summary, tuple(tier(plan))).all
    assert all(
        client.inner_edges(part.grid()[[0, -1]])[1] > part.output_low
        for hypothesis in hypotheses
        for group, client in hypothesis.clients.items()
        for part in [plan.group_mechanisms[group]]
    )


# Users who stop


def test_groups_that_are_larger_where_users_report_often_are_no_dropouts() -> None:
    repeats, expected = np.array([1, 2, 4]), np.full(3, 1000.0)
    assert find_dropout((0, 1, 2), np.array([1000.0, 1300, 1400]), expected, repeats) is None
    assert find_dropout((0, 1, 2), np.array([900.0, 800, 1100]), expected, repeats) is None
    once = np.ones(3, dtype=int)
    assert find_dropout((0, 1, 2), np.array([900.0, 800, 700]), expected, once) is None
    dropout = find_dropout((0, 1, 2), np.array([1000.0, 800, 810]), expected, repeats)
    assert dropout is not None
    assert dropout.groups == (1, 2)
    assert dropout.share == pytest.approx(0.13)


# Diagnoses


def drawn_collection(number: int) -> Summary:
    """A collection in which all clients are healthy, drawn at random."""
    rng = np.random.default_rng([5, number])
    shape = ("smooth", "spikes", "lattice", "ends")[number % 4]
    sample = datasets[shape]().draw(int(10 ** rng.uniform(3.7, 6)), rng)
    epsilon, groups = round(2 ** rng.uniform(-2, 3), 2), int(rng.integers(2, 6))
    low, high = float(sample.low), float(sample.high)
    mechanism = NUMBERS[int(rng.integers(4))]
    plan = Plan.new(mechanism, epsilon, epsilon / 2 ** (groups - 1), low=low, high=high)
    return simulate(plan, Population.of(sample.values), rng=rng).summary


@pytest.mark.slow
@pytest.mark.parametrize("number", range(200))
def test_healthy_clients_do_not_round(number: int) -> None:
    assert rounded(drawn_collection(number)).groups == ()


@pytest.mark.slow
@pytest.mark.parametrize("number", range(24))
def test_healthy_clients_have_no_fault(number: int) -> None:
    summary = drawn_collection(200 + number)
    diagnosis = diagnose(summary, tier(summary.plan))
    assert diagnosis.faults == ()
    assert diagnosis.alternative is None
