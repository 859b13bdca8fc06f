"""Which groups are attacked: sets that are put aside, their price, and shares that differ."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from unpoison import Plan, Simulation, estimate, simulate
from unpoison.filters.joint import JointCounts, ModelChoice, PoisonModel, choose_model, fit
from unpoison.filters.joint.attacked_groups import PutAside, only_groups, sets_of_groups
from unpoison.filters.joint.description_length import set_price, support_price
from unpoison.filters.joint.point import Point
from unpoison.filters.joint.scoring import scatter_of_shares
from unpoison.simulation.population import Population
from unpoison.summary import Summary

pytestmark = pytest.mark.usefixtures("no_cramer_rao")

PLAN = Plan.new(epsilon=2.0, min_epsilon=0.5, low=0, high=1)
NAMES = ("tea", "coffee", "milk", "water", "juice")
CHOICES = Plan.new("k-rr", 2.0, min_epsilon=0.5, categories=NAMES)
POPULATIONS = {
    PLAN: Population.of(np.random.default_rng(7).beta(3, 4, 60_000)),
    CHOICES: Population(np.array(NAMES), np.array([24_000, 15_000, 12_000, 6_000, 3_000])),
}
ATTACKS = {PLAN: "uniform:C/2,C", CHOICES: "maximal-gain:1"}


def in_some_groups(plan: Plan, attacked: tuple[int, ...]) -> tuple[Simulation, Summary]:
    """Attackers report in some groups alone; in the others there are only honest users."""
    run = simulate(plan, POPULATIONS[plan], ATTACKS[plan], 0.2, np.random.default_rng(3))
    assert run.honest_summary is not None
    here = np.isin(np.arange(len(plan.groups)), attacked)[:, None]
    counts = np.where(here, run.summary.counts, run.honest_summary.counts)
    sums = [(run.summary if t in attacked else run.honest_summary).sums[t] for t in range(3)]
    return run, Summary(plan, counts, tuple(sums))


@cache
def chosen(plan: Plan, attacked: tuple[int, ...]) -> ModelChoice:
    return choose_model(JointCounts.of(in_some_groups(plan, attacked)[1], range(3)))


@pytest.mark.slow
@pytest.mark.parametrize("plan", [PLAN, CHOICES], ids=["numbers", "categories"])
@pytest.mark.parametrize("attacked", [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)])
def test_the_attacked_groups_are_found_and_only_they(plan: Plan, attacked: tuple[int, ...]) -> None:
    choice = chosen(plan, attacked)
    shares = choice.best.attacker_shares
    assert choice.fits
    assert tuple(np.flatnonzero(shares > 0.1)) == attacked
    assert np.allclose(shares[list(attacked)], 0.2, atol=0.03)
    assert (np.delete(shares, attacked) < 0.01).all()


@pytest.mark.slow
@pytest.mark.parametrize("attacked", [(0,), (2,), (0, 2)])
def test_the_error_is_that_of_honest_reports(attacked: tuple[int, ...]) -> None:
    run, summary = in_some_groups(PLAN, attacked)
    answer = estimate(summary, method="joint")
    assert (answer.mean - run.truth) ** 2 < 10 * run.floor
    assert answer.fit["attacked_groups"] == list(attacked)
    names = " and ".join(map(str, attacked))
    named = f"of users of group{'s' if len(attacked) > 1 else ''} {names} alone"
    assert named in answer.verdict


@pytest.mark.slow
def test_shares_that_differ_more_than_chance_allows_are_free() -> None:
    """Three times as many attackers report in the first group as in the last."""
    counts = JointCounts.of(in_some_groups(PLAN, (0, 1, 2))[1], range(3))
    honest = JointCounts.of(in_some_groups(PLAN, ())[1], range(3))
    part = np.array([[1.5], [1.0], [0.5]])
    uneven = np.maximum(honest.counts + part * (counts.counts - honest.counts), 0)
    users = uneven.sum(axis=1) / counts.reports_per_user
    counted = np.round(uneven).astype(np.float64)
    choice = choose_model(replace(counts, counts=counted, users=users))
    assert choice.best.model.free_shares
    assert choice.best.model.kind == "alike"
    assert choice.best.attacker_shares[0] > 2 * choice.best.attacker_shares[2] > 0.1


def test_all_sets_of_few_groups_are_tried_and_some_of_many() -> None:
    assert len({tuple(attacked) for attacked in sets_of_groups(4)}) == 2**4 - 2
    many = [tuple(np.flatnonzero(attacked).tolist()) for attacked in sets_of_groups(8)]
    assert len(many) == len(set(many)) == 8 + 28 + 2 * 5
    assert {(0, 1, 2, 3), (4, 5, 6, 7), (3, 6)} <= set(many)


def test_groups_that_are_left_say_what_they_say_alone() -> None:
    summary = in_some_groups(PLAN, (0,))[1]
    counts = JointCounts.of(summary, range(3))
    rest = only_groups(counts, np.array([False, True, True]))
    assert rest.groups == (1, 2)
    assert np.array_equal(rest.counts, counts.counts[1:])
    aside = PutAside.of(counts, np.array([True, False, False]))
    alone = fit(JointCounts.of(summary, [1, 2]), PoisonModel.nobody(2, rest.counts.shape[1]))
    assert aside.rest.deviance == pytest.approx(alone.deviance, abs=1e-6)
    support = aside.excess_support(counts)
    assert support[0, 50:].all()
    assert not support[1:].any()


def test_faint_poison_is_cheap_and_scattered_poison_dear() -> None:
    buckets = np.arange(64)[None]
    run, scattered = buckets < 16, buckets % 4 == 0
    faint, strong = np.full((1, 64), 1.5), np.full((1, 64), 50.0)
    assert support_price(run, faint, True) < support_price(run, strong, True)
    assert support_price(run, faint, True) < support_price(scattered, faint, True)
    assert support_price(run, faint, False) == support_price(scattered, faint, False)
    # A bucket must pay more than noise gains: the largest of 64 normal numbers, squared.
    assert support_price(buckets == 5, np.full((1, 64), 2.5), True) > 2.5**2
    # There are but two places at an end: the larger of two normal numbers, squared, is 1.3.
    assert support_price(buckets == 0, np.full((1, 64), 1.15), True) > 2 * 1.15**2
    assert set_price(np.ones(3, dtype=bool)) == set_price(np.zeros(3, dtype=bool)) == 0
    assert set_price(np.arange(3) == 1) > 0


def test_the_scatter_of_shares_has_the_slope_and_curvature_of_what_it_costs() -> None:
    counts = JointCounts.of(in_some_groups(PLAN, ())[1], range(3))
    point = Point(counts, PoisonModel.even(*counts.counts.shape))
    step, shares = 1e-6, np.array([0.9, 0.8, 0.95])
    point.honest_shares = shares
    slope, curvature = scatter_of_shares(point)
    for group in range(3):
        moved = Point(counts, point.model)
        moved.honest_shares = shares + step * (np.arange(3) == group)
        rise = (moved.share_scatter - point.share_scatter) / step
        assert rise == pytest.approx(slope[group], rel=1e-3)
        bend = (scatter_of_shares(moved)[0] - slope) / step
        assert bend == pytest.approx(curvature[group], rel=1e-3)


def test_equal_or_free_shares_cost_nothing() -> None:
    counts = JointCounts.of(in_some_groups(PLAN, ())[1], range(3))
    point = Point(counts, PoisonModel.even(*counts.counts.shape))
    assert point.share_scatter == pytest.approx(0, abs=1e-9)
    free = Point(counts, point.model.with_free_shares())
    free.honest_shares = np.array([0.9, 0.5, 0.7])
    assert free.share_scatter == 0
