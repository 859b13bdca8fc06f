"""Simulated collections: users, attackers, ground truth and chunks."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unpoison import Plan, Simulation, perturb, simulate
from unpoison.attacks import Point
from unpoison.errors import InvalidParameter, UnpoisonError
from unpoison.filters.buckets import Buckets
from unpoison.mechanisms.exact import exact
from unpoison.simulation.users import SimulatedUsers
from unpoison.types import FloatArray

NUMERICAL = ("piecewise", "piecewise-integer", "square-wave", "square-wave-integer")


def plan(
    epsilon: float = 1.0,
    min_epsilon: float = 0.25,
    mechanism: str = "piecewise",
    protocol: str = "dap",
) -> Plan:
    return Plan.new(mechanism, epsilon, min_epsilon, low=0, high=1, protocol=protocol)


def values(users: int = 9_000) -> FloatArray:
    return np.random.default_rng(1).beta(2, 5, users)


def run(seed: int = 2, attack: str = "uniform:3C/4,C", fraction: float = 0.25) -> Simulation:
    return simulate(plan(), values(), attack, fraction, np.random.default_rng(seed))


def make_users(seed: int = 2, fraction: float = 0.25, *, of: Plan | None = None) -> SimulatedUsers:
    rng = np.random.default_rng(seed)
    return SimulatedUsers.draw(of or plan(), values(), "uniform:3C/4,C", fraction, rng)


def poison_of(users: SimulatedUsers) -> dict[int, FloatArray]:
    """The last chunk of each group is what the attackers send."""
    return {group: reports for group, reports, _ in users.reports()}


# Who is who


@settings(deadline=None)
@given(st.integers(3, 5000), st.floats(0, 0.499))
def test_as_many_users_attack_as_requested(number: int, fraction: float) -> None:
    values, rng = np.zeros(number), np.random.default_rng(1)
    users = SimulatedUsers.draw(plan(), values, "point:C", fraction, rng)
    assert users.attackers.sum() == round(fraction * number)


def test_the_reports_of_the_attackers_are_in_the_summary() -> None:
    """At ε = 16 honest reports of 0 stay at the lower end, so the upper half is all poison."""
    quiet = plan(16.0, 16.0)
    done = simulate(quiet, np.zeros(3000), Point("C"), 0.2, np.random.default_rng(1))
    assert done.byzantine_fraction == pytest.approx(0.2)
    assert done.summary.counts[0, quiet.cells // 2 :].sum() == 600
    assert done.summary.counts[0, -1] == 600


def test_every_attacker_sends_as_many_reports_as_an_honest_user() -> None:
    users = make_users()
    poison = poison_of(users)
    for group, members in enumerate(users.members):
        attackers = users.attackers[members].sum()
        assert len(poison[group]) == attackers * users.plan.groups[group].reports


def test_who_attacks_is_independent_of_the_group() -> None:
    users = make_users()
    shares = [users.attackers[members].mean() for members in users.members]
    deviation = math.sqrt(0.25 * 0.75 / 3000)
    assert all(abs(share - 0.25) < 5 * deviation for share in shares)


def test_who_attacks_is_independent_of_the_value() -> None:
    users = make_users()
    difference = users.inputs[users.attackers].mean() - users.inputs[~users.attackers].mean()
    deviation = users.inputs.std() * math.sqrt(1 / 2250 + 1 / 6750)
    assert abs(difference) < 5 * deviation


@settings(deadline=None)
@given(st.integers(5, 3000), st.sampled_from([(1.0, 0.25), (1.0, 0.0625), (1.5, 0.2)]))
def test_groups_are_of_equal_size_and_hold_every_user_once(
    number: int, budgets: tuple[float, float]
) -> None:
    rng = np.random.default_rng(number)
    users = SimulatedUsers.draw(plan(*budgets), np.zeros(number), "none", 0.0, rng)
    sizes = [len(members) for members in users.members]
    assert max(sizes) - min(sizes) <= 1
    assert sorted(np.concatenate(users.members).tolist()) == list(range(number))


def test_groups_are_not_in_the_order_of_the_users() -> None:
    users = SimulatedUsers.draw(plan(), np.zeros(9000), "none", 0.0, np.random.default_rng(1))
    deviation = 9000 / math.sqrt(12 * 3000)
    for members in users.members:
        assert abs(members.mean() - 4499.5) < 5 * deviation


# What comes out


def test_the_truth_is_the_mean_of_the_honest_users() -> None:
    users = make_users()
    assert run().truth == pytest.approx(values()[~users.attackers].mean(), abs=1e-12)
    assert run().truth != pytest.approx(values().mean(), abs=1e-6)


def test_the_truth_is_in_natural_units() -> None:
    wide = Plan.new(epsilon=1.0, min_epsilon=0.25, low=-100, high=300)
    scaled = simulate(wide, -100 + 400 * values(), "none", 0, np.random.default_rng(2))
    assert scaled.truth == pytest.approx(-100 + 400 * values().mean())
    assert scaled.floor == pytest.approx(400**2 * run(attack="none").floor)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_collection() -> None:
    assert run(seed=5).summary == run(seed=5).summary
    assert run(seed=5).truth == run(seed=5).truth
    assert run(seed=5).summary != run(seed=6).summary


@pytest.mark.parametrize("mechanism", NUMERICAL)
def test_chunks_do_not_change_the_collection(
    mechanism: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def collected() -> Simulation:
        attack = "uniform:R/2,R"
        rng = np.random.default_rng(2)
        return simulate(plan(mechanism=mechanism), values(2000), attack, 0.25, rng)

    in_one_chunk = collected()
    monkeypatch.setattr("unpoison.simulation.users.USERS_AT_ONCE", 37)
    assert collected().summary == in_one_chunk.summary


def test_values_are_left_as_they_were() -> None:
    given_values = values()
    before = given_values.copy()
    simulate(plan(), given_values, "point:C", 0.25, np.random.default_rng(1))
    np.testing.assert_array_equal(given_values, before)


def test_progress_adds_up_to_all_users() -> None:
    seen: list[int] = []
    simulate(plan(), values(), "point:C", 0.25, np.random.default_rng(1), advance=seen.append)
    assert sum(seen) == 9000


@pytest.mark.parametrize("mechanism", NUMERICAL)
def test_every_user_reports_as_often_as_the_group_says(mechanism: str) -> None:
    done = simulate(
        plan(mechanism=mechanism), values(), "uniform:R/2,R", 0.25, np.random.default_rng(1)
    )
    assert done.summary.reports.tolist() == [3000, 6000, 12_000]
    assert done.summary.users.tolist() == [3000, 3000, 3000]


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 80), st.integers(1, 80), st.sampled_from(["dap", "baseline"]))
def test_nobody_spends_more_than_the_budget(first: int, second: int, protocol: str) -> None:
    epsilon, min_epsilon = max(first, second) / 20, min(first, second) / 20
    if protocol == "baseline" and 2 * min_epsilon > epsilon:
        min_epsilon = epsilon / 4
    chosen = plan(epsilon, min_epsilon, protocol=protocol)
    users = 2 * len(chosen.groups)
    reports = perturb(np.full(users, 0.5), chosen, np.random.default_rng(1))
    spent = [Fraction(0)] * users
    for user, group in zip(reports.user.tolist(), reports.group.tolist(), strict=True):
        spent[user] += exact(chosen.groups[group].epsilon)
    assert max(spent) <= exact(epsilon)
    assert min(spent) > exact(epsilon) / 2


# The baseline


@pytest.mark.parametrize("mechanism", NUMERICAL)
def test_attackers_of_the_baseline_send_the_same_poison_twice(mechanism: str) -> None:
    both = plan(2.0, 0.25, mechanism, "baseline")
    users = SimulatedUsers.draw(both, values(), "uniform:R/2,R", 0.2, np.random.default_rng(1))
    poison = poison_of(users)
    assert len(poison[0]) == 1800
    first, second = (
        part.position(poison[group] + 0.5 * part.discrete)
        for group, part in enumerate(both.group_mechanisms)
    )
    width = np.ptp(both.group_mechanisms[1].position(np.array([0.0, 1.0])))
    np.testing.assert_allclose(first, second, atol=width if "integer" in mechanism else 0.0)
    assert poison[0].max() <= both.group_mechanisms[0].output_high


def test_poison_of_the_baseline_scales_with_each_domain_when_it_is_not_shared() -> None:
    both = plan(2.0, 0.25, protocol="baseline")
    rng = np.random.default_rng(1)
    users = SimulatedUsers.draw(both, values(), "uniform:3C/4,C", 0.2, rng, shared_poison=False)
    poison = poison_of(users)
    for group, part in enumerate(both.group_mechanisms):
        assert poison[group].min() >= 0.75 * part.output_high
        assert poison[group].max() > 0.99 * part.output_high


def test_every_user_of_the_baseline_reports_in_both_groups() -> None:
    both = plan(2.0, 0.25, protocol="baseline")
    done = simulate(both, values(), "point:C", 0.2, np.random.default_rng(1))
    assert done.summary.reports.tolist() == [9000, 9000]
    assert done.summary.total_users == 9000


# Distribution


@pytest.mark.parametrize("mechanism", NUMERICAL)
def test_honest_counts_follow_the_transition(mechanism: str) -> None:
    chosen = plan(2.0, 0.5, mechanism)
    inputs = np.random.default_rng(3).random(60_000)
    done = simulate(chosen, inputs, "none", 0, np.random.default_rng(4))
    for group, part in enumerate(chosen.group_mechanisms):
        buckets = Buckets(part, 50, 10)
        shares = buckets.transition.forward(np.full(10, 0.1))
        expected = shares * done.summary.reports[group]
        observed = buckets.count(done.summary.counts[group])
        statistic = float(((observed - expected) ** 2 / expected).sum())
        freedom = buckets.outputs - 1
        assert expected.min() > 50
        assert abs(statistic - freedom) < 5 * math.sqrt(2 * freedom)


@pytest.mark.parametrize("mechanism", NUMERICAL)
def test_counts_of_one_value_follow_its_own_distribution(mechanism: str) -> None:
    chosen = plan(1.0, 1.0, mechanism)
    done = simulate(chosen, np.full(60_000, 0.3), "none", 0, np.random.default_rng(4))
    part = chosen.group_mechanisms[0]
    buckets = Buckets(part, 40, 8)
    at = part.input_low + 0.3 * (part.input_high - part.input_low)
    shares = part.cell_probabilities(np.array([at]), buckets.output_edges)[0]
    expected = shares * 60_000
    observed = buckets.count(done.summary.counts[0])
    statistic = float(((observed - expected) ** 2 / expected).sum())
    assert abs(statistic - 39) < 5 * math.sqrt(2 * 39)


# What is refused and what is ignored


@pytest.mark.parametrize("fraction", [-0.01, 0.5, 0.9, 1.0, math.nan, math.inf])
def test_a_share_of_attackers_outside_its_range_is_refused(fraction: float) -> None:
    with pytest.raises(InvalidParameter, match=r"byzantine_fraction must be in \[0, 1/2\)"):
        run(fraction=fraction)


def test_no_attack_ignores_the_share_of_attackers() -> None:
    peaceful, other = run(attack="none", fraction=0.4), run(attack="none", fraction=0.0)
    assert peaceful.byzantine_fraction == 0
    assert peaceful.summary == other.summary
    assert peaceful.truth == pytest.approx(values().mean())


def test_a_share_of_zero_is_no_attack() -> None:
    assert run(fraction=0.0).byzantine_fraction == 0
    assert run(fraction=0.0).truth == pytest.approx(values().mean())


@pytest.mark.parametrize("bad", [math.nan, math.inf, -0.1, 1.1])
def test_values_outside_the_range_are_refused_by_row(bad: float) -> None:
    with pytest.raises(UnpoisonError, match=r"row 3.*received") as refusal:
        simulate(plan(), [0.5, 0.5, bad, 0.5], "none", 0, np.random.default_rng(1))
    assert "values must be numbers in [0, 1]" in str(refusal.value)


def test_a_refused_value_is_not_repeated() -> None:
    with pytest.raises(UnpoisonError) as refusal:
        simulate(plan(), [0.5, 0.5, 1.73625, 0.5], "none", 0, np.random.default_rng(1))
    assert "1.73" not in str(refusal.value)


def test_fewer_users_than_groups_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="at least one a group; received 2"):
        simulate(plan(), [0.1, 0.2], "none", 0, np.random.default_rng(1))


def test_an_unknown_attack_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="did you mean 'uniform'"):
        run(attack="unifrm")


# Tiers


def test_users_with_smaller_budgets_go_into_their_tier() -> None:
    tier = {"epsilon": 0.5, "min_epsilon": 0.25}
    chosen = Plan.new(epsilon=1.0, min_epsilon=0.25, low=0, high=1, tiers=[tier])
    budgets = np.where(np.arange(9000) < 3000, 0.7, 1.0)
    done = simulate(chosen, values(), "none", 0, np.random.default_rng(1), budgets=budgets)
    first, second = (done.summary.users[list(chosen.tier_groups(t))] for t in (0, 1))
    assert first.tolist() == [2000, 2000, 2000]
    assert second.tolist() == [1500, 1500]


@pytest.mark.parametrize(
    ("budgets", "message"),
    [
        ([0.4, 1.0, 1.0, 1.0, 1.0], "row 1: budgets must be at least"),
        ([1.0, 1.0], "budgets must be one a user, 5"),
    ],
)
def test_budgets_that_no_tier_serves_are_refused(budgets: list[float], message: str) -> None:
    tier = {"epsilon": 0.5, "min_epsilon": 0.25}
    chosen = Plan.new(epsilon=1.0, min_epsilon=0.25, low=0, high=1, tiers=[tier])
    with pytest.raises(UnpoisonError, match=message):
        simulate(chosen, np.zeros(5), "none", 0, np.random.default_rng(1), budgets=budgets)
