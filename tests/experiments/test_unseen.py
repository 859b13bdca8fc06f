"""Collections drawn at random: within their ranges, of every kind, and what is measured of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from unpoison import Plan, estimate, simulate
from unpoison.attacks import attacks, parse_attack
from unpoison.datasets import datasets
from unpoison.estimate.estimate import WorstCase
from unpoison.experiments import unseen_collections
from unpoison.experiments.unseen import VISIBLE, UnseenFigure
from unpoison.experiments.unseen_collections import ATTACKS, NOBODY, UNSEEABLE, drawn_cells
from unpoison.experiments.unseen_measures import Collections
from unpoison.simulation import Population
from unpoison.simulation.trial import GROUPED, compare_with_truth

POISONED = drawn_cells(3 * len(ATTACKS), poisoned=True, quick=False)
QUIET = drawn_cells(10, poisoned=False, quick=False)


def plan_of(cell: unseen_collections.UnseenCell) -> Plan:
    return Plan.new(cell.mechanism, cell.epsilon, cell.min_epsilon, low=0, high=1)


@pytest.mark.parametrize("cell", [*POISONED, *QUIET], ids=lambda cell: cell.key)
def test_a_collection_is_one_that_can_be(cell: unseen_collections.UnseenCell) -> None:
    plan, attack = plan_of(cell), parse_attack(cell.attack)
    assert 2 <= len(plan.groups) <= 6
    assert 5_000 <= cell.users <= 1_000_000
    assert 0.25 <= cell.epsilon <= 8
    assert cell.dataset in datasets
    attack.check_plan(plan)
    placement = attack.placement(plan)
    if placement is not None:
        honest, attackers = placement.divide(plan, cell.users, round(cell.gamma * cell.users))
        assert honest.min() > 0 < attackers.max()


def test_there_are_as_many_attackers_as_the_ranges_say() -> None:
    assert all(0.005 <= cell.gamma <= 0.45 for cell in POISONED)
    assert {(cell.attack, cell.gamma, cell.kind) for cell in QUIET} == {("none", 0.0, NOBODY)}


def test_every_attack_on_numbers_takes_its_turn() -> None:
    sent = {cell.attack.partition(":")[0] for cell in POISONED}
    on_numbers = {name for name in attacks if attacks[name].categorical is not True}
    assert sent == on_numbers - {"none"}
    assert [cell.kind for cell in POISONED[: len(ATTACKS)]] == list(ATTACKS)
    assert {*VISIBLE, *UNSEEABLE} == {*ATTACKS}


def test_as_many_attackers_are_assumed_as_there_are_where_nobody_can_see_them() -> None:
    for cell in POISONED:
        assumed = cell.options.attackers_at_most
        if cell.kind in UNSEEABLE:
            assert assumed is not None
            assert cell.gamma < assumed <= min(cell.gamma + 0.06, 0.5)
        else:
            assert assumed is None


def test_quick_collections_are_others() -> None:
    quick = drawn_cells(len(ATTACKS), poisoned=True, quick=True)
    assert not {cell.gamma for cell in quick} & {cell.gamma for cell in POISONED[: len(ATTACKS)]}


def test_a_slice_ends_where_the_next_begins() -> None:
    names = [
        unseen_collections.slice_of(users, unseen_collections.USER_SLICES)
        for users in (5_000, 20_000, 20_001, 1_000_000)
    ]
    assert names == ["5,000 to 20,000", "5,000 to 20,000", "to 100,000", "to 10^6"]


@pytest.mark.slow
def test_a_collection_is_estimated_and_timed() -> None:
    cell = replace(POISONED[0], users=5_000, mechanism="piecewise", epsilon=1.0, min_epsilon=0.5)
    (row,) = cell.run()
    assert (row["kind"], row["epsilon_slice"], row["users_slice"]) == (
        "uniform",
        "1/2 to 1",
        "5,000 to 20,000",
    )
    assert 0 < row["seconds"] < 60
    assert 0 < row["informed_over_floor"] < 20
    assert cell.run()[0]["mean"] == row["mean"]


# What is measured


def table(**changed: list[object]) -> pa.Table:
    """Four collections: right, outside with doubt, outside by little, outside by much."""
    columns: dict[str, list[object]] = {
        "covered": [1.0, 0.0, 0.0, 0.0],
        "outside": [0.0, 9.0, 0.5, 2.0],
        "doubt": [0.0, 1.0, 0.0, 0.0],
        "p_value": [0.5, 0.01, 0.2, 0.9],
        "byzantine_fraction": [0.0, 0.1, 0.1, 0.2],
        "gamma": [0.0, 0.1, 0.1, 0.1],
        "side": ["none", "left", "left", "left"],
        "method": ["joint"] * 4,
        "squared_error": [1.0, 2.0, 3.0, 9.0],
        "floor": [1.0, 1.0, 1.0, 1.0],
        "informed_over_floor": [1.0, 2.0, 3.0, None],
        "worst_case_holds": [None] * 4,
        "seconds": [1.0, 2.0, 3.0, 2.0],
        "kind": ["point", "point", "uniform", "noise"],
        "dataset": ["lattice"] * 4,
        "mechanism": ["piecewise"] * 4,
        "epsilon_slice": ["1 to 2"] * 4,
        "users_slice": ["to 10^6"] * 4,
    }
    return pa.table({**columns, **changed})


def test_a_floor_of_nothing_does_not_hide_other_errors() -> None:
    of_one_value = table(floor=[0.0, 1.0, 1.0, 1.0], collection=["grouped"] * 4)
    assert Collections(of_one_value).over_floor(0.5) == 9
    assert Collections(of_one_value).over_floor(0.95) == np.inf
    figure = UnseenFigure().draw(of_one_value, quick=True)
    assert len(figure.axes) == 6


def test_slices_are_drawn_in_their_order() -> None:
    users: list[object] = ["to 10^6", "to 100,000", "5,000 to 20,000", "to 10^6"]
    panel = UnseenFigure().panels(quick=True)[2]
    lines = panel.lines(table(users_slice=users, collection=["grouped"] * 4))
    assert list(lines["joint"]) == ["5,000 to 20,000", "to 100,000", "to 10^6"]


def test_wrong_answers_are_silent_only_without_doubt() -> None:
    collections = Collections(table())
    assert (collections.covered, collections.doubted) == (0.25, 0.25)
    assert (collections.silently_wrong, collections.far_off) == (0.5, 0.25)
    assert (collections.suspicious, collections.named) == (0.25, 2)
    assert collections.over_floor(0.5) == 3
    assert collections.informed_over_floor(0.5) == 2
    assert np.isnan(collections.where("kind", "noise").informed_over_floor(0.5))
    assert np.isnan(collections.worst_case_holds)
    none = collections.where("kind", "imitator")
    assert np.isnan([none.worst_case_holds, none.suspicious]).all()


def test_tables_have_a_row_for_every_slice_and_keep_apart_what_cannot_be_seen() -> None:
    quiet = table(kind=[NOBODY] * 4)
    tables = UnseenFigure().tables(
        pa.concat_tables([table(), quiet], promote_options="permissive"), quick=True
    )
    by_attack = tables["Poisoned, by attack"]
    labels = [row[0] for row in by_attack]
    assert labels == ["attack", "uniform", "point", "noise", "all but noise, input, imitator"]
    assert [row[1] for row in by_attack[1:]] == ["1", "2", "1", "3"]
    assert [row[:2] for row in tables["Quiet, by ε"]] == [
        ["ε", "collections"],
        ["1 to 2", "4"],
        ["all", "4"],
    ]
    assert all(len(row) == len(rows[0]) for rows in tables.values() for row in rows)


def test_aims_are_reached_by_a_perfect_estimator_and_missed_by_another() -> None:
    good: dict[str, list[object]] = {
        "covered": [1.0] * 4,
        "outside": [0.0] * 4,
        "squared_error": [0.5] * 4,
        "byzantine_fraction": [0.0] * 4,
        "worst_case_holds": [1.0] * 4,
    }
    poisoned, quiet = table(**good), table(**good, kind=[NOBODY] * 4)
    tables = [poisoned] + [quiet] * 5
    claims = UnseenFigure().claims(pa.concat_tables(tables), quick=True)
    missed = [claim.text for claim in claims if not claim.confirmed]
    assert missed == ["p < 0.05 in 3 to 7 per cent of quiet collections"]
    bad = UnseenFigure().claims(pa.concat_tables([table(), table(kind=[NOBODY] * 4)]), quick=True)
    confirmed = [claim.text for claim in bad if claim.confirmed]
    assert confirmed == [
        "mse/floor is at most 5 in 90% of poisoned collections",
        "mse/floor is at most 20 in 95% of poisoned collections",
        "an estimate takes at most 2 s of the processor on average, and 5 s at most",
    ]


# The worst case of an estimate


@pytest.mark.parametrize(
    ("low", "high", "held"), [(0.0, 1.0, 1.0), (0.3, 1.0, 0.0), (None, None, 0.0)]
)
def test_a_worst_case_is_compared_with_the_truth(
    low: float | None, high: float | None, held: float
) -> None:
    plan = Plan.new(epsilon=1.0, min_epsilon=0.5, low=0, high=1)
    population = Population(np.array([0.25]), np.array([2000]))
    run = simulate(plan, population, "none", 0.0, np.random.default_rng(1))
    worst_case = WorstCase(0.1, low, high, 0.0)
    answer = replace(estimate(run.summary, method="ostrich"), worst_case=worst_case)
    assert compare_with_truth(0, GROUPED, run, run, answer, 0.1).worst_case_holds == held
