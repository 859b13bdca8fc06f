"""The contract of every registered defence, and what Ostrich and Trimming compute."""

from __future__ import annotations

import math
from dataclasses import asdict, replace
from functools import cache, reduce
from operator import add
from typing import Any

import numpy as np
import pytest

from unpoison import Estimate, Plan, Simulation, Summary, estimate, simulate
from unpoison.bench import plain_em
from unpoison.defences import Defence, Ostrich, SelectingDefence, Trimming, decoded_cells, defences
from unpoison.errors import InvalidParameter, NotEnoughData
from unpoison.estimate.methods import method_names
from unpoison.filters.buckets import Buckets
from unpoison.mechanisms import mechanisms
from unpoison.summary.binning import Binner

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


def example(name: str) -> Defence:
    return defences[name].example()


every_defence = pytest.mark.parametrize("name", list(defences))
every_mechanism = pytest.mark.parametrize("mechanism", NUMERICAL)


# The contract of every registered defence


@every_defence
def test_the_example_of_a_defence_is_of_its_class(name: str) -> None:
    assert type(example(name)) is defences[name]


@pytest.mark.slow
@every_defence
@every_mechanism
@pytest.mark.parametrize("attack", ["none", "uniform:R/2,R", "point:L"])
def test_a_defence_gives_a_finite_mean_from_a_summary_alone(
    name: str, mechanism: str, attack: str
) -> None:
    summary = collection(mechanism, attack).summary
    answer = example(name).estimate(summary, name)
    assert answer.method == name
    assert math.isfinite(answer.mean)
    assert answer.users == pytest.approx(20_000)
    assert answer.reports == summary.reports.sum()
    assert answer.verdict
    assert answer.byzantine.side == "none"


@pytest.mark.slow
@every_defence
@every_mechanism
def test_a_defence_answers_in_natural_units(name: str, mechanism: str) -> None:
    summary = collection(mechanism).summary
    wide = Plan.new(mechanism=mechanism, epsilon=2.0, min_epsilon=0.5, low=0, high=1000)
    same_reports = Summary(wide, summary.counts, summary.sums)
    share = (example(name).estimate(summary, name).mean - LOW) / (HIGH - LOW)
    assert example(name).estimate(same_reports, name).mean / 1000 == pytest.approx(share)


@pytest.mark.slow
@every_defence
@every_mechanism
def test_the_order_of_merging_does_not_change_the_answer(name: str, mechanism: str) -> None:
    parts = [collection(mechanism, "uniform:R/2,R", seed).summary for seed in range(4)]
    merged = reduce(add, parts)
    other = reduce(add, [parts[index] for index in (2, 0, 3, 1)])
    assert example(name).estimate(merged, name) == example(name).estimate(other, name)


@every_defence
@every_mechanism
def test_the_answer_of_a_defence_survives_its_json_form(name: str, mechanism: str) -> None:
    answer = example(name).estimate(collection(mechanism).summary, name)
    assert Estimate.from_json(answer.to_json()) == answer


@every_defence
def test_a_defence_is_a_method_by_its_name(name: str) -> None:
    summary = collection("piecewise").summary
    assert name in method_names()
    options: dict[str, Any] = asdict(example(name))  # type: ignore[call-overload]
    assert estimate(summary, method=name, **options) == example(name).estimate(summary, name)


@pytest.mark.slow
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
def test_a_defence_refuses_options_it_does_not_have(name: str) -> None:
    with pytest.raises(InvalidParameter, match="'colour'"):
        estimate(collection("piecewise").summary, method=name, colour="red")


@every_defence
def test_a_defence_works_with_some_groups_empty(name: str) -> None:
    binner = Binner(plan("piecewise"))
    binner.add_group(1, np.linspace(-0.5, 0.5, 40))
    assert math.isfinite(estimate(binner.summary(), method=name).mean)


@every_defence
def test_a_single_report_gives_a_number_or_is_refused(name: str) -> None:
    binner = Binner(plan("piecewise"))
    binner.add_group(0, np.array([0.25]))
    try:
        answer = estimate(binner.summary(), method=name)
    except NotEnoughData:
        return
    assert math.isfinite(answer.mean)


@every_defence
def test_a_defence_is_documented_with_an_example(name: str) -> None:
    assert ">>>" in (defences[name].__doc__ or "")


