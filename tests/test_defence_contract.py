from __future__ import annotations

import math
from functools import cache, reduce
from operator import add

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unpoison import Estimate, Plan, Simulation, Summary, estimate, simulate
from unpoison.binning import Binner
from unpoison.defences import Ostrich, Trimming, defences, pooled
from unpoison.errors import InvalidParameter, NotEnoughData
from unpoison.mechanisms import mechanisms
from unpoison.methods import method_names

NUMERICAL = [name for name in mechanisms if not mechanisms[name].categorical]
LOW, HIGH = -20.0, 60.0


@cache
def plan(mechanism: str, epsilon: float = 2.0, min_epsilon: float = 0.5) -> Plan:
    return Plan.new(
        mechanism=mechanism, epsilon=epsilon, min_epsilon=min_epsilon, low=LOW, high=HIGH
    )


@cache
def collection(mechanism: str, attack: str = "none", seed: int = 2) -> Simulation:
    values = LOW + (HIGH - LOW) * np.random.default_rng(1).beta(2, 5, 20_000)
    return simulate(plan(mechanism), values, attack, 0.25, np.random.default_rng(seed))


every_defence = pytest.mark.parametrize("name", list(defences))
every_mechanism = pytest.mark.parametrize("mechanism", NUMERICAL)


# The contract of every defence


@every_defence
@every_mechanism
@pytest.mark.parametrize("attack", ["none", "uniform:R/2,R", "point:L"])
def test_a_defence_gives_a_finite_mean_from_a_summary_alone(
    name: str, mechanism: str, attack: str
) -> None:
    summary = collection(mechanism, attack).summary
    found = defences[name]().estimate(summary, name)
    assert found.method == name
    assert math.isfinite(found.mean)
    assert found.users == pytest.approx(20_000)
    assert found.reports == summary.reports.sum()
    assert found.verdict
    assert found.byzantine.side == "none"


@every_defence
@every_mechanism
def test_a_defence_answers_in_natural_units(name: str, mechanism: str) -> None:
    summary = collection(mechanism).summary
    wide = Plan.new(mechanism=mechanism, epsilon=2.0, min_epsilon=0.5, low=0, high=1000)
    same_reports = Summary(wide, summary.counts, summary.sums)
    share = (defences[name]().estimate(summary, name).mean - LOW) / (HIGH - LOW)
    assert defences[name]().estimate(same_reports, name).mean / 1000 == pytest.approx(share)


@every_defence
@every_mechanism
@settings(max_examples=5, deadline=None)
@given(order=st.permutations(range(4)))
def test_the_order_of_merging_does_not_change_the_answer(
    name: str, mechanism: str, order: list[int]
) -> None:
    parts = [collection(mechanism, "uniform:R/2,R", seed).summary for seed in range(4)]
    merged = reduce(add, parts)
    other = reduce(add, [parts[each] for each in order])
    assert defences[name]().estimate(merged, name) == defences[name]().estimate(other, name)


@every_defence
@every_mechanism
def test_the_answer_of_a_defence_survives_its_json_form(name: str, mechanism: str) -> None:
    found = defences[name]().estimate(collection(mechanism).summary, name)
    assert Estimate.from_json(found.to_json()) == found


@every_defence
def test_a_defence_is_a_method_by_its_name(name: str) -> None:
    summary = collection("piecewise").summary
    assert name in method_names()
    assert estimate(summary, method=name) == defences[name]().estimate(summary, name)


@every_defence
def test_a_defence_says_whether_its_collection_was_grouped(name: str) -> None:
    ungrouped = plan("piecewise", 2.0, 2.0)
    values = np.linspace(LOW, HIGH, 1000)
    run = simulate(ungrouped, values, "none", 0, np.random.default_rng(1))
    assert estimate(run.summary, method=name).fit["collection"] == "ungrouped"
    grouped = estimate(collection("piecewise").summary, method=name)
    assert grouped.fit["collection"] == "grouped"


@every_defence
def test_a_defence_without_reports_is_refused(name: str) -> None:
    with pytest.raises(NotEnoughData, match="received none"):
        estimate(Summary.empty(plan("piecewise")), method=name)


