"""Which model of the poison is chosen, where the poison is seen, and when there is doubt."""

from __future__ import annotations

from functools import cache
from itertools import permutations

import numpy as np
import pytest

from unpoison import Plan, Simulation, Summary, estimate, simulate
from unpoison.attacks import Attack, InputManipulation, Point, Target, Uniform
from unpoison.filters.joint import (
    Fit,
    Intervals,
    JointCounts,
    ModelChoice,
    ModelSearch,
    PoisonModel,
    choose_model,
    fit,
)
from unpoison.filters.joint.constants import LEAST_FIT_P_VALUE
from unpoison.filters.joint.initial_support import initial_supports, least_poison, widened
from unpoison.filters.joint.model_search import attacker_share
from unpoison.filters.joint.noise import most_unnoticed_noise
from unpoison.filters.joint.support_search import islands, refine_support, try_without_islands
from unpoison.simulation.population import Population
from unpoison.types import BoolArray, FloatArray, IntArray

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_cramer_rao")]

PLAN = Plan.new(epsilon=1.0, min_epsilon=0.125, low=0, high=1)
USERS = 50_000
POPULATION = Population.of(np.random.default_rng(1).beta(2, 5, USERS))


class EachItsOwn(Attack):
    """All poison of a group at one place, another one in every group."""

    by_group = True

    def poison(self, target: Target, count: int, rng: np.random.Generator) -> FloatArray:
        places = ("C", "-C", "C/2", "-C/2")
        return Point(places[target.rank]).poison(target, count, rng)


class SmallestBudget(Attack):
    """Poison in the group of the smallest budget alone; elsewhere the honest mean, perturbed."""

    by_group = True

    def poison(self, target: Target, count: int, rng: np.random.Generator) -> FloatArray:
        last = target.rank == target.groups - 1
        chosen = Uniform("3C/4", "C") if last else InputManipulation("O")
        return chosen.poison(target, count, rng)


def share_of(counts: JointCounts, fitted: Fit) -> float:
    return attacker_share(counts, fitted)


def score(counts: JointCounts, fitted: Fit) -> float:
    return ModelSearch(counts).score(fitted)


OWN_ATTACKS: dict[str, Attack] = {"each its own": EachItsOwn(), "smallest": SmallestBudget()}


@cache
def collected(attack: str, share: float = 0.25, seed: int = 2) -> Simulation:
    chosen = OWN_ATTACKS.get(attack, attack)
    return simulate(PLAN, POPULATION, chosen, share, np.random.default_rng(seed))


@cache
def chosen(attack: str, share: float = 0.25, seed: int = 2) -> tuple[JointCounts, ModelChoice]:
    counts = counted(collected(attack, share, seed).summary)
    return counts, choose_model(counts)


def counted(summary: Summary) -> JointCounts:
    return JointCounts.of(summary, range(len(summary.plan.groups)))


def error_in_deviations(attack: str, share: float = 0.25) -> float:
    _, choice = chosen(attack, share)
    mean = PLAN.natural(choice.best.mean(choice.counts.values))
    apart = abs(mean - collected(attack, share).truth)
    return apart / (PLAN.natural_scale * choice.best.standard_error(choice.counts.values))


PLACES = {
    "uniform:3C/4,C": (0.875, 1.0),
    "uniform:C/2,C": (0.75, 1.0),
    "uniform:O,C/2": (0.40, 0.75),
    "uniform:O,C": (0.40, 1.0),
    "uniform:-C,-3C/4": (0.0, 0.125),
    "gaussian:C/2,C": (0.75, 1.0),
    "beta:C/2,C,1,6": (0.75, 1.0),
    "triangular:C/2,C": (0.75, 1.0),
    "point:C": (0.98, 1.0),
    "point:-C": (0.0, 0.02),
}


@pytest.mark.parametrize("attack", PLACES)
def test_poison_is_found_where_it_is_and_all_of_it(attack: str) -> None:
    counts, choice = chosen(attack)
    assert choice.fits
    assert share_of(counts, choice.best) == pytest.approx(0.25, abs=0.02)
    assert error_in_deviations(attack) < 4
    low, high = PLACES[attack]
    outputs = counts.counts.shape[1]
    middles = (np.arange(outputs) + 0.5) / outputs
    inside = (middles > low - 0.5 / outputs) & (middles < high + 0.5 / outputs)
    blamed = counts.users @ choice.best.poison
    assert blamed[inside].sum() > 0.93 * blamed.sum()


