"""The imitator: reports of all groups are those of other honest users, and of a decoy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy
from scipy.optimize import linprog, nnls

from unpoison import Plan, simulate
from unpoison.attacks import (
    Collection,
    Imitator,
    Point,
    Target,
    Targets,
    Uniform,
    imitation,
)
from unpoison.errors import InvalidParameter
from unpoison.mechanisms import make
from unpoison.simulation import Population
from unpoison.simulation.ground_truth import GroundTruth
from unpoison.simulation.honest_inputs import HonestInputs
from unpoison.types import FloatArray

SHARE = 0.2
SHAPES = {
    "smooth": np.random.default_rng(1).beta(2, 5, 1000).round(2),
    "lattice": np.repeat(np.arange(5) / 4, [1, 2, 3, 4, 5]),
    "one end": np.zeros(10),
}
every_shape = pytest.mark.parametrize("shape", list(SHAPES))
every_mechanism = pytest.mark.parametrize(
    "mechanism", ["piecewise", "square-wave", "piecewise-integer", "square-wave-integer"]
)


def truth_of(mechanism: str, shape: str) -> GroundTruth:
    plan = Plan.new(mechanism, 2.0, 0.5, low=0, high=1, cells=256)
    return GroundTruth(plan, HonestInputs(plan.normalise(SHAPES[shape])), SHARE)


def drinks() -> GroundTruth:
    plan = Plan.new("k-rr", 1.0, 0.25, categories=["tea", "milk", "juice"])
    return GroundTruth(plan, HonestInputs(np.arange(3.0), np.array([5, 4, 1])), SHARE)


def reports_of(truth: GroundTruth, attack: Imitator) -> list[FloatArray]:
    """How likely a report of anybody is in each cell, for every group."""
    inputs, reports = truth.inputs, []
    for group, part in enumerate(truth.plan.group_mechanisms):
        single = part.cell_probabilities(inputs.values, part.grid())
        honest = np.average(single, axis=0, weights=inputs.numbers)
        reports.append((1 - SHARE) * honest + SHARE * attack.chances(truth.target(group)))
    return reports


def imitated_mean(truth: GroundTruth, reports: list[FloatArray], tolerance: float = 1e-5) -> float:
    """The mean of the honest users who send just these reports, up to a factor."""
    low, high = truth.plan.group_mechanisms[0].input_low, truth.plan.group_mechanisms[0].input_high
    edges = np.linspace(low, high, imitation.INPUT_BUCKETS + 1)
    held = np.unique(truth.inputs.values)
    columns = [
        np.hstack(
            [
                part.transition(edges, part.grid()).dense(),
                part.cell_probabilities(held, part.grid()).T,
            ]
        )
        for part in truth.plan.group_mechanisms
    ]
    histogram, distance = nnls(np.vstack(columns), np.concatenate(reports), maxiter=10_000)
    assert distance < tolerance
    assert histogram.sum() == pytest.approx(reports[0].sum(), abs=tolerance)
    values = np.concatenate([(edges[1:] + edges[:-1]) / 2, held])
    return float(histogram @ values / histogram.sum())


@every_shape
@every_mechanism
@pytest.mark.parametrize("towards", ["up", "down"])
def test_reports_are_those_of_other_honest_users(mechanism: str, shape: str, towards: str) -> None:
    truth = truth_of(mechanism, shape)
    mean = imitated_mean(truth, reports_of(truth, Imitator(towards)))
    part = truth.plan.group_mechanisms[0]
    end, sign = (part.input_high, 1) if towards == "up" else (part.input_low, -1)
    # Attackers who claim to hold the value at the end imitate too, though not as far.
    claimed = (1 - SHARE) * truth.mean + SHARE * end
    half_a_bucket = (part.input_high - part.input_low) / imitation.INPUT_BUCKETS / 2
    assert sign * mean >= sign * claimed - SHARE * half_a_bucket - 1e-6


@every_shape
@pytest.mark.parametrize("share", [0.5, 1.0])
def test_reports_without_the_decoy_are_those_of_other_honest_users(
    shape: str, share: float
) -> None:
    truth, decoy = truth_of("piecewise", shape), Uniform("3C/4", "C")
    reports = reports_of(truth, Imitator("up", share, decoy))
    visible = np.zeros(256)
    # An eighth of the report domain [-C, C].
    visible[-32:] = share * SHARE / 32
    # The distribution of a decoy is drawn, though many times.
    mean = imitated_mean(truth, [report - visible for report in reports], tolerance=5e-4)
    assert mean > truth.mean - 1e-4


@every_mechanism
def test_a_decoy_of_the_attackers_own_choice_moves_the_mean_farthest(mechanism: str) -> None:
    target = truth_of(mechanism, "smooth").target(0)
    hidden = Imitator("up").agreed(target).gain
    given = [Imitator("up", 1.0, Point(place)).agreed(target).gain for place in ("L", "R")]
    assert Imitator("up", 1.0).agreed(target).gain > max(hidden, *given)


def test_the_gain_is_that_of_the_users_who_are_imitated() -> None:
    truth = truth_of("piecewise", "smooth")
    for attack in (Imitator("up"), Imitator("down")):
        mean = imitated_mean(truth, reports_of(truth, attack))
        sign = 1 if attack.towards == "up" else -1
        assert attack.agreed(truth.target(0)).gain == pytest.approx(sign * mean, abs=1e-3)


@pytest.mark.parametrize("attack", [Imitator("juice"), Imitator("tea", 1.0, Targets(("milk",)))])
def test_categories_have_the_frequencies_of_others_in_every_group(attack: Imitator) -> None:
    truth = drinks()
    visible = np.array([0.0, attack.decoy * SHARE, 0.0])
    promoted = truth.target(0).category(attack.towards)
    for part, report in zip(truth.plan.group_mechanisms, reports_of(truth, attack), strict=True):
        frequencies = part.decode((report - visible) / (1 - visible.sum()))
        assert frequencies.min() > -1e-6
        assert frequencies[promoted] == pytest.approx(attack.agreed(truth.target(0)).gain, abs=1e-6)
    assert truth.frequencies is not None
    claimed = (1 - SHARE) * truth.frequencies[promoted] + SHARE
    assert frequencies[promoted] >= claimed - 1e-6


def test_attackers_of_all_groups_work_it_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    solved = []

    def solve(*args: Any, **options: Any) -> Any:
        solved.append(args)
        return linprog(*args, **options)

    monkeypatch.setattr(scipy.optimize, "linprog", solve)
    plan = Plan.new(epsilon=1.0, min_epsilon=0.25, low=0, high=1, cells=64)
    population = Population(np.array([0.2, 0.6]), np.array([600, 300]))
    simulate(plan, population, "imitator:up", SHARE, np.random.default_rng(1))
    assert len(solved) == 1


@pytest.mark.parametrize(
    ("attack", "message"),
    [
        ("imitator:left", "towards must be one of up, down; received 'left'"),
        ("imitator:up,4.9;point:C", "decoy must leave reports .*; received 0.98 of all reports"),
        ("imitator:up,6;point:C", "decoy must leave reports .*; received 1.2 of all reports"),
        ("imitator:up,1;targets:tea", "attack must be one on numbers"),
    ],
)
def test_what_cannot_be_imitated_is_refused(attack: str, message: str) -> None:
    plan = Plan.new(epsilon=1.0, min_epsilon=0.25, low=0, high=1, cells=64)
    with pytest.raises(InvalidParameter, match=message):
        simulate(plan, SHAPES["smooth"], attack, SHARE, np.random.default_rng(1))


def test_a_category_that_is_none_cannot_be_promoted() -> None:
    with pytest.raises(InvalidParameter, match="towards must be categories: 'tea', 'milk'"):
        Imitator("wine").check_plan(drinks().plan)


@pytest.mark.parametrize("share", [None, 0.0])
def test_attackers_must_know_the_collection_and_how_many_they_are(share: float | None) -> None:
    target = Target(make("piecewise", 1.0), 0.1)
    if share is not None:
        target = Collection((target,), np.array([0.1]), byzantine_fraction=share).target(0)
    with pytest.raises(
        InvalidParameter, match=r"needs the whole collection|must be above 0 to imitate"
    ):
        Imitator().poison(target, 3, np.random.default_rng(1))


def test_values_that_no_honest_user_has_are_left_out() -> None:
    targets = tuple(Target(make("piecewise", epsilon), 0.1) for epsilon in (1.0, 0.5))
    numbers = np.array([60, 0, 40])
    collection = Collection(targets, np.array([-0.5, 0.9, 0.5]), numbers, 0.2)
    poison = Imitator("up").poison_counts(collection.target(0), 1000, np.random.default_rng(1))
    assert poison.sum() == 1000
