"""The planner: candidates, what it predicts of them, which one it takes, and the command."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.command_line import Command, write_table
from unpoison import InvalidParameter, Plan, simulate
from unpoison.cli.plan_advice import print_comparison
from unpoison.filters.joint import JointCounts, PoisonModel, fit
from unpoison.filters.worst_case import PossibleRanges
from unpoison.planner import (
    Candidate,
    Comparison,
    Draw,
    Expectations,
    PredictedError,
    Prediction,
    Reference,
    Setting,
    Situation,
    attacks_on,
    candidates,
    compare,
    detectable_share,
    users_for,
    utilities,
)
from unpoison.planner.effort import Effort
from unpoison.planner.expectations import best_of_each_budget
from unpoison.planner.expected import ExpectedCollection
from unpoison.planner.reference import SHAPES
from unpoison.simulation.theory import utility_max
from unpoison.simulation.trials import ungrouped

pytestmark = pytest.mark.slow

DRINKS = ["tea", "milk", "water"]
NUMBERS: dict[str, Any] = {"low": 0, "high": 10}
SETTING = Setting(10_000, tolerate=0.25)
ON_DRINKS = ("plan", "-m", "k-rr", "--categories", ",".join(DRINKS), "--min-epsilon", "1/2")


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("epsilon", [0.0002, 0.1, 0.3, 1.0, 16.0])
def test_candidates_are_few_valid_plans_of_different_shares(epsilon: float) -> None:
    plans = candidates(epsilon, **NUMBERS)
    assert 2 <= len(plans) <= 16
    assert (
        len({candidate.label for candidate in plans})
        == len({candidate.plan for candidate in plans})
        == len(plans)
    )
    for candidate in plans:
        assert len(candidate.plan.groups) >= 2
        assert candidate.plan.groups[0].epsilon == epsilon
        assert Plan.from_json(candidate.plan.to_json()) == candidate.plan


def test_designs_share_users_out_as_their_names_say() -> None:
    groups_by_design = {
        candidate.design: candidate.plan.groups
        for candidate in candidates(1.0, 0.125, **NUMBERS)[-3:]
    }
    assert [group.share for group in groups_by_design["equal users"]] == [0.25] * 4
    assert np.allclose(
        [group.share for group in groups_by_design["half first"]], [1 / 2, *[1 / 6] * 3]
    )
    reports = [group.share * group.reports for group in groups_by_design["equal reports"]]
    assert np.allclose(reports, reports[0])


def test_there_must_be_groups_to_compare() -> None:
    with pytest.raises(InvalidParameter, match=r"min_epsilon must be at most half of epsilon 1"):
        candidates(1.0, 0.75, **NUMBERS)


@pytest.mark.parametrize("shape", SHAPES)
def test_reference_users_are_as_their_shape_says(shape: str) -> None:
    a, b = SHAPES[shape]
    plan = Plan.new(epsilon=1.0, **NUMBERS)
    population = Reference(shape, 12_345).population(plan)
    assert population.users == 12_345
    assert np.average(population.values, weights=population.numbers) == pytest.approx(
        10 * a / (a + b), 0.01
    )


def test_the_unprotected_error_is_the_floor_of_one_ungrouped_collection() -> None:
    reference, plan = Reference("Beta(2,5)", 20_000), candidates(1.0, **NUMBERS)[-1].plan
    run = simulate(ungrouped(plan), reference.population(plan), "none", 0.0)
    assert reference.unprotected_error(plan) == pytest.approx(run.floor)


@pytest.mark.usefixtures("no_cramer_rao")
def test_the_detectable_share_is_noticed_and_half_of_it_mostly_not() -> None:
    plan = Plan.new(epsilon=1.0, min_epsilon=0.25, **NUMBERS)
    reference, rng = Reference("Beta(2,5)", 50_000), np.random.default_rng(1)
    attack, share = next(iter(attacks_on(plan).values())), detectable_share(plan, reference)

    def noticed(gamma: float) -> bool:
        run = simulate(plan, reference.population(plan), attack, gamma, rng)
        counts = JointCounts.of(run.summary, range(3))
        return fit(counts, PoisonModel.nobody(*counts.counts.shape)).p_value < 0.05

    assert sum(noticed(share) for _ in range(20)) >= 14
    assert sum(noticed(share / 2) for _ in range(20)) <= 13


def test_fewer_attackers_are_noticed_among_more_users() -> None:
    plan = Plan.new(epsilon=1.0, min_epsilon=0.25, **NUMBERS)
    few, many = (detectable_share(plan, Reference("uniform", n)) for n in (10**5, 10**7))
    assert few / many == pytest.approx(10, rel=0.15)


def test_without_noise_attackers_are_never_noticed() -> None:
    plan = Plan.new("k-rr", epsilon=16.0, min_epsilon=8.0, categories=DRINKS)
    assert np.isnan(detectable_share(plan, Reference("uniform", 1000)))


def test_utilities_are_those_of_the_paper_in_natural_units() -> None:
    plan = Plan.new(epsilon=1.0, min_epsilon=1.0, **NUMBERS)
    C = plan.group_mechanisms[0].output_high
    shifts = utilities(plan, 0.2)
    assert shifts.most == pytest.approx(5 * utility_max(0.2, 0.8, C, 4 / 7 - 1), 0.001)
    assert shifts.cost == pytest.approx(5 * 0.2 * 0.3 * C)


def line_of(plan: Plan, error: float, standard_error: float = 0.001) -> Prediction:
    return Prediction(
        candidate=Candidate("equal users", plan),
        situation=Situation("poison", "uniform"),
        predicted=PredictedError(error, standard_error, trials=8),
        complete=True,
        quiet_error=0.1,
        price=1.0,
        detectable=0.05,
        interval_width=4 * error,
        worst_case=(-1.0, 1.0),
    )


def lines(standard_error: float = 0.001) -> tuple[Prediction, ...]:
    """Dear and good, cheap and bad, and one between them."""
    plans = [Plan.new(epsilon=1.0, min_epsilon=1 / 2**n, **NUMBERS) for n in (1, 2, 3)]
    pairs = zip(plans, (0.4, 0.21, 0.2), strict=True)
    return tuple(line_of(plan, error, standard_error) for plan, error in pairs)


@pytest.mark.parametrize(
    ("target", "place", "met"), [(None, 1, True), (0.5, 0, True), (0.205, 2, True), (0.1, 1, False)]
)
def test_the_cheapest_plan_that_is_good_enough(target: float | None, place: int, met: bool) -> None:
    comparison = Comparison(lines(), SETTING, target)
    assert comparison.recommended is comparison.lines[place]
    assert comparison.met is met


def test_an_error_with_nobody_attacking_can_miss_the_target_too() -> None:
    cheap, *others = lines()
    comparison = Comparison((replace(cheap, quiet_error=0.6), *others), SETTING, 0.5)
    assert comparison.recommended is comparison.lines[1]


def test_errors_that_are_not_known_apart_do_not_cost_reports() -> None:
    comparison = Comparison(lines(standard_error=0.2), SETTING)
    assert comparison.recommended is comparison.lines[0]


def test_a_plan_that_was_not_tried_in_every_situation_is_not_recommended() -> None:
    cheap, *others = lines()
    comparison = Comparison((replace(cheap, complete=False), *others), SETTING, target_error=0.5)
    assert comparison.recommended is comparison.lines[1]


def test_few_trials_that_agree_with_the_attainable_error_are_not_taken_at_their_word() -> None:
    lucky = PredictedError.of([0.2, 0.1], attainable=1.0)
    assert 0.85 < lucky.error < 1
    assert lucky.standard_error > 0.15


def test_trials_that_contradict_the_attainable_error_count_alone() -> None:
    biased = PredictedError.of([24.0, 25.0, 26.0], attainable=1.0)
    assert biased.error == 5
    # A bias of 5 about which errors scatter by 1: a mean of squares scatters by 10 in each.
    assert biased.standard_error == pytest.approx(1 / 3**0.5)


def test_a_standard_error_is_about_the_scatter_of_the_figure() -> None:
    rng = np.random.default_rng(1)
    figures = [PredictedError.of((rng.normal(0, 1, 12) ** 2).tolist(), 1.0) for _ in range(200)]
    scatter = np.std([figure.error for figure in figures])
    stated = np.mean([figure.standard_error for figure in figures])
    # The stated one also has room for an attainable error that is not quite that of the filter.
    assert scatter < stated < 2.5 * scatter


@pytest.mark.usefixtures("no_cramer_rao")
def test_the_attainable_error_is_that_of_a_fit_that_knows_where_poison_is() -> None:
    plan, rng = Plan.new(epsilon=1.0, min_epsilon=0.25, **NUMBERS), np.random.default_rng(1)
    reference, attack = Reference("uniform", 50_000), "uniform:C/2,C"
    attainable = ExpectedCollection(plan, reference).attainable_error(attack, 0.2)
    errors = []
    for _ in range(30):
        run = simulate(plan, reference.population(plan), attack, 0.2, rng)
        counts = JointCounts.of(run.summary, range(3))
        buckets = np.linspace(0, 1, counts.counts.shape[1], endpoint=False) >= 0.75
        best = fit(counts, PoisonModel.alike(buckets, 3))
        errors.append(plan.natural(best.mean(counts.values)) - run.truth)
    assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(attainable, rel=0.4)


def test_expected_counts_are_those_of_collections_on_average() -> None:
    plan = Plan.new(epsilon=1.0, min_epsilon=0.25, low=1, high=5, step=1)
    reference, attack = Reference("Beta(2,5)", 200_000), "uniform:C/2,C"
    expected = ExpectedCollection(plan, reference).counts(attack, 0.25)
    run = simulate(plan, reference.population(plan), attack, 0.25, np.random.default_rng(1))
    simulated = JointCounts.of(run.summary, range(3))
    deviations = (simulated.counts - expected.counts) / np.sqrt(expected.counts)
    assert np.abs(deviations).max() < 5
    assert np.mean(deviations**2) < 1.5


@pytest.mark.usefixtures("no_cramer_rao")
def test_the_worst_case_is_that_of_an_estimate() -> None:
    plan, rng = Plan.new(epsilon=1.0, min_epsilon=0.25, **NUMBERS), np.random.default_rng(1)
    figures = Expectations.of(Candidate("equal users", plan), Setting(50_000, tolerate=0.1))
    run = simulate(plan, Reference("uniform", 50_000).population(plan), "none", 0.0, rng)
    possible = PossibleRanges(JointCounts.of(run.summary, range(3))).mean(0.1)
    ends = [plan.natural(end) - run.truth for end in possible.ends]
    # With uniform values the range is widest.
    assert figures.worst_case == pytest.approx(ends, rel=0.1)


def test_one_plan_for_each_budget_with_a_narrow_worst_case_and_few_reports() -> None:
    first, second = candidates(1.0, 0.5, **NUMBERS)
    situation = Situation("poison", "uniform")

    def figures(candidate: Candidate, error: float, width: float) -> Expectations:
        return Expectations(candidate, {situation: error}, 0.1, (0.0, width))

    def chosen(*both: Expectations) -> list[Candidate]:
        return [best.candidate for best in best_of_each_budget(both)]

    assert second.reports_a_user < first.reports_a_user
    assert chosen(figures(first, 1.0, 1.0), figures(second, 1.05, 1.05)) == [second]
    assert chosen(figures(first, 1.0, 1.0), figures(second, 1.2, 1.0)) == [first]
    assert chosen(figures(first, 1.0, 1.0), figures(second, 0.5, 1.2)) == [first]


def test_more_work_an_estimate_means_fewer_of_them() -> None:
    efforts = [
        Effort.of(candidates(epsilon, **NUMBERS), Setting(users, tolerate=0.25))
        for epsilon, users in ((0.5, 10**4), (2.0, 10**5), (4.0, 10**6))
    ]
    amounts = [
        effort.entrants + effort.finalists * (effort.hard_trials + effort.most_trials)
        for effort in efforts
    ]
    assert amounts == sorted(amounts, reverse=True)
    assert amounts[0] > 2 * amounts[-1]


@pytest.mark.usefixtures("no_cramer_rao")
def test_the_predicted_error_is_the_largest_of_all_situations() -> None:
    keys = {"mechanism": "k-rr", "categories": DRINKS}
    setting = Setting(20_000, tolerate=0.2)
    chosen = compare(candidates(1.0, 0.5, **keys), setting).recommended
    fresh = replace(setting, seed=12_345)
    measured = {
        situation: np.sqrt(
            np.mean(
                [
                    Draw(chosen.candidate.plan, situation, fresh, number).run().squared_error
                    for number in range(30)
                ]
            )
        )
        for situation in Situation.all_on(chosen.candidate.plan)
    }
    assert 0.8 < chosen.error / max(measured.values()) < 1.25
    assert measured[chosen.situation] > 0.8 * max(measured.values())


@pytest.mark.usefixtures("little_effort")
def test_processes_give_what_one_gives() -> None:
    plans = candidates(1.0, 0.5, mechanism="k-rr", categories=DRINKS)
    setting = Setting(2000, tolerate=0.1)
    alone, together = (compare(plans, setting, workers=workers) for workers in (1, 2))
    assert alone == together


def test_more_users_have_smaller_errors_and_meet_the_target(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The fewest trials that there ever are: with fewer the error is not known well enough.
    monkeypatch.setattr("unpoison.planner.effort.SECONDS", 1.0)
    keys = {"mechanism": "k-rr", "categories": DRINKS}
    plans, setting = candidates(1.0, 0.5, **keys), Setting(2000, tolerate=0.1)
    line = compare(plans, setting).recommended
    needed = users_for(line, setting, line.error / 2)
    assert needed is not None
    assert needed >= 4 * 2000
    assert users_for(line, setting, line.error / 10**5) is None


@pytest.mark.usefixtures("little_effort")
def test_numbers_are_predicted_in_their_own_units() -> None:
    wide, narrow = (
        compare(candidates(0.5, 0.25, low=0, high=high), Setting(1000, tolerate=0.25)).recommended
        for high in (100, 1)
    )
    for name in ("error", "standard_error", "quiet_error", "interval_width", "worst_case_width"):
        assert getattr(wide, name) == pytest.approx(100 * getattr(narrow, name), rel=1e-6)
    assert wide.price == pytest.approx(narrow.price, rel=1e-6)
    assert wide.detectable == pytest.approx(narrow.detectable, rel=1e-6)


@pytest.mark.usefixtures("little_effort")
def test_the_plan_that_is_recommended_is_written_and_works(unpoison: Command) -> None:
    facts = unpoison.done(
        *ON_DRINKS, "--users", "2e4", "--json", "-o", "plan.json", "--plot", "plans.png"
    ).json
    assert Path("plans.png").stat().st_size > 1000
    assert Plan.load("plan.json").to_dict() == facts["plan"]
    chosen = facts["candidates"][facts["recommended"]]
    assert chosen["groups"] == facts["plan"]["groups"]
    write_table("values.csv", {"drink": DRINKS * 400})
    unpoison.done("perturb", "values.csv", "-c", "drink", "-p", "plan.json", "-o", "r.csv")
    unpoison.done("summarise", "r.csv", "-p", "plan.json", "-o", "s.bin")
    assert set(unpoison.done("estimate", "s.bin", "--json").json["frequencies"]) == set(DRINKS)
    unpoison.done("simulate", "--values", "values.csv", "-c", "drink", "-p", "plan.json")


@pytest.mark.usefixtures("little_effort", "one_process")
def test_the_same_options_give_the_same_plan(unpoison: Command) -> None:
    command = (*ON_DRINKS, "--users", "1e4", "--tolerate", "1/10", "--json")
    plain, same, other = (
        unpoison.done(*command, *seed).json for seed in ((), ("--seed", 0), ("--seed", 1))
    )
    assert plain == same != other


@pytest.mark.usefixtures("little_effort", "one_process")
def test_the_table_and_the_reason(unpoison: Command) -> None:
    text = unpoison.done(*ON_DRINKS, "--users", 2000, "--tolerate", "1/10").out
    assert "2,000 users of whom 10 % may attack" in text
    assert sum(" *" in line.split("  ")[0] for line in text.splitlines()) == 1
    assert "Recommended: ε0 " in text
    assert "Expect an error of 0." in text
    assert "Whatever 10 % of users send, the truth is in a range" in " ".join(text.split())
    assert "U_max" not in text
    assert max(map(len, text.splitlines())) <= 100


@pytest.mark.usefixtures("little_effort", "one_process")
def test_the_table_of_numbers_tells_what_attackers_could_do(unpoison: Command) -> None:
    bounds = ("--low", 0, "--high", 1, "--epsilon", 4, "--min-epsilon", 2)
    text = unpoison.done("plan", "--users", 1000, *bounds).out
    assert "U_max 0." in text
    assert "U_eva 0." in text
    assert "worst case" in text.splitlines()[1]
    assert max(map(len, text.splitlines())) <= 100


@pytest.mark.usefixtures("little_effort", "one_process")
def test_a_target_that_is_missed(unpoison: Command) -> None:
    command = (*ON_DRINKS, "--users", 2000, "--tolerate", "1/10", "--target-error")
    text = " ".join(unpoison.done(*command, "0.005").out.split())
    assert "No plan meets the target 0.005. This one misses it by" in text
    assert ("users would do." in text) or ("No number of users up to 999,999,999 was" in text)
    met = " ".join(unpoison.done(*command, "0.5").out.split())
    assert "with an error of at most 0.5." in met


@pytest.mark.parametrize(
    ("needed", "sentence"),
    [
        (12_000, "With this plan about 12,000 users would do."),
        (None, "No number of users up to 999,999,999 was found that would do"),
    ],
)
def test_how_many_users_would_do(
    needed: int | None, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    print_comparison(Comparison(lines(), SETTING, target_error=0.1, needed_users=needed))
    text = " ".join(capsys.readouterr().out.split())
    assert "No plan meets the target 0.1. This one misses it by 0.11 (2.1 times as much)." in text
    assert sentence in text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--users 999", "users must be a whole number from 1000 to 999999999; received 999"),
        ("--users 1e9", "users must be a whole number from 1000 to 999999999; received 1000000000"),
        ("--users 2000 --tolerate 0.5", "tolerate must be above 0 and below 1/2"),
        ("--users 2000 --tolerate 0", "tolerate must be above 0 and below 1/2"),
        ("--users 2000 --target-error 0", "target_error must be a positive number; received 0.0"),
        ("--users 2000 --trials 0", "trials must be at least 1; received 0"),
        ("--users 2000 --min-epsilon 1", "min_epsilon must be at most half of epsilon 1"),
        ("--users 2000 --tier 1/2", "--users cannot go with --tier"),
        ("--users 2000 --protocol baseline", "--users cannot go with --protocol"),
        ("--users 2000 --plan plan.json", "--users cannot go with --plan"),
        ("--users 2000 --plot plans.txt", "--plot must end in .png"),
        ("--users 2000 --plot a.png -o a.png", "outputs must be different files"),
        ("--users 2000 --mechanism k-rr", "low and high do not go with categories"),
        ("--tolerate 0.2", "--tolerate must be given with --users; received 0.2"),
        ("--target-error 0.2", "--target-error must be given with --users; received 0.2"),
        ("--trials 2", "--trials must be given with --users; received 2"),
        ("--seed 2", "--seed must be given with --users; received 2"),
        ("--plot a.png", "--plot must be given with --users; received a.png"),
    ],
)
def test_bad_options_are_refused(unpoison: Command, options: str, message: str) -> None:
    assert message in unpoison.refused("plan", "--low", 0, "--high", 1, *options.split())