@pytest.mark.parametrize("share", [0.3, 0.5])
def test_evasive_poison_is_found_on_both_sides(share: float) -> None:
    counts, choice = chosen(f"evasion:{share}")
    blamed = counts.users @ choice.best.poison
    outputs = len(blamed)
    left = blamed[: outputs // 2].sum() / blamed.sum()
    assert choice.fits
    assert left == pytest.approx(share, abs=0.04)
    assert error_in_deviations(f"evasion:{share}") < 4


@pytest.mark.parametrize(
    ("attack", "share", "kinds"),
    [
        ("none", 0.0, {"nobody"}),
        ("point:C", 0.25, {"alike"}),
        ("point:C", 0.02, {"alike"}),
        ("uniform:3C/4,C", 0.25, {"range"}),
        ("evasion:0.3", 0.25, {"alike"}),
        ("noise", 0.45, {"even"}),
        ("opposite", 0.25, {"own"}),
        ("adaptive", 0.25, {"range"}),
        ("each its own", 0.25, {"own"}),
        ("smallest", 0.25, {"range"}),
    ],
)
def test_the_kind_of_the_poison_is_recognised(attack: str, share: float, kinds: set[str]) -> None:
    assert chosen(attack, share)[1].best.model.kind in kinds


def test_the_places_of_a_point_are_one_bucket_of_each_group() -> None:
    assert chosen("point:C")[1].best.model.support.sum(axis=1).tolist() == [1, 1, 1, 1]
    own = chosen("each its own")[1].best.model.support
    assert own.sum(axis=1).tolist() == [1, 1, 1, 1]
    assert len({int(np.flatnonzero(row)[0]) for row in own}) == 4


@pytest.mark.parametrize("attack", ["opposite", "each its own"])
def test_poison_that_differs_between_groups_is_taken_out(attack: str) -> None:
    counts, choice = chosen(attack)
    assert share_of(counts, choice.best) == pytest.approx(0.25, abs=0.02)
    assert error_in_deviations(attack) < 4


def test_groups_that_are_not_attacked_are_told_from_those_that_are() -> None:
    counts, choice = chosen("adaptive:groups=1")
    upper = choice.best.poison[:, -8:].sum(axis=1)
    assert upper[0] > 0.2
    assert (upper[1:] < 0.05).all()
    assert error_in_deviations("adaptive:groups=1") < 4
    assert counts.groups == (0, 1, 2, 3)


def test_nobody_is_blamed_when_nobody_attacks() -> None:
    for seed in range(4):
        counts, choice = chosen("none", 0.0, seed)
        assert choice.best.model.kind == "nobody"
        assert share_of(counts, choice.best) == 0
        assert choice.best is choice.nobody


@pytest.mark.parametrize("attack", ["noise", "input:1", "uniform:O,C", "evasion:0.5"])
def test_whatever_is_chosen_has_attackers_in_the_minority(attack: str) -> None:
    counts, choice = chosen(attack, 0.45)
    for candidate in (choice.best, *choice.others):
        assert share_of(counts, candidate) < 0.5


def test_the_score_is_the_deviance_and_the_price_of_a_description() -> None:
    counts, choice = chosen("point:C")
    best = choice.best
    assert score(counts, choice.nobody) == choice.nobody.deviance
    # One bucket: its place among 64, and a number to its own accuracy.
    price = score(counts, best) - best.deviance
    assert 1 + 2 * np.log(64) < price < 2 + 2 * np.log(64) + np.log(USERS)
    assert score(counts, best) < score(counts, choice.nobody)


def test_the_least_poison_is_where_the_poison_is_and_hardly_anywhere_without() -> None:
    support = least_poison(chosen("uniform:3C/4,C")[0])
    assert support[:, 57:].all()
    assert support[:, :56].sum() <= 4
    for seed in range(3):
        assert least_poison(chosen("none", 0.0, seed)[0]).sum() <= 4


def test_tidying_never_makes_the_score_worse() -> None:
    counts = chosen("uniform:3C/4,C")[0]
    groups, outputs = counts.counts.shape
    for wide in (range(40, 64), range(50, 64), range(60, 64)):
        buckets = np.isin(np.arange(outputs), list(wide))
        model = PoisonModel.alike(buckets, groups)
        assert (
            score(counts, refine_support(ModelSearch(counts), model))
            <= score(counts, fit(counts, model)) + 1e-9
        )
    first, *_ = initial_supports(counts)
    assert score(counts, refine_support(ModelSearch(counts), PoisonModel.own(first))) <= score(
        counts, fit(counts, PoisonModel.own(first))
    )


def band(first: int, last: int, groups: int = 4, outputs: int = 64) -> BoolArray:
    places = np.zeros((groups, outputs), dtype=bool)
    places[:, first:last] = True
    return places


def test_islands_are_parted_by_gaps_and_joined_by_groups() -> None:
    stairs = np.zeros((3, 40), dtype=bool)
    for group in range(3):
        stairs[group, 4 * group : 4 * group + 4] = True
    stairs[2, 30:] = True
    parts = islands(stairs)
    assert [int(part.sum()) for part in parts] == [12, 10]
    assert np.array_equal(np.any(parts, axis=0), stairs)
    assert not (parts[0] & parts[1]).any()


def test_poison_that_was_blamed_on_the_wrong_island_is_found_where_it_is() -> None:
    """From a beginning with a false island and a hole, single places cannot mend the model."""
    counts, choice = chosen("uniform:C/2,C")
    search = ModelSearch(counts)
    search.fit(PoisonModel.own(band(0, 12) | band(52, 64)))
    try_without_islands(search)
    blamed = counts.users @ search.best.poison
    assert blamed[47:].sum() > 0.98 * blamed.sum()
    share = attacker_share(search.counts, search.best)
    assert share == pytest.approx(choice.attacker_share, abs=0.01)


def test_the_end_of_the_poison_is_only_known_to_a_bucket() -> None:
    counts, choice = chosen("uniform:3C/4,C")
    best = choice.best.model.support
    wider = [
        candidate.model.support
        for candidate in choice.others
        if (candidate.model.support >= best).all()
    ]
    assert any(np.array_equal(support, widened(best, reach=1)) for support in wider)
    low, high = Intervals(choice).mean(counts.values)
    alone = 1.96 * choice.best.standard_error(counts.values)
    middle = choice.best.mean(counts.values)
    assert low < middle - alone
    assert high > middle + 0.99 * alone


def test_either_end_of_the_range_is_a_value_by_itself() -> None:
    """Values beyond a range are moved to its ends: half of all users may be there."""
    ends = np.repeat([0.0, 1.0], USERS // 2)
    run = simulate(PLAN, Population.of(ends), "none", 0.0, np.random.default_rng(1))
    counts = counted(run.summary)
    choice = choose_model(counts)
    assert choice.best.model.kind == "nobody"
    assert choice.best.p_value > 0.05
    assert sorted(counts.values[-2:].round(4)) == [-1.0, 1.0]
    assert choice.best.honest[-2:].sum() > 0.9


def test_noise_beside_one_value_of_all_users_is_noise() -> None:
    """No bucket is narrow enough for such users at a large budget: values have to be added."""
    plan = Plan.new(epsilon=4.0, min_epsilon=0.5, low=0, high=1)
    population = Population.of(np.full(300_000, 0.37))
    run = simulate(plan, population, "noise", 0.1, np.random.default_rng(1))
    choice = choose_model(counted(run.summary))
    assert choice.best.model.kind == "even"
    assert choice.best.p_value > 0.05
    assert choice.attacker_share == pytest.approx(0.1, abs=0.02)


def test_noise_of_a_known_share_is_another_mechanism() -> None:
    """Fitting noise finds no better likelihood than the best of all its shares."""
    counts, choice = chosen("noise", 0.3)
    nobody = PoisonModel.nobody(*counts.counts.shape)
    shares = np.linspace(0.2, 0.4, 9)
    deviances = [fit(counts.with_noise(share), nobody).deviance for share in shares]
    assert choice.even.deviance == pytest.approx(min(deviances), abs=0.5)
    assert shares[int(np.argmin(deviances))] == pytest.approx(
        choice.even.attacker_shares[0], abs=0.02
    )


def test_the_most_noise_that_would_not_be_noticed_is_at_the_edge_of_a_test() -> None:
    counts, choice = chosen("none", 0.0)
    most = most_unnoticed_noise(counts, choice.nobody)
    share = float(most.attacker_shares[0])
    assert 0 < share < 0.5
    nobody = choice.nobody
    more = fit(counts.with_noise(min(share + 0.01, 0.49)), nobody.model)
    assert most.deviance < nobody.deviance + 2.71 < more.deviance + 0.5
    _, high = Intervals(choice).attacker_share()
    assert high == pytest.approx(share)


def test_two_explanations_that_are_close_are_both_told() -> None:
    """Noise from few users looks almost like honest users of other values."""
    plan = Plan.new(epsilon=1.0, min_epsilon=0.25, low=0, high=1)
    population = Population.of(np.random.default_rng(1).beta(2, 5, 30_000))
    run = simulate(plan, population, "noise", 0.25, np.random.default_rng(2))
    counts = counted(run.summary)
    choice = choose_model(counts)
    kinds = {candidate.model.kind for candidate in (choice.best, *choice.others)}
    assert {"nobody", "even"} <= kinds
    assert all(candidate.p_value > LEAST_FIT_P_VALUE for candidate in choice.others)
    answer = estimate(run.summary, method="joint")
    alone = 1.96 * plan.natural_scale * choice.best.standard_error(choice.counts.values)
    assert answer.interval is not None
    assert answer.interval[1] - answer.interval[0] > 2.2 * alone
    assert "cannot rule out" in answer.verdict
    assert answer.interval[0] < run.truth < answer.interval[1]


def riddled() -> Summary:
    """Honest reports, but every fourth of 64 buckets is empty, other ones in every group."""
    run = collected("none", 0.0)
    counts = run.summary.counts.copy()
    width = PLAN.cells // 64
    for group, row in enumerate(counts):
        for bucket in range(group, 64, 4):
            row[bucket * width : (bucket + 1) * width] = 0
    return Summary(PLAN, counts, _sums(counts))


def misread() -> Summary:
    """Reports of twice the budget that the plan says."""
    other = Plan.new(epsilon=2.0, min_epsilon=0.25, low=0, high=1)
    run = simulate(other, POPULATION, "none", 0.0, np.random.default_rng(1))
    return Summary(PLAN, run.summary.counts, run.summary.sums)


def _sums(counts: IntArray) -> tuple[int, ...]:
    return tuple(
        int(row @ part.bucket_values(part.grid()) * 2**32)
        for row, part in zip(counts, PLAN.group_mechanisms, strict=True)
    )


def outvoted() -> Summary:
    """Nine attackers for each honest user, all at the upper end."""
    run = collected("none", 0.0)
    counts = run.summary.counts.copy()
    counts[:, -1] += 9 * run.summary.reports
    return Summary(PLAN, counts, _sums(counts))


def test_reports_that_nothing_explains_are_not_explained_away() -> None:
    summary = riddled()
    counts, answer = counted(summary), estimate(summary, method="joint")
    choice = choose_model(counts)
    assert not choice.fits
    assert answer.fit["fits"] is False
    assert choice.best.p_value < LEAST_FIT_P_VALUE
    assert answer.interval is not None
    width = answer.interval[1] - answer.interval[0]
    assert width > 2.5 * 1.96 * PLAN.natural_scale * choice.best.standard_error(
        choice.counts.values
    )
    assert "No model explains the reports" in answer.verdict
    assert "do not rely on the number" in answer.verdict
    assert choice.others


def test_reports_by_another_budget_are_not_taken_for_honest_ones() -> None:
    answer = estimate(misread(), method="joint")
    assert answer.fit["nobody_attacks_p_value"] < 1e-6
    assert answer.byzantine.fraction > 0.1 or not answer.fit["fits"]


def test_a_majority_of_attackers_is_noticed() -> None:
    answer = estimate(outvoted(), method="joint")
    assert answer.byzantine.fraction == pytest.approx(0.9, abs=0.01)
    assert answer.fit["nobody_attacks_p_value"] < 1e-6


def test_a_majority_of_attackers_is_said_to_be_one() -> None:
    answer = estimate(outvoted(), method="joint")
    assert "Nobody seems to attack" not in answer.verdict
    assert answer.byzantine.fraction > 0.5
    assert "do not use the answer" in answer.verdict


def test_a_majority_leaves_nothing_to_be_known() -> None:
    assert estimate(outvoted(), method="joint").interval == PLAN.bounds


def test_the_order_in_which_summaries_are_merged_does_not_matter() -> None:
    parts = [
        simulate(
            PLAN, Population(POPULATION.values, POPULATION.numbers // 3), "evasion:0.3", 0.25, rng
        ).summary
        for rng in np.random.default_rng(3).spawn(3)
    ]
    first, *rest = (
        estimate(sum_of([parts[place] for place in order]), method="joint")
        for order in list(permutations(range(3)))[::2]
    )
    assert all(other == first for other in rest)


def sum_of(parts: list[Summary]) -> Summary:
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


@pytest.mark.parametrize("attack", ["none", "opposite"])
def test_the_same_summary_has_the_same_estimate(attack: str) -> None:
    summary = collected(attack).summary
    again = Summary.from_bytes(summary.to_bytes())
    assert estimate(summary, method="joint") == estimate(again, method="joint")


def test_attackers_of_the_lower_end_mirror_those_of_the_upper_end() -> None:
    """Counts read backwards give the answer backwards."""
    summary = collected("uniform:3C/4,C").summary
    turned = Summary(PLAN, summary.counts[:, ::-1].copy(), tuple(-total for total in summary.sums))
    there, back = (
        estimate(counted_summary, method="joint") for counted_summary in (summary, turned)
    )
    assert (there.byzantine.side, back.byzantine.side) == ("right", "left")
    assert back.mean == pytest.approx(1 - there.mean, abs=1e-3)
    assert back.byzantine.fraction == pytest.approx(there.byzantine.fraction, abs=1e-3)
