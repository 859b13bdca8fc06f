"""Estimates in spite of broken clients: what is named, whether it is right, and doubts."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

import numpy as np
import pytest

from unpoison import Estimate, Plan, Simulation, estimate, simulate
from unpoison.filters.client_faults.diagnosis import ATTACK_POSSIBLE
from unpoison.filters.client_faults.rounded_groups import DIRECTION_UNKNOWN
from unpoison.protocols.joint_analysis import JointAnalysis
from unpoison.reports.perturbation import perturb_group
from unpoison.simulation import Population
from unpoison.simulation.faults import Fault

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_cramer_rao")]

POPULATION = Population.of(np.random.default_rng(1).beta(2, 5, 40_000))
NOT_AN_ATTACK = "this is a fault of clients, not an attack."


def plan_of(mechanism: str, epsilon: float, least: float = 0.25) -> Plan:
    return Plan.new(mechanism, epsilon, least, low=0, high=1)


def run_of(
    plan: Plan,
    fault: str | Fault | None,
    share: float,
    attack: str = "none",
    gamma: float = 0.0,
    seed: int = 2,
) -> Simulation:
    rng = np.random.default_rng(seed)
    return simulate(plan, POPULATION, attack, gamma, rng, fault=fault, faulty_fraction=share)


def kinds(answer: Estimate) -> list[str]:
    return [fault["kind"] for fault in answer.fit["client_faults"]]


def is_near(answer: Estimate, truth: float) -> bool:
    """Whether the truth is within twice the length of the interval's sides: four errors."""
    assert answer.interval is not None
    low, high = answer.interval
    return 2 * low - answer.mean <= truth <= 2 * high - answer.mean


@pytest.mark.parametrize("share", [0.2, 1.0])
@pytest.mark.parametrize(
    ("mechanism", "epsilon", "fault", "spacing"),
    [
        ("piecewise", 1.0, "rounding:1", 0.1),
        ("piecewise", 4.0, "rounding:0", 1.0),
        ("square-wave", 1.0, "rounding:1", 0.1),
        ("square-wave", 1.0, "rounding:0", 1.0),
        ("piecewise-integer", 2.0, "rounding:-2", 100.0),
        ("square-wave-integer", 0.5, "rounding:-1", 10.0),
    ],
)
def test_rounding_is_named_and_does_no_harm(
    mechanism: str, epsilon: float, fault: str, spacing: float, share: float
) -> None:
    run = run_of(plan_of(mechanism, epsilon), fault, share)
    answer = estimate(run.summary, method="joint")
    (rounding,) = answer.fit["client_faults"]
    assert rounding["kind"] == "rounding"
    assert rounding["spacing"] == spacing
    assert rounding["share"] == pytest.approx(share, abs=0.03)
    assert f"rounded to multiples of {spacing:g}: this is a fault of clients" in answer.verdict
    assert NOT_AN_ATTACK in answer.verdict or answer.fit["doubt"]
    assert answer.byzantine.fraction == 0
    assert is_near(answer, run.truth)
    assert answer.fit["group_sizes_p_value"] > 0.001


@pytest.mark.parametrize("share", [0.2, 1.0])
@pytest.mark.parametrize(
    ("mechanism", "epsilon", "fault"),
    [
        ("piecewise", 1.0, "legacy"),
        ("piecewise", 4.0, "legacy:0.5"),
        ("square-wave", 2.0, "legacy"),
        ("piecewise-integer", 4.0, "legacy"),
    ],
)
def test_another_budget_is_named_and_the_estimate_allows_for_it(
    mechanism: str, epsilon: float, fault: str, share: float
) -> None:
    plan = plan_of(mechanism, epsilon)
    run = run_of(plan, fault, share)
    answer = estimate(run.summary, method="joint")
    (wrong,) = answer.fit["client_faults"]
    used = 0.5 if ":" in fault else epsilon
    assert wrong["kind"] == "wrong-epsilon"
    assert set(wrong["epsilon"]) == {used}
    assert wrong["groups"] == [g for g, part in enumerate(plan.groups) if part.epsilon != used]
    assert wrong["share"] == pytest.approx(share, abs=0.03)
    assert "an old or wrong configuration, not an attack" in answer.verdict
    assert answer.byzantine.fraction == 0
    assert not answer.fit["doubt"]
    assert is_near(answer, run.truth)


def test_one_group_with_another_budget_is_named() -> None:
    plan = plan_of("piecewise", 1.0)
    healthy, legacy = (run_of(plan, "legacy", share) for share in (0.0, 0.3))
    counts, sums = healthy.summary.counts.copy(), list(healthy.summary.sums)
    counts[2], sums[2] = legacy.summary.counts[2], legacy.summary.sums[2]
    answer = estimate(replace(healthy.summary, counts=counts, sums=tuple(sums)), method="joint")
    (wrong,) = answer.fit["client_faults"]
    assert (wrong["groups"], wrong["epsilon"]) == ([2], [1.0])
    assert "of reports of group 2 look like reports with epsilon = 1 instead" in answer.verdict


def test_another_budget_is_named_of_categories() -> None:
    plan = Plan.new("k-rr", 4.0, 0.25, categories=["tea", "milk", "juice", "water"])
    values = np.repeat(["tea", "milk", "juice", "water"], [40_000, 30_000, 20_000, 10_000])
    rng = np.random.default_rng(1)
    run = simulate(plan, values, rng=rng, fault="legacy", faulty_fraction=0.4)
    answer = estimate(run.summary, method="joint")
    assert kinds(answer) == ["wrong-epsilon"]
    assert answer.frequencies == pytest.approx(run.frequencies, abs=0.01)


