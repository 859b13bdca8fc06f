"""What each attack on categories sends."""

from __future__ import annotations

import itertools
import math
import re
from typing import Any, cast

import numpy as np
import pytest

from support.attack_targets import (
    COUNT,
    DRINK_SHARES,
    DRINKS,
    every_budget,
    every_categorical_mechanism,
    make_target,
)
from unpoison.attacks import MaximalGain, RandomReports, Target, Targets
from unpoison.errors import InvalidParameter
from unpoison.mechanisms import CategoricalMechanism, make
from unpoison.types import FloatArray, IntArray


@every_categorical_mechanism
@every_budget
def test_targets_are_reported_alike_and_nothing_else_is(mechanism: str, epsilon: float) -> None:
    names = ("E=mc2", "coffee", "tea")
    rng = np.random.default_rng(1)
    reports = Targets(names).poison(make_target(mechanism, epsilon), 30_000, rng)
    counts = np.bincount(reports.astype(int), minlength=len(DRINKS))
    assert counts[[2, 3]].tolist() == [0, 0]
    deviation = math.sqrt(30_000 * (1 / 3) * (2 / 3))
    assert abs(counts[[0, 1, 4]] - 10_000).max() < 5 * deviation


@every_categorical_mechanism
def test_targets_may_be_one_or_all_categories(mechanism: str) -> None:
    target, rng = make_target(mechanism, 0.5), np.random.default_rng(1)
    assert set(Targets(("7-up",)).poison(target, COUNT, rng).tolist()) == {3}
    assert set(Targets(DRINKS).poison(target, COUNT, rng).tolist()) == {0, 1, 2, 3, 4}


def test_targets_may_be_any_sequence_of_names() -> None:
    names: Any = ["tea", "coffee"]
    assert Targets(names) == Targets(("tea", "coffee"))
    assert hash(Targets(names)) == hash(Targets(("tea", "coffee")))
    one: Any = "tea"
    with pytest.raises(InvalidParameter, match="names must be a tuple of names; received 'tea'"):
        Targets(one)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ((), "names must be one category or more; received none"),
        (("tea", "coffee", "tea"), "names must be different categories; received 'tea' twice"),
        (
            ("tea", "cofee"),
            "names must be categories: 'tea', 'coffee', 'herbal tea', '7-up', 'E=mc2';"
            " received 'cofee', did you mean 'coffee'?",
        ),
        (
            ("wine",),
            "names must be categories: 'tea', 'coffee', 'herbal tea', '7-up', 'E=mc2';"
            " received 'wine'",
        ),
    ],
)
@every_categorical_mechanism
def test_targets_that_are_no_categories_are_refused(
    names: tuple[str, ...], message: str, mechanism: str
) -> None:
    target = make_target(mechanism, 0.5)
    with pytest.raises(InvalidParameter) as refusal:
        Targets(names).check_fits(target.mechanism, target.categories)
    assert str(refusal.value) == message
    with pytest.raises(InvalidParameter, match=re.escape(message)):
        Targets(names).poison(target, 3, np.random.default_rng(1))


def test_of_many_categories_only_some_are_listed() -> None:
    names = tuple(f"number {number}\n" for number in range(100))
    with pytest.raises(InvalidParameter) as refusal:
        Targets(("number 57",)).check_fits(make("k-rr", 1.0, 100), names)
    assert "'number 7\\n', …; received 'number 57', did you mean" in str(refusal.value)
    assert str(refusal.value).isprintable()
    assert "number 8" not in str(refusal.value)


def test_targets_need_the_names_of_the_categories() -> None:
    target = Target(make("k-rr", 1.0, 3), np.nan)
    with pytest.raises(InvalidParameter, match="target must name its categories; received none"):
        Targets(("tea",)).poison(target, 3, np.random.default_rng(1))


@every_categorical_mechanism
@pytest.mark.parametrize(
    ("count", "rarest"),
    [(1, {1}), (2, {1, 3}), (3, {1, 3, 4}), (4, {1, 2, 3, 4}), (5, {*range(5)})],
)
def test_the_maximal_gain_is_on_the_rarest_categories(
    mechanism: str, count: int, rarest: set[int]
) -> None:
    target, rng = make_target(mechanism, 0.5), np.random.default_rng(1)
    reports = MaximalGain(count).poison(target, 20_000, rng)
    counts = np.bincount(reports.astype(int), minlength=len(DRINKS))
    assert set(np.flatnonzero(counts)) == rarest
    share = 1 / count
    deviation = math.sqrt(20_000 * share * (1 - share))
    assert abs(counts[list(rarest)] - 20_000 * share).max() <= 5 * deviation


@every_categorical_mechanism
def test_no_reports_gain_more_for_the_targets_than_the_maximal_gain(mechanism: str) -> None:
    """The gain: the sum of the targets' decoded frequencies, less what honest users have there."""
    target = make_target(mechanism, 0.5)
    part = cast(CategoricalMechanism, target.mechanism)

    def gain(reports: FloatArray, targets: IntArray) -> float:
        observed = [float((reports == category).mean()) for category in targets]
        return float(part.decode(np.array(observed)).sum() - DRINK_SHARES[targets].sum())

    mine = MaximalGain(2)
    rng = np.random.default_rng(1)
    best = gain(mine.poison(target, COUNT, rng), mine.chosen_categories(target))
    for reports in (RandomReports().poison(target, COUNT, rng), part.perturb(np.ones(COUNT), rng)):
        assert gain(reports, mine.chosen_categories(target)) < best
    for other in itertools.combinations(range(len(DRINKS)), 2):
        names = tuple(DRINKS[category] for category in other)
        reports = Targets(names).poison(target, COUNT, rng)
        assert gain(reports, np.array(other)) <= best + 1e-9


@pytest.mark.parametrize("count", [0, -1, 1.5, 2.0, "2"])
def test_a_maximal_gain_of_no_number_of_targets_is_refused(count: Any) -> None:
    with pytest.raises(InvalidParameter, match="count must be a whole number from 1; received"):
        MaximalGain(count)


def test_the_maximal_gain_has_at_most_all_categories_as_targets() -> None:
    target = make_target("k-rr", 0.5)
    MaximalGain(5).check_fits(target.mechanism)
    message = "count must be at most the number of categories, 5; received 6"
    with pytest.raises(InvalidParameter, match=message):
        MaximalGain(6).check_fits(target.mechanism)
    with pytest.raises(InvalidParameter, match=message):
        MaximalGain(6).poison(target, 3, np.random.default_rng(1))


@pytest.mark.parametrize("frequencies", [None, np.full(4, 0.25)])
def test_the_maximal_gain_needs_the_frequencies(frequencies: FloatArray | None) -> None:
    target = Target(make("k-rr", 1.0, 5), np.nan, DRINKS, frequencies)
    with pytest.raises(InvalidParameter, match="frequencies must be known of all 5 categories"):
        MaximalGain().poison(target, 3, np.random.default_rng(1))


@every_categorical_mechanism
@every_budget
def test_random_reports_look_like_evenly_spread_users(mechanism: str, epsilon: float) -> None:
    target, rng = make_target(mechanism, epsilon), np.random.default_rng(1)
    even = np.repeat(np.arange(5.0), 10_000)
    deviation = math.sqrt(50_000 * 0.2 * 0.8)
    for reports in (
        RandomReports().poison(target, 50_000, rng),
        target.mechanism.perturb(even, rng),
    ):
        counts = np.bincount(reports.astype(int), minlength=5)
        assert abs(counts - 10_000).max() < 5 * deviation