@every_defence
def test_a_defence_takes_no_categories_unless_it_says_so(name: str) -> None:
    drinks = Plan.new("k-rr", 1.0, min_epsilon=0.5, categories=["tea", "milk"])
    run = simulate(drinks, ["tea", "milk"] * 1000, "none", 0, np.random.default_rng(1))
    if defences[name].categorical:
        assert estimate(run.summary, method=name).frequencies
        return
    with pytest.raises(InvalidParameter, match=f"method must be one that .*'{name}'"):
        estimate(run.summary, method=name)


@every_defence
@every_mechanism
def test_no_more_reports_are_kept_than_there_are(name: str, mechanism: str) -> None:
    defence, summary = example(name), collection(mechanism, "uniform:R/2,R").summary
    if isinstance(defence, SelectingDefence):
        kept = defence.kept_counts(summary)
        assert kept.shape == summary.counts.shape
        assert (kept >= 0).all()
        assert (kept <= summary.counts).all()
        assert 0 < kept.sum() <= summary.counts.sum()


# What each of them computes


@every_mechanism
def test_ostrich_is_unbiased_when_nobody_attacks(mechanism: str) -> None:
    run = collection(mechanism)
    answer = estimate(run.summary, method="ostrich")
    reports = run.summary.reports
    variances = np.array([part.worst_variance for part in run.summary.plan.group_mechanisms])
    deviation = math.sqrt(reports @ variances) / reports.sum() * run.summary.plan.natural_scale
    grouping = (HIGH - LOW) / math.sqrt(20_000)
    assert abs(answer.mean - run.truth) < 5 * (deviation + grouping)


@every_mechanism
def test_ostrich_follows_the_poison(mechanism: str) -> None:
    run = collection(mechanism, "uniform:R/2,R")
    assert estimate(run.summary, method="ostrich").mean > run.truth + 0.2 * (HIGH - LOW)


def sorted_reports(summary: Summary) -> np.ndarray:
    return np.sort(np.repeat(decoded_cells(summary).ravel(), summary.counts.ravel()))


@every_mechanism
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_trimming_keeps_what_is_left_of_the_sorted_reports(mechanism: str, share: float) -> None:
    summary = collection(mechanism, "uniform:R/2,R").summary
    reports, values = sorted_reports(summary), decoded_cells(summary)
    removed = math.ceil(share * len(reports))
    left = {"right": reports[: len(reports) - removed], "left": reports[removed:]}
    for side, expected in left.items():
        kept = Trimming(side=side, share=share).kept_counts(summary)
        assert kept.sum() == len(expected)
        assert (kept * values).sum() == pytest.approx(expected.sum(), rel=1e-9)
        if summary.plan.group_mechanisms[0].unbiased:
            mean = Trimming(side=side, share=share).mean(summary)
            assert mean == pytest.approx(expected.mean(), rel=1e-9)


@every_mechanism
def test_ostrich_keeps_every_report(mechanism: str) -> None:
    summary = collection(mechanism).summary
    assert np.array_equal(Ostrich().kept_counts(summary), summary.counts)
    if summary.plan.group_mechanisms[0].unbiased:
        average = sorted_reports(summary).mean()
        parts = summary.plan.group_mechanisms
        widest = max(float(np.diff(part.decode(part.grid())).max()) for part in parts)
        assert abs(average - Ostrich().mean(summary)) < widest


@pytest.mark.parametrize("name", ["square-wave", "square-wave-integer"])
def test_means_of_the_square_wave_are_those_of_ems(name: str) -> None:
    values = np.random.default_rng(1).beta(2, 5, 20_000)
    alone = Plan.new(mechanism=name, epsilon=1.0, min_epsilon=1.0, low=0, high=1)
    summary = simulate(alone, values, "none", 0, np.random.default_rng(2)).summary
    for defence in (Ostrich(), Trimming()):
        counts = defence.kept_counts(summary)[0]
        buckets = Buckets.for_reports(alone.group_mechanisms[0], int(counts.sum()))
        buckets = replace(buckets, inputs=buckets.outputs)
        expected = plain_em.smoothed_mean(buckets, plain_em.bucket_counts(buckets, counts))
        assert defence.mean(summary) == pytest.approx(expected, abs=1e-9)


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