@pytest.mark.parametrize("share", [0.2, 1.0])
@pytest.mark.parametrize(
    ("mechanism", "ends"),
    [("piecewise", (-1, 1)), ("square-wave", (0, 1)), ("piecewise-integer", (1000, 3000))],
)
def test_clipped_reports_are_named(mechanism: str, ends: tuple[int, int], share: float) -> None:
    low, high = ends
    run = run_of(plan_of(mechanism, 2.0), f"clipped-reports:{low},{high}", share)
    answer = estimate(run.summary, method="joint")
    (clipped,) = answer.fit["client_faults"]
    assert (clipped["kind"], clipped["low"], clipped["high"]) == ("clipped-reports", low, high)
    assert clipped["share"] == pytest.approx(share, abs=0.03)
    assert f"clipped at {low} and {high}: {NOT_AN_ATTACK}" in answer.verdict
    assert is_near(answer, run.truth)


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_users_who_stop_are_named_and_the_interval_allows_for_their_values(epsilon: float) -> None:
    run = run_of(plan_of("piecewise", epsilon), "dropout", 0.3)
    answer = estimate(run.summary, method="joint")
    (dropout,) = answer.fit["client_faults"]
    assert dropout["kind"] == "dropout"
    assert 0 not in dropout["groups"]
    assert dropout["kept"] == pytest.approx([1] + [0.85] * len(dropout["groups"]), abs=0.03)
    assert "users stop before they have sent all" in answer.verdict
    assert "more users than their share" not in answer.verdict
    assert answer.fit["doubt"]
    assert is_near(answer, run.truth)


def test_attackers_who_report_in_the_first_group_alone_are_no_users_who_stop() -> None:
    run = run_of(plan_of("piecewise", 1.0), None, 0, "fishing:0;uniform:3C/4,C", 0.1)
    answer = estimate(run.summary, method="joint")
    assert kinds(answer) == []
    assert answer.fit["doubt"]
    assert "more users than their share" in answer.verdict


@pytest.mark.parametrize("mechanism", ["piecewise", "piecewise-integer"])
@pytest.mark.parametrize(
    "attack",
    [
        "point:C",
        "uniform:3C/4,C",
        "evasion:0.3",
        "opposite:3C/4,C",
        "some-groups:0,1;uniform:C/2,C",
        "fishing:0;point:C/2",
        "imitator:up,0.5",
        "noise",
    ],
)
def test_attackers_are_not_called_broken_clients(mechanism: str, attack: str) -> None:
    run = run_of(plan_of(mechanism, 1.0), None, 0, attack, 0.2)
    answer = estimate(run.summary, method="joint")
    assert kinds(answer) == [] or answer.fit["doubt"]
    assert "not an attack" not in answer.verdict


def test_attackers_are_found_among_clients_that_round() -> None:
    run = run_of(plan_of("piecewise", 1.0), "rounding:1", 1.0, "uniform:3C/4,C", 0.2)
    answer = estimate(run.summary, method="joint")
    assert kinds(answer) == ["rounding"]
    assert answer.byzantine.fraction == pytest.approx(0.2, abs=0.02)
    assert answer.fit["doubt"]
    assert is_near(answer, run.truth)


def test_faint_evidence_of_another_budget_raises_a_doubt_and_widens_the_interval() -> None:
    run = run_of(plan_of("piecewise-integer", 1.0), "legacy", 0.2)
    analysis = JointAnalysis(run.summary, range(3))
    answer = estimate(run.summary, method="joint")
    assert analysis.clients.alternative is not None
    assert answer.fit["doubt"]
    assert ATTACK_POSSIBLE in answer.verdict
    assert "not an attack" not in answer.verdict
    assert is_near(answer, run.truth)


@dataclass(frozen=True)
class RoundingDown(Fault):
    """Reports are cut off after so many decimals."""

    def reports(self, plan, group, inputs, rng):  # type: ignore[no-untyped-def]
        return np.floor(perturb_group(plan, group, inputs, rng) * 2) / 2


def test_reports_that_are_rounded_down_are_estimated_as_such_or_doubted() -> None:
    run = run_of(plan_of("piecewise", 1.0), RoundingDown(), 1.0)
    answer = estimate(run.summary, method="joint")
    assert kinds(answer) == ["rounding"]
    if answer.fit["doubt"]:
        assert DIRECTION_UNKNOWN in answer.verdict
    else:
        assert "multiples of 0.5, always down" in answer.verdict
        assert is_near(answer, run.truth)


def test_clipped_values_are_just_other_values() -> None:
    answer = estimate(run_of(plan_of("piecewise", 1.0), "clipping", 0.5).summary, method="joint")
    assert kinds(answer) == []


def test_faults_are_part_of_the_json_form() -> None:
    run = run_of(plan_of("piecewise", 1.0), "rounding:1", 0.5)
    answer = estimate(run.summary, method="joint")
    (fault,) = json.loads(answer.to_json())["fit"]["client_faults"]
    assert fault == {
        "kind": "rounding",
        "groups": [0, 1, 2],
        "share": pytest.approx(0.5, abs=0.02),
        "spacing": 0.1,
        "direction": "nearest",
    }