@every_defence
def test_a_defence_of_categories_is_refused(name: str) -> None:
    categorical = Plan.new(mechanism="k-rr", epsilon=1.0, categories=["a", "b"])
    with pytest.raises(InvalidParameter, match=f"{name} needs a numerical mechanism"):
        estimate(Summary.empty(categorical), method=name)


@every_defence
def test_a_defence_refuses_options_it_does_not_have(name: str) -> None:
    with pytest.raises(InvalidParameter, match="'colour'"):
        estimate(collection("piecewise").summary, method=name, colour="red")


@every_defence
def test_a_defence_works_with_some_groups_empty(name: str) -> None:
    binner = Binner(plan("piecewise"))
    binner.add_group(1, np.array([0.25, -0.25, 0.5, -0.5]))
    assert math.isfinite(estimate(binner.summary(), method=name).mean)


@every_defence
def test_a_single_report_gives_a_number_or_is_refused(name: str) -> None:
    binner = Binner(plan("piecewise"))
    binner.add_group(0, np.array([0.25]))
    try:
        found = estimate(binner.summary(), method=name)
    except NotEnoughData:
        return
    assert math.isfinite(found.mean)


@every_defence
def test_a_defence_is_documented_with_an_example(name: str) -> None:
    assert ">>>" in (defences[name].__doc__ or "")


# What each of them computes


@every_mechanism
def test_ostrich_is_unbiased_when_nobody_attacks(mechanism: str) -> None:
    run = collection(mechanism)
    found = estimate(run.summary, method="ostrich")
    reports = run.summary.reports
    variances = np.array([part.worst_variance for part in run.summary.plan.group_mechanisms])
    deviation = math.sqrt(reports @ variances) / reports.sum() * run.summary.plan.unit
    grouping = (HIGH - LOW) / math.sqrt(20_000)
    assert abs(found.mean - run.truth) < 5 * (deviation + grouping)


@every_mechanism
def test_ostrich_follows_the_poison(mechanism: str) -> None:
    run = collection(mechanism, "uniform:R/2,R")
    assert estimate(run.summary, method="ostrich").mean > run.truth + 0.2 * (HIGH - LOW)


@every_mechanism
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_trimming_averages_what_is_left_of_the_sorted_reports(mechanism: str, share: float) -> None:
    summary = collection(mechanism, "uniform:R/2,R").summary
    values, counts = pooled(summary)
    reports = np.repeat(values, counts.astype(int))
    removed = math.ceil(share * len(reports))
    assert (np.diff(values) >= 0).all()
    right = Trimming(side="right", share=share).mean(summary)
    left = Trimming(side="left", share=share).mean(summary)
    assert right == pytest.approx(reports[: len(reports) - removed].mean(), rel=1e-9)
    assert left == pytest.approx(reports[removed:].mean(), rel=1e-9)


@every_mechanism
def test_the_pool_holds_every_report_at_its_decoded_value(mechanism: str) -> None:
    summary = collection(mechanism).summary
    values, counts = pooled(summary)
    assert counts.sum() == summary.reports.sum()
    average = float(values @ counts / counts.sum())
    widest = max(
        float(np.diff(part.decode(part.grid())).max()) for part in summary.plan.group_mechanisms
    )
    assert abs(average - Ostrich().mean(summary)) < widest


@pytest.mark.parametrize("share", [0.0, 1.0, -0.5, math.nan])
def test_trimming_refuses_a_share_that_leaves_nothing_or_takes_nothing(share: float) -> None:
    with pytest.raises(InvalidParameter, match=r"share must be in \(0, 1\)"):
        estimate(collection("piecewise").summary, method="trimming", share=share)


def test_trimming_refuses_an_unknown_side() -> None:
    with pytest.raises(InvalidParameter, match="did you mean 'right'"):
        estimate(collection("piecewise").summary, method="trimming", side="rihgt")


def test_trimming_needs_a_report_that_is_left() -> None:
    binner = Binner(plan("piecewise"))
    binner.add_group(0, np.array([0.25]))
    with pytest.raises(NotEnoughData, match="must leave a report; received 1"):
        estimate(binner.summary(), method="trimming")
