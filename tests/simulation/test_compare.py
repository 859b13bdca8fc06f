"""All methods side by side, the oracle, and defences with parameters in their names."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from support.command_line import Command
from unpoison import Plan, estimate, simulate
from unpoison.defences import Trimming, defences
from unpoison.errors import InvalidParameter
from unpoison.estimate.methods import estimates, find_method
from unpoison.protocols import SCHEMES
from unpoison.simulation import Simulation, oracle_estimate, run_trials, score
from unpoison.simulation.population import Population

RUN = ("--users", "20000", "--epsilon", "0.5", "--min-epsilon", "0.25", "--seed", "1", "--fast")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def poisoned(fraction: float = 0.3) -> Simulation:
    plan = Plan.new(epsilon=1.0, min_epsilon=0.5, low=0, high=1)
    values = Population.of(np.random.default_rng(1).beta(2, 5, 50_000))
    return simulate(plan, values, "point:C", fraction, np.random.default_rng(2))


def test_the_oracle_estimates_from_honest_reports_alone() -> None:
    run = poisoned()
    assert run.honest_summary is not None
    honest = 1 - run.byzantine_fraction
    assert run.honest_summary.reports.sum() == pytest.approx(
        honest * run.summary.reports.sum(), rel=0.01
    )
    answer = oracle_estimate(run)
    assert answer.method == "oracle"
    assert abs(answer.mean - run.truth) < 6 * run.floor**0.5
    assert abs(estimate(run.summary, method="ostrich").mean - run.truth) > 60 * run.floor**0.5


def test_the_oracle_of_categories_has_frequencies() -> None:
    plan = Plan.new("k-rr", 1.0, min_epsilon=0.5, categories=["a", "b", "c"])
    population = Population(np.array(["a", "b", "c"]), np.array([50_000, 30_000, 20_000]))
    run = simulate(plan, population, "targets:c", 0.3, np.random.default_rng(1))
    frequencies = oracle_estimate(run).frequencies
    assert frequencies is not None
    assert frequencies["a"] == pytest.approx(0.5, abs=0.03)


@pytest.mark.slow
@pytest.mark.usefixtures("no_cramer_rao")
def test_the_oracle_reaches_the_floor() -> None:
    plan = Plan.new(epsilon=1.0, min_epsilon=0.5, low=0, high=1)
    values = Population.of(np.random.default_rng(1).beta(2, 5, 20_000))
    rng = np.random.default_rng(3)
    rows, _ = run_trials(plan, values, "point:C", 0.3, ["oracle"], trials=100, rng=rng)
    (line,) = score(rows)
    assert 0.6 < line.mse_over_floor < 1.6


def test_methods_give_the_same_together_and_one_by_one() -> None:
    plan = Plan.new(epsilon=1.0, min_epsilon=0.5, low=0, high=1)
    values = np.random.default_rng(1).beta(2, 5, 5000)
    names = ["emf", "oracle", "emf-star", "ostrich"]
    both = [
        run_trials(
            plan, values, "point:C", 0.3, names, rng=np.random.default_rng(1), shared=shared
        )[0]
        for shared in (True, False)
    ]
    together, alone = ([(row.method, row.collection, row.mean) for row in rows] for rows in both)
    assert [row[:2] for row in together] == [row[:2] for row in alone]
    assert [row[2] for row in together] == pytest.approx([row[2] for row in alone])


def test_a_defence_may_have_parameters_in_its_name() -> None:
    summary = poisoned().summary
    assert find_method("trimming:side=left,share=0.25").defence == Trimming("left", 0.25)  # type: ignore[attr-defined]
    name = find_method("trimming: side=left, share=0.25").name
    answers = estimates(summary, [name, "trimming"])
    assert answers[name].mean == estimate(summary, method="trimming", side="left", share=0.25).mean
    assert answers[name].mean != answers["trimming"].mean
    assert estimate(summary, method=name).mean == answers[name].mean


@pytest.mark.parametrize(
    ("method", "said"),
    [
        ("trimming:shore=0.5", "trimming takes side, share"),
        ("trimming:share=much", "share must be a number"),
        ("trimming:share=0.5,share=0.5", "each once"),
        ("trimming:share", "each once"),
        ("ostrich:share=1", "no parameters"),
        ("emf:share=1", "takes no parameters"),
        ("trimmin:share=1", "did you mean 'trimming'"),
    ],
)
def test_wrong_parameters_are_refused(method: str, said: str) -> None:
    with pytest.raises(InvalidParameter, match=said):
        find_method(method)


@pytest.mark.slow
def test_compare_runs_everything_that_fits(unpoison: Command) -> None:
    facts = unpoison.done("simulate", "--compare", *RUN, "--plot", "all.png", "--json").json
    grouped = [line["method"] for line in facts["methods"] if line["collection"] == "grouped"]
    available = [name for name in defences if defences[name].available()]
    assert grouped == ["oracle", "joint", *SCHEMES, *available]
    assert Path("all.png").stat().st_size > 5000
    errors = {line["method"]: line["mse_over_floor"] for line in facts["methods"]}
    assert errors["oracle"] < errors["ostrich"]


@pytest.mark.slow
def test_compare_of_categories_leaves_out_what_needs_numbers(unpoison: Command) -> None:
    facts = unpoison.done("simulate", "--compare", "-d", "covid-19", *RUN, "--json").json
    names = {line["method"] for line in facts["methods"]}
    assert names == {"oracle", "ostrich", "joint", *SCHEMES}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--compare", "--methods", "emf"), "--compare cannot go with --methods"),
        (("--fast", "--reports", "r.parquet"), "--fast cannot go with --reports"),
    ],
)
def test_what_cannot_go_together_is_refused(
    unpoison: Command, arguments: tuple[str, ...], said: str
) -> None:
    assert said in unpoison.refused("simulate", *arguments)
