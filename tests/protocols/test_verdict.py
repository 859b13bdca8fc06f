"""The verdict: the sentence of an estimate that a person acts on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import unpoison
from unpoison import Estimate, Plan, Summary, simulate
from unpoison.protocols.scheme_verdict import false_alarm


def estimate(summary: Any, **options: Any) -> Estimate:
    """By the paper's baseline or EMF*, unless another method is asked for."""
    method = "baseline" if summary.plan.protocol == "baseline" else "emf-star"
    return unpoison.estimate(summary, **{"method": method, **options})


PLAN = Plan.new(epsilon=0.5, min_epsilon=0.125, low=0, high=100)
VALUES = 100 * np.random.default_rng(1).beta(2, 5, 40_000)


def collected(attack: str, fraction: float, users: int = len(VALUES)) -> Summary:
    return simulate(PLAN, VALUES[:users], attack, fraction, np.random.default_rng(2)).summary


@pytest.mark.slow
@pytest.mark.parametrize("users", [3_000, 12_000, 40_000])
@pytest.mark.parametrize("method", ["emf", "emf-star", "cemf-star"])
def test_nobody_is_accused_when_nobody_attacks(users: int, method: str) -> None:
    answer = estimate(collected("none", 0.0, users), method=method)
    assert 0 < answer.byzantine.fraction < false_alarm(collected("none", 0.0, users), 2)
    assert answer.verdict.startswith("No clear attack")
    assert f"{answer.fit['unfiltered_mean']:.2f}" in answer.verdict


@pytest.mark.parametrize(
    ("attack", "end"), [("uniform:3C/4,C", "upper end"), ("uniform:-C,-3C/4", "lower end")]
)
def test_an_attack_is_named_with_its_end_and_its_effect(attack: str, end: str) -> None:
    answer = estimate(collected(attack, 0.25))
    assert end in answer.verdict
    assert f"{100 * answer.byzantine.fraction:.1f} %" in answer.verdict
    assert f"{answer.mean:.2f}" in answer.verdict
    assert f"{answer.fit['unfiltered_mean']:.2f}" in answer.verdict


def test_a_majority_of_attackers_is_said_to_break_every_method() -> None:
    counts = np.zeros((3, PLAN.cells), dtype=np.int64)
    counts[:, -1] = 1_000
    top = [1_000 * round(part.output_high * 2**32) for part in PLAN.group_mechanisms]
    answer = estimate(Summary(PLAN, counts, tuple(top)), method="emf")
    assert answer.byzantine.fraction > 0.5
    assert "do not use" in answer.verdict


def test_the_unfiltered_mean_is_right_when_everybody_is_honest() -> None:
    run = simulate(PLAN, VALUES, "none", 0.0, np.random.default_rng(3))
    unfiltered = estimate(run.summary).fit["unfiltered_mean"]
    assert abs(unfiltered - run.truth) < 6 * np.sqrt(run.floor)


def test_the_false_alarm_shrinks_as_reports_grow() -> None:
    small, large = collected("none", 0.0, 4_000), collected("none", 0.0, 40_000)
    assert false_alarm(large, 2) < false_alarm(small, 2)


def test_an_attack_that_a_rule_for_the_side_misses_is_still_noticed() -> None:
    """All poison at C fools the rule of the variance: it finds nobody."""
    plan = Plan.new(epsilon=0.5, low=0, high=1)
    values = np.random.default_rng(1).beta(2, 5, 60_000)
    summary = simulate(plan, values, "point:C", 0.25, np.random.default_rng(2)).summary
    answer = estimate(summary, side_rule="variance")
    assert answer.byzantine.side == "left"
    assert answer.verdict.startswith("Somebody attacks")
    assert "Poison on the right would explain the reports better" in answer.verdict
    assert "explain the reports better" not in estimate(summary, side_rule="likelihood").verdict


def test_attackers_who_behave_in_the_probing_group_are_noticed() -> None:
    honest = simulate(PLAN, VALUES, "none", 0.0, np.random.default_rng(3)).summary
    poisoned = simulate(PLAN, VALUES, "uniform:3C/4,C", 0.25, np.random.default_rng(3)).summary
    counts = np.vstack([poisoned.counts[:2], honest.counts[2:]])
    mixed = Summary(PLAN, counts, poisoned.sums[:2] + honest.sums[2:])
    answer = estimate(mixed)
    assert answer.verdict.startswith("Somebody attacks")
    assert answer.fit["agreement_p_value"] < 1e-6


@pytest.mark.slow
def test_honest_groups_agree() -> None:
    p_values = [
        estimate(
            simulate(PLAN, VALUES[:3_000], "none", 0.0, np.random.default_rng(seed)).summary
        ).fit["agreement_p_value"]
        for seed in range(40)
    ]
    assert min(p_values) > 1e-4


def test_the_unit_of_the_plan_follows_every_mean() -> None:
    plan = Plan.new(epsilon=1.0, min_epsilon=0.5, low=0, high=86_400, unit="s")
    values = 86_400 * np.random.default_rng(1).beta(2, 5, 4000)
    summary = simulate(plan, values, "point:C", 0.2, np.random.default_rng(2)).summary
    joint, scheme = estimate(summary, method="joint"), estimate(summary)
    assert (joint.unit, Estimate.from_json(joint.to_json()).unit) == ("s", "s")
    assert joint.interval is not None
    low, high = (f"{end:,.0f}" for end in joint.interval)
    assert f"The mean without them is {joint.mean:,.0f} s (95 %: {low} to {high} s)" in (
        joint.verdict
    )
    assert f"the mean {scheme.mean:,.0f} s." in scheme.verdict
