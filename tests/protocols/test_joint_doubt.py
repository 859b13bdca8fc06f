"""Doubts of the joint method: who reports, averages that disagree, fits that do not converge."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from unpoison import Plan, Simulation, Summary, estimate, simulate
from unpoison.errors import InvalidParameter
from unpoison.estimate.statistic import Statistic
from unpoison.filters.joint import nobody_p_value
from unpoison.protocols.joint import estimate_of_analyses
from unpoison.protocols.joint_analysis import JointAnalysis
from unpoison.protocols.unfiltered import unfiltered_answer
from unpoison.simulation.population import Population

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_cramer_rao")]

PLAN = Plan.new(epsilon=1.0, min_epsilon=0.25, low=0, high=100)
GROUPS = list(range(len(PLAN.groups)))
POPULATION = Population.of(100 * np.random.default_rng(1).beta(2, 5, 20_000))


@cache
def run_of(attack: str, share: float = 0.25) -> Simulation:
    return simulate(PLAN, POPULATION, attack, share, np.random.default_rng(2))


def fishing() -> Summary:
    """Attackers report in the first group alone."""
    run = run_of("uniform:3C/4,C")
    assert run.honest_summary is not None
    first = np.array(GROUPS)[:, None] == 0
    counts = np.where(first, run.summary.counts, run.honest_summary.counts)
    return Summary(PLAN, counts, (run.summary.sums[0], *run.honest_summary.sums[1:]))


def test_groups_that_report_more_than_their_share_raise_a_doubt() -> None:
    answer = estimate(fishing(), method="joint")
    assert answer.fit["attacked_groups"] == [0]
    assert answer.fit["group_sizes_p_value"] < 1e-6
    assert answer.fit["doubt"]
    assert "Some groups have more users than their share" in answer.verdict
    everywhere = estimate(run_of("uniform:3C/4,C").summary, method="joint")
    assert everywhere.fit["group_sizes_p_value"] > 0.99
    assert "more users than their share" not in everywhere.verdict


@pytest.mark.parametrize(("p_value", "doubtful"), [(0.3, True), (0.0011, True), (0.0009, False)])
def test_attackers_who_may_be_chance_raise_a_doubt(p_value: float, doubtful: bool) -> None:
    analysis = JointAnalysis(run_of("uniform:3C/4,C").summary, GROUPS)
    assert analysis.p_value < 1e-6
    analysis.__dict__["p_value"] = p_value
    answer = estimate_of_analyses([analysis], Statistic())
    assert answer.verdict.startswith("About 24.9 %")
    assert answer.fit["doubt"] is doubtful
    sentence = f"That may be chance: honest users alone explain it too (p = {p_value})."
    assert (sentence in answer.verdict) is doubtful


def test_nobody_found_is_not_called_chance() -> None:
    analysis = JointAnalysis(run_of("none", 0.0).summary, GROUPS)
    assert not analysis.may_be_chance


def test_the_users_who_enrolled_are_what_groups_are_compared_with() -> None:
    summary = fishing()
    answer = estimate(summary, method="joint", enrolled=tuple(summary.users.tolist()))
    assert answer.fit["group_sizes_p_value"] == pytest.approx(1)
    assert "more users than their share" not in answer.verdict
    for wrong in ((1.0,), (0.0, 1.0, 1.0)):
        with pytest.raises(InvalidParameter, match="enrolled"):
            estimate(summary, method="joint", enrolled=wrong)


def test_averages_that_disagree_have_a_tenth_of_the_level() -> None:
    analysis = JointAnalysis(run_of("none", 0.0).summary, GROUPS)
    fitting = nobody_p_value(analysis.counts, analysis.choice.nobody)
    agreement = unfiltered_answer(analysis.summary, [GROUPS]).p_value
    assert analysis.p_value == pytest.approx(min(1, fitting / 0.9, agreement / 0.1))
    assert not analysis.doubtful
    analysis.__dict__["p_value"] = 1e-3
    assert analysis.suspicious
    assert analysis.doubtful


def test_a_fit_that_did_not_converge_is_told() -> None:
    analysis = JointAnalysis(run_of("none", 0.0).summary, GROUPS)
    unfinished = replace(analysis.choice.best, converged=False)
    analysis.__dict__["choice"] = replace(analysis.choice, best=unfinished)
    answer = estimate_of_analyses([analysis], Statistic())
    assert answer.fit["doubt"]
    assert not answer.converged
    assert "did not converge" in answer.verdict
