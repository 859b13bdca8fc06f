"""The contract of every registered fault, and what each of them does."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2_contingency

from support.goodness_of_fit import ALMOST_NEVER, p_value
from unpoison import Plan, simulate
from unpoison.errors import InvalidParameter
from unpoison.mechanisms import make
from unpoison.simulation import Population, Simulation
from unpoison.simulation.faults import Clipping, Dropout, Legacy, Rounding, faults, parse_fault

CELLS = 64
NUMBERS = ("piecewise", "square-wave", "piecewise-integer", "square-wave-integer")
VALUES = np.repeat([0.1, 0.5, 0.9], [6000, 4000, 2000])
DRINKS = ["tea", "milk", "juice"]
WITH_NUMBERS = [name for name in faults if faults[name].categorical is not True]
WITH_CATEGORIES = [name for name in faults if faults[name].categorical is not False]

every_fault = pytest.mark.parametrize("name", list(faults))
every_pair = pytest.mark.parametrize(
    ("name", "mechanism"),
    [(name, mechanism) for name in WITH_NUMBERS for mechanism in NUMBERS]
    + [(name, "k-rr") for name in WITH_CATEGORIES],
)


def plan_of(mechanism: str) -> Plan:
    if mechanism == "k-rr":
        return Plan.new(mechanism, 2.0, 0.5, categories=DRINKS)
    return Plan.new(mechanism, 2.0, 0.5, low=0, high=1, cells=CELLS)


def values_of(mechanism: str) -> np.ndarray:
    return np.repeat(DRINKS, [6000, 4000, 2000]) if mechanism == "k-rr" else VALUES


def run(mechanism: str, fault: str, share: float, direct: bool = False) -> Simulation:
    values = values_of(mechanism)
    users = Population.of(values) if direct else values
    rng = np.random.default_rng(1)
    return simulate(plan_of(mechanism), users, rng=rng, fault=fault, faulty_fraction=share)


@every_pair
def test_the_collector_accepts_what_is_left_of_the_reports(name: str, mechanism: str) -> None:
    plan, fault = plan_of(mechanism), faults[name]()
    inputs = plan.normalise(np.repeat([0.0, 1.0, 2.0] if mechanism == "k-rr" else [0.1, 0.9], 50))
    for group, part in enumerate(plan.group_mechanisms):
        rng = np.random.default_rng(1)
        reports = fault.accepted_reports(plan, group, inputs, rng)
        assert 0 < len(reports) <= len(inputs) * plan.groups[group].reports
        top = part.output_high - (1 if part.discrete else 0)
        assert ((reports >= part.output_low) & (reports <= top)).all()
        assert not part.discrete or (reports == np.floor(reports)).all()


@every_pair
def test_counts_are_distributed_as_those_of_reports(name: str, mechanism: str) -> None:
    one_by_one, as_counts = (run(mechanism, name, 0.4, direct).summary for direct in (False, True))
    for rows in zip(one_by_one.counts, as_counts.counts, strict=True):
        table = np.array(rows)
        assert chi2_contingency(table[:, table.sum(axis=0) > 10]).pvalue > ALMOST_NEVER


@every_pair
def test_the_truth_is_about_the_values_that_users_hold(name: str, mechanism: str) -> None:
    broken, honest = run(mechanism, name, 1.0), run(mechanism, name, 0.0)
    assert broken.truth == pytest.approx(honest.truth, nan_ok=True)
    assert broken.frequencies == honest.frequencies
    assert broken.byzantine_fraction == 0


@pytest.mark.parametrize("direct", [False, True])
def test_attackers_have_no_broken_clients(direct: bool) -> None:
    plan, rng = plan_of("piecewise"), np.random.default_rng(1)
    users = Population.of(VALUES) if direct else VALUES
    faulty = simulate(plan, users, "point:C", 0.25, rng, fault="dropout:0", faulty_fraction=1.0)
    assert faulty.honest_summary is not None
    poison = faulty.summary.counts - faulty.honest_summary.counts
    assert poison[0, -1] == poison[0].sum() > 900


@every_fault
def test_a_fault_is_a_documented_value_that_its_name_finds(name: str) -> None:
    assert parse_fault(name) == faults[name]()
    assert parse_fault(faults[name]()) == faults[name]()
    assert ">>>" in (faults[name].__doc__ or "")


@pytest.mark.parametrize("name", [name for name in faults if name not in WITH_CATEGORIES])
def test_a_fault_of_numbers_is_refused_with_categories(name: str) -> None:
    fitting = ", ".join(WITH_CATEGORIES)
    with pytest.raises(InvalidParameter, match=f"fault must be one with categories: {fitting}"):
        run("k-rr", name, 0.5)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("runding:1", "fault must be one of .* did you mean 'rounding'"),
        ("rounding:0.5", "decimals must be a whole number; received 0.5"),
        ("rounding:1,2", "rounding takes decimals, each once; received '2'"),
        ("clipping:0.5,0.5", "low and high must rise, from -1 to 1; received 0.5, 0.5"),
        ("clipping:-2", "low and high must rise, from -1 to 1; received -2, 0.5"),
        ("legacy:-1", r"epsilon must be in \[0.0001, 16\]; received -1.0"),
        ("dropout:1", r"after must be in \[0, 1\); received 1.0"),
    ],
)
def test_a_fault_that_cannot_be_is_refused(text: str, message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        parse_fault(text)


@pytest.mark.parametrize("share", [-0.1, 1.1])
def test_a_share_that_is_none_is_refused(share: float) -> None:
    with pytest.raises(InvalidParameter, match=r"faulty_fraction must be in \[0, 1\]"):
        run("piecewise", "rounding:1", share)


def test_without_broken_clients_reports_are_those_of_a_collection_without_fault() -> None:
    healthy = simulate(plan_of("piecewise"), VALUES, rng=np.random.default_rng(1))
    assert run("piecewise", "rounding", 0.0).summary == healthy.summary


# What each fault does


@pytest.mark.parametrize("decimals", [0, 1, 2])
def test_rounded_reports_have_few_decimals_and_lie_in_their_domain(decimals: int) -> None:
    plan, rng = plan_of("piecewise"), np.random.default_rng(1)
    reports = Rounding(decimals).accepted_reports(plan, 2, np.zeros(1000), rng)
    assert (reports == np.round(reports, decimals)).all()
    assert len(set(reports.tolist())) > 5


def test_cell_numbers_are_rounded_to_tens() -> None:
    plan, rng = plan_of("piecewise-integer"), np.random.default_rng(1)
    reports = Rounding(-1).accepted_reports(plan, 0, np.zeros(1000), rng)
    assert set(reports.tolist()) == {0, 10, 20, 30, 40, 50, 60}


@pytest.mark.parametrize("mechanism", NUMBERS)
def test_clipped_values_are_reported_as_the_end_of_the_narrower_range(mechanism: str) -> None:
    plan = Plan.new(mechanism, 4.0, 4.0, low=0, high=1)
    inputs = plan.normalise(np.repeat([0.0, 0.6, 1.0], 20_000))
    reports = Clipping(-0.5, 0.5).reports(plan, 0, inputs, np.random.default_rng(1))
    part = plan.group_mechanisms[0]
    means = part.decode(reports.reshape(3, -1)).mean(axis=1)
    expected = plan.normalise(np.array([0.25, 0.6, 0.75]))
    deviations = np.sqrt(part.variance(expected) / 20_000)
    assert (np.abs(means - expected) < 5 * deviations).all()


@pytest.mark.parametrize("epsilon", [0.0, 1.5])
def test_legacy_clients_report_as_if_the_budget_were_theirs(epsilon: float) -> None:
    plan, rng = plan_of("piecewise"), np.random.default_rng(1)
    part = make("piecewise", epsilon or 2.0, CELLS)
    reports = Legacy(epsilon).reports(plan, 2, np.full(10_000, 0.5), rng)
    counts = np.histogram(reports, part.grid())[0]
    expected = part.cell_probabilities(np.array([0.5]), part.grid())[0]
    assert p_value(counts, 40_000 * expected) > ALMOST_NEVER


def test_reports_of_a_smaller_budget_are_refused_where_they_are_outside_the_domain() -> None:
    plan, rng = plan_of("piecewise"), np.random.default_rng(1)
    accepted = Legacy(0.25).accepted_reports(plan, 0, np.zeros(1000), rng)
    assert 0 < len(accepted) < 500


def test_users_with_large_values_drop_out_more_often() -> None:
    chances = Dropout().chances(plan_of("piecewise"), np.array([-1.0, 0.0, 1.0]), None)
    assert chances == pytest.approx([0, 1, 2])
    weighted = Dropout().chances(plan_of("piecewise"), np.array([0.0, 1.0]), np.array([3, 1]))
    assert weighted @ [3, 1] / 4 == pytest.approx(1)
    lowest = Dropout().chances(plan_of("piecewise"), np.array([-1.0]), None)
    assert lowest == pytest.approx([1])


@pytest.mark.parametrize("direct", [False, True])
def test_dropout_leaves_groups_of_one_report_whole_and_halves_those_of_users_who_stop(
    direct: bool,
) -> None:
    summary = run("piecewise", "dropout", 0.2, direct).summary
    assert summary.reports[0] == 4000
    assert summary.reports[1:] / [8000, 16_000] == pytest.approx([0.9, 0.9], abs=0.01)
