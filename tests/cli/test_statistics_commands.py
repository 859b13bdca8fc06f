"""Categories and distributions on the command line: the whole path, and what is refused."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.command_line import FORMATS, Command, write_table
from unpoison import Estimate, Plan, Summary, estimate, perturb, summarise
from unpoison.datasets.covid import DEATHS_BY_AGE

USERS = 3000
DRINKS = ("tea", "coffee", "herbal tea")
SHARES = (0.6, 0.3, 0.1)


pytestmark = pytest.mark.usefixtures("few_replicates")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Values of both kinds, with a plan for each, and old files where output will go."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    columns = {"drink": rng.choice(DRINKS, USERS, p=SHARES), "hours": 24 * rng.beta(2, 5, USERS)}
    for suffix in FORMATS:
        write_table(f"values{suffix}", columns)
        Path(f"old{suffix}").write_text("an old file")
    for name in ("old.summary", "old.json", "old.png"):
        Path(name).write_text("an old file")
    drinks = Plan.new("k-rr", 2.0, min_epsilon=0.5, categories=list(DRINKS))
    drinks.save("drinks.json")
    Plan.new("square-wave", 2.0, min_epsilon=0.5, low=0, high=24).save("hours.json")
    reports = perturb(columns["drink"], drinks, np.random.default_rng(2))
    write_table("drinks.parquet", {"group": reports.group, "value": reports.value})
    summarise(reports, drinks).save("drinks.summary")
    hours = Plan.load("hours.json")
    summarise(perturb(columns["hours"], hours, np.random.default_rng(2)), hours).save(
        "hours.summary"
    )
    return tmp_path


# The whole path


@pytest.mark.slow
@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("mechanism", ["k-rr", "k-rr-integer"])
def test_the_whole_path_of_categories(unpoison: Command, suffix: str, mechanism: str) -> None:
    made = unpoison.done(
        *("plan", "--mechanism", mechanism, "--categories", "tea, coffee ,herbal tea"),
        *("--epsilon", 2, "--min-epsilon", 0.5, "-o", "plan.json"),
    )
    assert "3 categories" in made.out
    assert Plan.load("plan.json").categories == DRINKS
    reports, summary = f"reports{suffix}", "today.summary"
    done = unpoison.done(
        *("perturb", f"values{suffix}", "-c", "drink", "-p", "plan.json"),
        *("-o", reports, "--seed", 3),
    )
    assert f"{USERS} users, 7000 reports" in done.out
    unpoison.done("summarise", reports, "-p", "plan.json", "-o", summary)
    answer = Estimate.from_json(unpoison.done("estimate", summary, "--json").out)
    assert answer == estimate(Summary.load(summary))
    assert answer == Estimate.from_json(
        unpoison.done("estimate", reports, "-p", "plan.json", "--json").out
    )
    assert answer.frequencies is not None
    assert list(answer.frequencies) == list(DRINKS)
    assert list(answer.frequencies.values()) == pytest.approx(SHARES, abs=0.1)
    assert answer.byzantine.categories == ()
    text = unpoison.done("estimate", summary).out
    for name, frequency in answer.frequencies.items():
        assert any(
            line.startswith(name) and f"{100 * frequency:.2f} %" in line
            for line in text.splitlines()
        )
    assert "attackers 0.0 % (95 %: 0.0 to" in text
    assert answer.verdict in text
    assert "mean" not in text


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", ["square-wave", "piecewise-integer"])
def test_the_whole_path_of_a_distribution(unpoison: Command, mechanism: str) -> None:
    unpoison.done(
        *("plan", "-m", mechanism, "--low", 0, "--high", 24, "-e", 2, "--min-epsilon", 0.5),
        *("-o", "plan.json"),
    )
    unpoison.done(
        *("perturb", "values.csv", "-c", "hours", "-p", "plan.json", "-o", "reports.csv"),
        *("--seed", 3),
    )
    unpoison.done("summarise", "reports.csv", "-p", "plan.json", "-o", "today.summary")
    command = ("estimate", "today.summary", "--statistic", "distribution")
    keys = unpoison.done(*command, "--json").json
    distribution = keys["distribution"]
    assert sum(distribution["fractions"]) == pytest.approx(1)
    assert (distribution["edges"][0], distribution["edges"][-1]) == (0, 24)
    assert distribution["mean"] == pytest.approx(24 * 2 / 7, abs=3)
    text = unpoison.done(*command).out
    low, high = distribution["quantile_intervals"]["0.05"]
    # Two decimals, by the width of the mean's interval.
    line = (
        rf"^quantiles +5% +{distribution['quantiles']['0.05']:.2f}   95 %: {low:.2f} to {high:.2f}$"
    )
    assert re.search(line, text, re.MULTILINE)
    plain_text = unpoison.done(*command, "--method", "emf-star").out
    assert re.search(r"^quantiles 5% [\d.]+, 25% [\d.]+, 50% ", plain_text, re.MULTILINE)
    assert f"deviation {math.sqrt(distribution['variance']):.2f}" in text
    assert f"{len(distribution['fractions'])} buckets" in text
    plain = unpoison.done("estimate", "today.summary", "--json").json
    assert plain["distribution"] is None
    assert plain["mean"] == keys["mean"]
    assert "quantiles" not in unpoison.done("estimate", "today.summary").out


def test_options_of_statistics_reach_the_estimator(unpoison: Command) -> None:
    for post_processing in ("none", "clip", "norm-sub"):
        for method in ("emf", "ostrich"):
            answer = unpoison.done(
                *("estimate", "drinks.summary", "--post-processing", post_processing),
                *("--method", method, "--statistic", "frequencies", "--json"),
            ).json
            expected = estimate(
                Summary.load("drinks.summary"), method=method, post_processing=post_processing
            )
            assert answer["frequencies"] == expected.frequencies


def test_rivals_of_categories_have_no_attackers_to_show(unpoison: Command) -> None:
    text = unpoison.done("estimate", "drinks.summary", "--method", "ostrich").out
    assert "attackers" not in text
    assert "unfiltered" not in text
    assert "herbal tea" in text


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        ("estimate", "drinks.summary"),
        ("estimate", "hours.summary", "--statistic", "distribution"),
        ("simulate", "--values", "values.csv", "-c", "drink", "-m", "k-rr"),
        (
            "simulate",
            "-d",
            "beta-2-5",
            "-n",
            3000,
            "-m",
            "square-wave",
            "-e",
            1,
            "--statistic",
            "distribution",
        ),
    ],
)
def test_a_picture_is_drawn(unpoison: Command, arguments: tuple[Any, ...]) -> None:
    unpoison.done(*arguments, "--plot", "new.svg")
    text = Path("new.svg").read_text(encoding="utf-8")
    assert "<svg" in text


@pytest.mark.slow
def test_a_picture_of_more_categories_than_names_fit(unpoison: Command) -> None:
    names = [f"c{number}" for number in range(150)]
    Plan.new("k-rr", 1.0, min_epsilon=0.5, categories=names).save("many.json")
    write_table("many.csv", {"name": np.random.default_rng(1).choice(names, 20_000)})
    unpoison.done(
        *("simulate", "--values", "many.csv", "-c", "name", "-p", "many.json"),
        *("--methods", "emf", "--plot", "new.png"),
    )
    assert Path("new.png").stat().st_size > 0


# Simulations


COVID = ("simulate", "-d", "covid-19", "-n", 30_000, "-e", 1, "--min-epsilon", 0.125, "--seed", 1)
ATTACKS = [
    ("none", 1.0),
    ("targets:45-54 years", 1.0),
    ("targets:45-54 years, 50-64 years,55-64 years", 1.0),
    ("maximal-gain", 1.0),
    ("maximal-gain:3", 1.0),
    ("random", 0.0),
]


@pytest.mark.slow
@pytest.mark.parametrize(("attack", "located"), ATTACKS)
def test_categories_are_simulated_with_every_attack(
    unpoison: Command, attack: str, located: float
) -> None:
    facts = unpoison.done(*COVID, "-a", attack, "--json").json
    assert "truth" not in facts
    assert list(facts["frequencies"]) == list(DEATHS_BY_AGE)
    assert sum(facts["frequencies"].values()) == pytest.approx(1)
    assert facts["floor"] == facts["cramer_rao"] > 0
    methods = [(score["method"], score["collection"]) for score in facts["methods"]]
    assert methods == [
        ("ostrich", "grouped"),
        ("emf", "grouped"),
        ("emf-star", "grouped"),
        ("cemf-star", "grouped"),
        ("joint", "grouped"),
        ("ostrich", "ungrouped"),
    ]
    for line in facts["methods"]:
        assert list(line["frequencies"]) == list(DEATHS_BY_AGE)
        assert sum(line["frequencies"].values()) == pytest.approx(1)
        assert not {"mean", "bias", "wasserstein"} & set(line)
        assert line["mse_over_floor"] == pytest.approx(line["mse"] / facts["floor"])
        if line["method"] == "ostrich":
            assert "located" not in line
            assert line["poisoned"] == "none"
        else:
            assert line["located"] == located or line["method"] == "joint"
            assert line["trials"] == 1
            truth = facts["frequencies"]
            if line["collection"] == "grouped":
                errors = [line["frequencies"][name] - truth[name] for name in truth]
                assert line["mse"] == pytest.approx(np.mean(np.square(errors)))


def test_the_share_of_trials_in_which_targets_are_found(unpoison: Command) -> None:
    """Few attackers among few users are not always found."""
    few = (*COVID[:4], 1000, *COVID[5:], "-a", "maximal-gain", "-g", 0.05, "--trials", 6)
    lines = unpoison.done(*few, "--methods", "emf*", "--json").json["methods"]
    assert lines[0]["trials"] == 6
    assert 0 < lines[0]["located"] < 1
    assert 6 * lines[0]["located"] == pytest.approx(round(6 * lines[0]["located"]))


def test_the_text_of_a_simulation_of_categories(unpoison: Command) -> None:
    arguments = (*COVID, "-a", "targets:75-84 years", "--methods", "emf*,ostrich")
    text = unpoison.done(*arguments).out
    facts = unpoison.done(*arguments, "--json").json
    lines = text.splitlines()
    heads = next(line for line in lines if line.startswith("category"))
    assert heads.split()[:4] == ["category", "truth", "emf-star", "ostrich"]
    for name, truth in facts["frequencies"].items():
        row = next(line for line in lines if line.startswith(name))
        assert f"{100 * truth:.2f} %" in row
        assert f"{100 * facts['methods'][0]['frequencies'][name]:.2f} %" in row
    row = next(line for line in lines if line.startswith("emf-star"))
    assert "75-84 years" in row
    assert "100%" in row
    assert "true mean" not in text
    assert "nan" not in text


def test_nothing_found_is_an_exact_answer_where_nobody_attacks(unpoison: Command) -> None:
    lines = unpoison.done(*COVID, "-a", "none", "--methods", "emf,ostrich").out.splitlines()
    row = next(line for line in lines if line.startswith("emf"))
    assert "100%" in row
    assert "none" in row
    rivals = [line for line in lines if line.startswith("ostrich")]
    assert all("100%" not in line and "–" in line for line in rivals)


@pytest.mark.slow
@pytest.mark.parametrize("suffix", FORMATS)
def test_a_text_column_of_ones_own_is_simulated(unpoison: Command, suffix: str) -> None:
    own = ("simulate", "--values", f"values{suffix}", "-c", "drink", "--seed", 1)
    facts = unpoison.done(*own, "-m", "k-rr", "--json").json
    assert facts["plan"]["categories"] == sorted(DRINKS)
    assert set(facts["frequencies"]) == set(DRINKS)
    assert f"values{suffix}" in facts["source"]
    planned = unpoison.done(*own, "-p", "drinks.json", "--json").json
    assert planned["plan"]["categories"] == list(DRINKS)
    again = unpoison.done(*own, "-p", "drinks.json", "--json").json
    for facts in (planned, again):
        for line in facts["methods"]:
            del line["seconds"]
    assert planned == again


@pytest.mark.slow
def test_simulated_reports_of_categories_are_the_summary(unpoison: Command) -> None:
    unpoison.done(
        *("simulate", "--values", "values.csv", "-c", "drink", "-p", "drinks.json"),
        *("--reports", "new.csv", "--summary", "new.summary", "--seed", 1, "--trials", 2),
    )
    unpoison.done("summarise", "new.csv", "-p", "drinks.json", "-o", "again.summary")
    assert Summary.load("again.summary") == Summary.load("new.summary")


def test_a_baseline_plan_of_categories_is_simulated(unpoison: Command) -> None:
    plan = Plan.new("k-rr", 2.0, min_epsilon=0.5, categories=list(DRINKS), protocol="baseline")
    plan.save("both.json")
    facts = unpoison.done(
        *("simulate", "--values", "values.csv", "-c", "drink", "-p", "both.json", "--json"),
        *("-a", "targets:herbal tea", "-g", "0.4", "--seed", "1"),
    ).json
    methods = [score["method"] for score in facts["methods"]]
    assert methods == ["ostrich", "baseline", "ostrich"]
    assert facts["methods"][1]["located"] == 1


@pytest.mark.slow
def test_a_simulated_distribution_has_its_distance_from_the_truth(unpoison: Command) -> None:
    simulation = ("simulate", "-d", "beta-2-5", "-n", 20_000, "-m", "square-wave", "--seed", 1)
    arguments = (*simulation, "--min-epsilon", 0.25, "--methods", "emf*,ostrich")
    facts = unpoison.done(*arguments, "--statistic", "distribution", "--json").json
    star, ostrich, alone = facts["methods"]
    assert 0 < star["wasserstein"] < ostrich["wasserstein"] < 1
    assert alone["collection"] == "ungrouped"
    assert 0 < alone["wasserstein"] < 1
    for line in facts["methods"]:
        assert not {"located", "frequencies"} & set(line)
        assert line["mse"] == pytest.approx((line["mean"] - facts["truth"]) ** 2, rel=0.5)
    text = unpoison.done(*arguments, "--statistic", "distribution").out
    assert f"{star['wasserstein']:.4g}" in text
    plain = unpoison.done(*arguments, "--json").json
    assert all("wasserstein" not in line for line in plain["methods"])
    assert "wasserstein" not in unpoison.done(*arguments).out
    assert [line["mean"] for line in plain["methods"]] == [
        line["mean"] for line in facts["methods"]
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        ("-d", "covid-19", "-n", 3000, "-e", 16, "--min-epsilon", 8),
        ("-d", "beta-2-5", "-n", 3000, "-e", 16, "--min-epsilon", 8, "-m", "square-wave"),
    ],
)
def test_where_nothing_bounds_the_error_there_is_no_ratio(
    unpoison: Command, arguments: tuple[Any, ...]
) -> None:
    facts = unpoison.done("simulate", *arguments, "--seed", 1, "--json").json
    assert facts["floor"] == 0
    assert all("mse_over_floor" not in line for line in facts["methods"])
    text = unpoison.done("simulate", *arguments, "--seed", 1).out
    assert "–" in text
    assert "nan" not in text


# What is refused


def has(line: str, *words: str) -> None:
    for word in words:
        assert word in line


SIMULATE = ("simulate", "--summary", "old.summary", "--reports", "old.csv")
OWN = (*SIMULATE, "--values", "values.csv", "-c", "drink")
BAD: dict[str, tuple[tuple[Any, ...], tuple[str, ...]]] = {
    "categories twice": (
        ("plan", "-m", "k-rr", "--categories", "tea,milk,tea", "-o", "old.json"),
        ("categories must be different names", "'tea' twice"),
    ),
    "one category": (
        ("plan", "-m", "k-rr", "--categories", "tea", "-o", "old.json"),
        ("categories must be at least 2 names", "received 1"),
    ),
    "no categories": (("plan", "-m", "k-rr", "-o", "old.json"), ("needs categories",)),
    "an empty category": (
        ("plan", "-m", "k-rr", "--categories", "tea,,milk", "-o", "old.json"),
        ("categories must be names",),
    ),
    "categories and a range": (
        ("plan", "-m", "k-rr", "--categories", "tea,milk", "--low", 0, "-o", "old.json"),
        ("low and high", "categories"),
    ),
    "categories of numbers": (
        ("plan", "--categories", "tea,milk", "-o", "old.json"),
        ("categories go with k-rr only",),
    ),
    "a mean of categories": (
        ("estimate", "drinks.summary", "--statistic", "mean", "--plot", "old.png"),
        ("statistic must be frequencies for categories", "received 'mean'"),
    ),
    "a distribution of categories": (
        ("estimate", "drinks.summary", "--statistic", "distribution"),
        ("statistic must be frequencies for categories",),
    ),
    "frequencies of numbers": (
        ("estimate", "hours.summary", "--statistic", "frequencies", "--plot", "old.png"),
        ("statistic must be mean or distribution for numbers", "received 'frequencies'"),
    ),
    "an unknown statistic": (
        ("estimate", "hours.summary", "--statistic", "distributoin"),
        ("did you mean 'distribution'",),
    ),
    "a misspelt post-processing": (
        ("estimate", "drinks.summary", "--post-processing", "norm_sub"),
        ("post_processing", "did you mean 'norm-sub'"),
    ),
    "post-processing of numbers": (
        ("estimate", "hours.summary", "--post-processing", "clip"),
        ("post_processing goes with the frequencies of categories",),
    ),
    "trimmed categories": (
        ("estimate", "drinks.summary", "--method", "trimming"),
        ("must be one that takes categories", "'trimming'"),
    ),
    "a side of categories": (
        ("estimate", "drinks.summary", "--poisoned-side", "left"),
        ("'side'",),
    ),
    "the plan of another kind": (
        ("estimate", "drinks.parquet", "-p", "hours.json"),
        ("drinks.parquet", "row", "value must be in"),
    ),
    "simulated trimming": ((*OWN, "-m", "k-rr", "--methods", "trimming"), ("takes categories",)),
    "an attack on numbers": (
        (*OWN, "-m", "k-rr", "-a", "point:C"),
        ("attack must be one on categories", "maximal-gain", "'point'"),
    ),
    "an attack on categories": (
        (*SIMULATE, "-d", "beta-2-5", "-n", 1000, "-a", "maximal-gain"),
        ("attack must be one on numbers", "'maximal-gain'"),
    ),
    "an unknown target": (
        (*OWN, "-m", "k-rr", "-a", "targets:cofee"),
        ("names must be categories", "did you mean 'coffee'"),
    ),
    "a target twice": ((*OWN, "-m", "k-rr", "-a", "targets:tea,tea"), ("'tea' twice",)),
    "no target": ((*OWN, "-m", "k-rr", "-a", "targets"), ("names must be one category",)),
    "too many targets": (
        (*OWN, "-m", "k-rr", "-a", "maximal-gain:4"),
        ("at most the number of categories, 3", "received 4"),
    ),
    "half a target": ((*OWN, "-m", "k-rr", "-a", "maximal-gain:1.5"), ("whole number",)),
    "a statistic of the other kind": (
        (*OWN, "-m", "k-rr", "--statistic", "mean"),
        ("must be frequencies for categories",),
    ),
    "post-processing of simulated numbers": (
        (*SIMULATE, "-d", "beta-2-5", "-n", 1000, "--post-processing", "none"),
        ("goes with the frequencies of categories",),
    ),
    "names as numbers": (OWN, ("values.csv", "drink")),
    "a dataset of names for a plan of numbers": (
        (*SIMULATE, "-d", "covid-19", "-n", 1000, "-p", "hours.json"),
        ("mechanism must be one for categories", "square-wave"),
    ),
    "a dataset of names with a mechanism for numbers": (
        (*SIMULATE, "-d", "covid-19", "-n", 1000, "-m", "piecewise"),
        ("categories", "piecewise"),
    ),
    "a dataset of numbers for a plan of names": (
        (*SIMULATE, "-d", "beta-2-5", "-n", 1000, "-p", "drinks.json"),
        ("mechanism must be one for numbers", "k-rr"),
    ),
    "a dataset of numbers with a mechanism for names": (
        (*SIMULATE, "-d", "beta-2-5", "-n", 1000, "-m", "k-rr-integer"),
        ("categories",),
    ),
    "a dataset of other names": (
        (*SIMULATE, "-d", "covid-19", "-n", 1000, "-p", "drinks.json"),
        ("values must be categories of the plan",),
    ),
    "values of the other column": (
        (*SIMULATE, "--values", "values.csv", "-c", "hours", "-p", "drinks.json"),
        ("values must be categories of the plan",),
    ),
    "too few users": (
        (*SIMULATE, "-d", "covid-19", "-n", 20),
        ("at least 16 reports",),
    ),
}


@pytest.mark.parametrize("fault", BAD)
def test_what_does_not_fit_is_refused(unpoison: Command, fault: str) -> None:
    arguments, words = BAD[fault]
    has(unpoison.refused(*arguments), *words)
    has(unpoison.refused(*arguments, "--json"), *words)


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("name", ["milk", "Tea", "tea ", ""])
def test_an_unknown_category_in_values_is_placed_but_not_repeated(
    unpoison: Command, suffix: str, name: str
) -> None:
    names = ["tea"] * 20 + [name] + ["coffee"] * 20
    write_table(f"bad{suffix}", {"drink": names})
    line = unpoison.refused(
        *("perturb", f"bad{suffix}", "-c", "drink", "-p", "drinks.json", "-o", f"old{suffix}")
    )
    has(line, f"bad{suffix}", "'drink'", "row 21", "values must be categories of the plan")
    assert "milk" not in line
    line = unpoison.refused(
        *(*SIMULATE, "--values", f"bad{suffix}", "-c", "drink", "-p", "drinks.json")
    )
    has(line, "row 21")


@pytest.mark.parametrize("suffix", FORMATS)
def test_an_empty_name_is_no_category(unpoison: Command, suffix: str) -> None:
    write_table(f"bad{suffix}", {"drink": ["tea", "", "coffee"] * 30})
    arguments = (*SIMULATE, "--values", f"bad{suffix}", "-c", "drink", "-m", "k-rr")
    has(unpoison.refused(*arguments), f"bad{suffix}", "row 2", "names of categories", "nothing")


def test_a_missing_name_is_no_category(unpoison: Command) -> None:
    write_table("bad.parquet", {"drink": ["tea", None, "coffee", "None"] * 30})
    arguments = (*SIMULATE, "--values", "bad.parquet", "-c", "drink", "-m", "k-rr")
    has(unpoison.refused(*arguments), "bad.parquet", "row 2", "nothing")


def test_one_name_is_no_set_of_categories(unpoison: Command) -> None:
    write_table("bad.csv", {"drink": ["tea"] * 90})
    arguments = (*SIMULATE, "--values", "bad.csv", "-c", "drink", "-m", "k-rr")
    has(unpoison.refused(*arguments), "categories must be at least 2 names", "received 1")


@pytest.mark.slow
@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("value", [3, 1000, -1, 0.5, math.inf])
def test_a_report_that_names_no_category_of_the_plan_is_refused(
    unpoison: Command, suffix: str, value: float
) -> None:
    values = [0.0] * 30 + [value] + [1.0] * 30
    write_table(f"bad{suffix}", {"group": [0] * 61, "value": values})
    for arguments in (
        ("summarise", f"bad{suffix}", "-p", "drinks.json", "-o", "old.summary"),
        ("estimate", f"bad{suffix}", "-p", "drinks.json", "--plot", "old.png"),
    ):
        line = unpoison.refused(*arguments)
        has(line, f"bad{suffix}", "row 31", "a whole number in [0, 2] in group 0")
    write_table(f"bad{suffix}", {"group": [0, 1, 2] * 61, "value": values * 3})
    outcome = unpoison.done(
        *("estimate", f"bad{suffix}", "-p", "drinks.json", "--drop-invalid", "--json")
    )
    assert outcome.json["invalid"] == 3


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("value", [-0.001, 24.001, math.nan, math.inf])
def test_values_outside_the_range_of_a_distribution_are_refused(
    unpoison: Command, suffix: str, value: float
) -> None:
    write_table(f"bad{suffix}", {"hours": [1.0, 2.0, value, 3.0]})
    line = unpoison.refused(
        *("perturb", f"bad{suffix}", "-c", "hours", "-p", "hours.json", "-o", f"old{suffix}")
    )
    has(line, "row 3", "values must be numbers in [0, 24]")
    assert "24.001" not in line


def test_summaries_of_other_categories_do_not_mix(unpoison: Command) -> None:
    plan = Plan.new("k-rr", 2.0, min_epsilon=0.5, categories=["tea", "coffee", "milk"])
    Summary.empty(plan).save("other.summary")
    arguments = ("merge", "drinks.summary", "other.summary", "-o", "old.summary")
    has(unpoison.refused(*arguments), "other.summary", "plans are equal")
    has(unpoison.refused("estimate", "other.summary"), "received none")


def test_categories_in_another_order_are_another_plan(unpoison: Command) -> None:
    keys = json.loads(Path("drinks.json").read_text())
    Path("turned.json").write_text(json.dumps({**keys, "categories": list(DRINKS[::-1])}))
    arguments = ("estimate", "drinks.summary", "-p", "turned.json")
    has(unpoison.refused(*arguments), "must be the plan of the summaries")
