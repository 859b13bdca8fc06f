"""The command line from values to estimate, on both file formats."""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
import typer

from support.command_line import FORMATS, Command, contents, write_table
from unpoison import Plan, Summary, __version__, estimate, summarise
from unpoison.cli import run
from unpoison.cli.app import app
from unpoison.cli.help_names import fill_names

COMMANDS: dict[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]
USERS = 6000
PATH = ("plan", "perturb", "summarise", "merge", "estimate", "simulate")


def read_table(path: Path) -> dict[str, np.ndarray]:
    read = pq.read_table if path.suffix == ".parquet" else pacsv.read_csv
    table = read(path)
    return {name: np.array(table[name].to_pylist()) for name in table.column_names}


pytestmark = pytest.mark.usefixtures("few_replicates")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with the values of some users and a plan."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    rng = np.random.default_rng(1)
    seconds = rng.beta(2, 5, USERS) * 86_400
    names = [f"{user:05d}" for user in range(USERS)]
    for suffix in FORMATS:
        write_table(Path(f"values{suffix}"), {"who": names, "seconds": seconds})
    plan = Plan.new(epsilon=2.0, min_epsilon=0.5, low=0, high=86_400)
    Path("plan.json").write_text(plan.to_json(), encoding="utf-8")
    return tmp_path


def make_reports(unpoison: Command, name: str, seed: int = 1) -> Path:
    unpoison.done(
        *("perturb", "values.csv", "-c", "seconds", "-p", "plan.json"),
        *("-o", name, "--seed", seed),
    )
    return Path(name)


@pytest.mark.slow
@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("mechanism", ["piecewise", "square-wave", "piecewise-integer"])
def test_the_whole_path(unpoison: Command, suffix: str, mechanism: str) -> None:
    unpoison.done(
        *("plan", "-m", mechanism, "-e", "2", "--min-epsilon", "1/2"),
        *("--low", "0", "--high", "86400", "-o", "new.json"),
    )
    for day in ("monday", "tuesday"):
        values, reports = f"values{suffix}", f"{day}{suffix}"
        unpoison.done("perturb", values, "-c", "seconds", "-p", "new.json", "-o", reports)
        unpoison.done("summarise", reports, "-p", "new.json", "-o", f"{day}.summary")
    unpoison.done("merge", "monday.summary", "tuesday.summary", "-o", "week.summary")
    answer = unpoison.done("estimate", "week.summary", "--json").json
    together = unpoison.done(
        "estimate", f"monday{suffix}", f"tuesday{suffix}", "-p", "new.json", "--json"
    )
    assert together.json == answer
    assert answer["users"] == 2 * USERS
    assert answer["mean"] == estimate(Summary.load("week.summary")).mean


@pytest.mark.slow
def test_csv_and_parquet_say_the_same(unpoison: Command) -> None:
    answers = []
    for suffix in FORMATS:
        unpoison.done(
            *("perturb", f"values{suffix}", "-c", "seconds", "-p", "plan.json"),
            *("-o", f"reports{suffix}", "--seed", 5),
        )
        outcome = unpoison.done("estimate", f"reports{suffix}", "-p", "plan.json", "--json")
        answers.append(outcome.out)
    assert answers[0] == answers[1]


@pytest.mark.parametrize("method", ["emf", "emf-star", "cemf-star", "emf*", "cemf*"])
def test_estimate_json_is_the_contract(unpoison: Command, method: str) -> None:
    reports = make_reports(unpoison, "reports.parquet")
    answer = unpoison.done(
        "estimate", reports, "--plan", "plan.json", "--method", method, "--json"
    ).json
    assert answer.keys() >= {
        *("mean", "interval", "byzantine", "groups", "fit", "converged", "verdict"),
    }
    assert 0 <= answer["mean"] <= 86_400
    assert answer["interval"] is None or answer["interval"] == sorted(answer["interval"])
    assert answer["byzantine"]["side"] in ("left", "right", "both", "none")
    assert 0 <= answer["byzantine"]["fraction"] <= 1
    histogram = answer["byzantine"]["histogram"]
    assert len(histogram["edges"]) == len(histogram["fractions"]) + 1
    assert histogram["edges"] == sorted(histogram["edges"])
    assert [group["epsilon"] for group in answer["groups"]] == [2.0, 1.0, 0.5]
    assert [group["reports"] for group in answer["groups"]] == [2000, 4000, 8000]
    assert sum(group["weight"] for group in answer["groups"]) == pytest.approx(1)
    combined = sum(group["weight"] * group["mean"] for group in answer["groups"])
    assert combined == pytest.approx(answer["mean"])
    assert all(0 <= group["byzantine_fraction"] <= 1 for group in answer["groups"])
    assert answer["converged"] is True
    assert len(answer["verdict"].split()) > 5


def test_a_baseline_plan_is_estimated_by_the_baseline(unpoison: Command) -> None:
    unpoison.done(
        *("plan", "--protocol", "baseline", "-e", "2", "--min-epsilon", "0.5"),
        *("--low", "0", "--high", "86400", "-o", "plan.json"),
    )
    reports = make_reports(unpoison, "reports.csv")
    answer = unpoison.done("estimate", reports, "-p", "plan.json", "--json").json
    assert answer["method"] == "baseline"
    assert answer["users"] == USERS
    assert [group["reports"] for group in answer["groups"]] == [USERS, USERS]


@pytest.mark.slow
def test_text_says_what_json_says(unpoison: Command) -> None:
    reports = make_reports(unpoison, "reports.parquet")
    answer = unpoison.done("estimate", reports, "-p", "plan.json", "--json").json
    text = unpoison.done("estimate", reports, "-p", "plan.json").out
    assert f"mean      {answer['mean']:,.0f}" in text
    assert answer["verdict"] in text
    assert f"users     {USERS:,}, reports {answer['reports']:,}" in text
    assert "left out" not in text
    for group in answer["groups"]:
        assert re.search(rf"^{group['group']} .* {group['reports']:,} ", text, re.MULTILINE)


def test_the_unit_of_a_plan_is_printed_with_values(unpoison: Command) -> None:
    made = ("plan", "-e", 2, "--min-epsilon", 0.5, "--low", 0, "--high", 86_400, "--unit", "s")
    assert "values in [0, 86400] s" in unpoison.done(*made, "-o", "plan.json").out
    reports = make_reports(unpoison, "reports.parquet")
    text = unpoison.done("estimate", reports, "-p", "plan.json").out
    assert re.search(r"^mean      [\d,]+ s   95 %: [\d,]+ to [\d,]+ s ", text, re.MULTILINE)


@pytest.mark.parametrize("method", ["ostrich", "trimming"])
def test_rivals_have_the_same_shape(unpoison: Command, method: str) -> None:
    reports = make_reports(unpoison, "reports.parquet")
    arguments = ("estimate", reports, "-p", "plan.json", "--method", method)
    answer = unpoison.done(*arguments, "--json").json
    assert (answer["byzantine"]["side"], answer["interval"]) == ("none", None)
    assert answer["verdict"] in unpoison.done(*arguments).out


def test_reports_may_be_files_a_folder_or_a_glob(unpoison: Command) -> None:
    Path("deep/er").mkdir(parents=True)
    make_reports(unpoison, "deep/one.parquet", seed=1)
    make_reports(unpoison, "deep/er/two.csv", seed=2)
    make_reports(unpoison, "deep/er/three.parquet", seed=3)
    named = ("deep/one.parquet", "deep/er/two.csv", "deep/er/three.parquet")
    ways = [named, ("deep",), ("deep/**/*",), ("deep/*.parquet", "deep/er"), ("deep", *named)]
    for index, way in enumerate(ways):
        unpoison.done("summarise", *way, "-p", "plan.json", "-o", f"{index}.summary")
    summaries = [Path(f"{index}.summary").read_bytes() for index in range(len(ways))]
    assert len(set(summaries)) == 1
    assert Summary.load("0.summary").total_users == 3 * USERS


def test_a_file_that_is_named_twice_counts_once(unpoison: Command, folder: Path) -> None:
    reports = make_reports(unpoison, "reports.parquet")
    arguments = (reports, reports.resolve(), "./reports.parquet", "-p", "plan.json")
    unpoison.done("summarise", *arguments, "-o", "a.summary")
    assert Summary.load("a.summary").total_users == USERS
    unpoison.done("merge", "a.summary", folder / "a.summary", "-o", "b.summary")
    assert Summary.load("b.summary") == Summary.load("a.summary")


def test_merge_adds_and_takes_a_folder(unpoison: Command) -> None:
    Path("days").mkdir()
    for day in range(3):
        reports = make_reports(unpoison, "reports.parquet", seed=day)
        unpoison.done("summarise", reports, "-p", "plan.json", "-o", f"days/{day}.summary")
    facts = unpoison.done("merge", "days", "-o", "all.summary", "--json").json
    assert facts["users"] == 3 * USERS
    assert facts["reports"] == [6000, 12_000, 24_000]
    days = [Summary.load(f"days/{day}.summary") for day in range(3)]
    assert Summary.load("all.summary") == days[2] + days[0] + days[1]
    unpoison.done("merge", "days/2.summary", "days/0.summary", "days/1.summary", "-o", "b.summary")
    assert Path("b.summary").read_bytes() == Path("all.summary").read_bytes()


@pytest.mark.parametrize("suffix", FORMATS)
def test_perturb_writes_what_the_plan_says(unpoison: Command, suffix: str) -> None:
    arguments = (f"values{suffix}", "-c", "seconds", "--user-column", "who", "-p", "plan.json")
    facts = unpoison.done("perturb", *arguments, "-o", f"reports{suffix}", "--json").json
    plan = Plan.load("plan.json")
    assert facts == {"users": USERS, "reports": 14_000, "output": f"reports{suffix}"}
    if suffix == ".csv":
        assert Path("reports.csv").read_text().splitlines()[1].startswith('"00000",')
        return
    reports = read_table(Path("reports.parquet"))
    assert list(dict.fromkeys(reports["user"].tolist())) == [f"{u:05d}" for u in range(USERS)]
    for user in range(0, USERS, 97):
        mine = reports["group"][reports["user"] == f"{user:05d}"]
        assert len(set(mine.tolist())) == 1
        assert len(mine) == plan.groups[mine[0]].reports
    ends = np.array([mechanism.output_high for mechanism in plan.group_mechanisms])
    assert (np.abs(reports["value"]) <= ends[reports["group"]]).all()


@pytest.mark.parametrize("suffix", FORMATS)
def test_categories_travel_as_whole_numbers(unpoison: Command, suffix: str) -> None:
    ages = ["0-17", "18-64", "65 and over", "NA"]
    column = [ages[index] for index in np.random.default_rng(1).integers(0, 4, 500)]
    write_table(Path(f"ages{suffix}"), {"age": column})
    unpoison.done(
        *("plan", "-m", "k-rr", "-e", "2", "--min-epsilon", "1"),
        *("--categories", "0-17, 18-64, 65 and over, NA", "-o", "ages.json"),
    )
    assert Plan.load("ages.json").categories == tuple(ages)
    unpoison.done("perturb", f"ages{suffix}", "-c", "age", "-p", "ages.json", "-o", f"r{suffix}")
    reports = read_table(Path(f"r{suffix}"))
    assert reports["value"].dtype.kind == "i"
    assert set(reports["value"].tolist()) == {0, 1, 2, 3}
    unpoison.done("summarise", f"r{suffix}", "-p", "ages.json", "-o", "ages.summary")
    assert Summary.load("ages.summary").total_users == 500


def test_personal_budgets_choose_the_tier(unpoison: Command) -> None:
    budgets = np.tile([0.5, 0.75, 2.0, 3.0], 100)
    write_table(Path("tiers.csv"), {"x": np.linspace(0, 1, 400), "budget": budgets})
    unpoison.done(
        *("plan", "-e", "2", "--min-epsilon", "0.5", "--low", "0", "--high", "1"),
        *("--tier", "0.5", "--tier", "1/4", "-o", "tiers.json"),
    )
    unpoison.done(
        *("perturb", "tiers.csv", "-c", "x", "--budget-column", "budget", "-p", "tiers.json"),
        *("-o", "r.parquet", "--user-column", "budget"),
    )
    reports, plan = read_table(Path("r.parquet")), Plan.load("tiers.json")
    small = {"0.5", "0.75"}
    for budget, group in zip(reports["user"], reports["group"], strict=True):
        assert (group in plan.tier_groups(1)) == (budget in small)


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_seed_repeats_perturb_exactly(unpoison: Command, suffix: str) -> None:
    made = {}
    for name, seed in {"a": ["7"], "b": ["7"], "c": ["8"], "d": [], "e": []}.items():
        options = [] if not seed else ["--seed", *seed]
        path = Path(name + suffix)
        common = ("perturb", "values.csv", "-c", "seconds", "-p", "plan.json", "-o", path)
        unpoison.done(*common, *options)
        made[name] = path.read_bytes()
    assert made["a"] == made["b"]
    assert len(set(made.values())) == 4


def untimed(scores: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**score, "seconds": None} for score in scores]


@pytest.mark.slow
def test_a_seed_repeats_simulate_exactly(unpoison: Command) -> None:
    answers, written = [], []
    for name, seed in (("a", 3), ("b", 3), ("c", 4)):
        outcome = unpoison.done(
            *("simulate", "-d", "beta-2-5", "-n", "4000", "-e", "1", "--min-epsilon", "0.5"),
            *("--trials", 2, "--seed", seed, "--json"),
            *("--reports", f"{name}.csv", "--summary", f"{name}.summary"),
        )
        facts = outcome.json
        answers.append({**facts, "methods": untimed(facts["methods"])})
        written.append((Path(f"{name}.csv").read_bytes(), Path(f"{name}.summary").read_bytes()))
    assert answers[0] == answers[1] != answers[2]
    assert written[0] == written[1]
    assert written[0][0] != written[2][0]


@pytest.mark.slow
@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("mechanism", ["piecewise", "square-wave-integer"])
def test_simulated_reports_and_summary_are_one_collection(
    unpoison: Command, suffix: str, mechanism: str
) -> None:
    unpoison.done(
        *("simulate", "-d", "beta-5-2", "-n", "3000", "-e", "1", "--min-epsilon", "0.5"),
        *("-m", mechanism, "-a", "uniform:O,R" if "square" in mechanism else "point:C"),
        *("--methods", "emf", "--trials", 3, "--reports", f"r{suffix}", "--summary", "s.summary"),
    )
    written = Summary.load("s.summary")
    assert summarise(f"r{suffix}", written.plan) == written
    assert written.total_users == 3000


@pytest.mark.slow
def test_simulated_reports_of_broken_clients_are_the_summary(unpoison: Command) -> None:
    unpoison.done(
        *("simulate", "-d", "beta-5-2", "-n", "3000", "-e", "1", "--min-epsilon", "0.5"),
        *("--fault", "dropout", "--faulty-fraction", "0.5", "--methods", "ostrich"),
        *("--trials", 2, "--reports", "r.csv", "--summary", "s.summary"),
    )
    written = Summary.load("s.summary")
    assert summarise("r.csv", written.plan) == written
    assert written.users[0] == 1500 > 1.1 * written.users[1]


@pytest.mark.slow
def test_simulate_json_is_the_contract(unpoison: Command) -> None:
    facts = unpoison.done(
        *("simulate", "-n", "5000", "-e", "1", "--min-epsilon", "0.25", "--trials", 3, "--json"),
    ).json
    assert facts.keys() == {"truth", "floor", "cramer_rao", "source", "plan", "methods"}
    assert 0 < facts["truth"] < 86_400
    assert facts["floor"] > facts["cramer_rao"] > 0
    assert Plan.from_dict(facts["plan"]).to_dict() == facts["plan"]
    names = [(score["method"], score["collection"]) for score in facts["methods"]]
    assert names == [
        *(("ostrich", "grouped"), ("trimming", "grouped"), ("emf", "grouped")),
        *(("emf-star", "grouped"), ("cemf-star", "grouped"), ("joint", "grouped")),
        *(("ostrich", "ungrouped"), ("trimming", "ungrouped")),
    ]
    for score in facts["methods"]:
        assert score["trials"] == 3
        if score["collection"] == "grouped":
            assert score["bias"] == pytest.approx(score["mean"] - facts["truth"])
        assert score["mse_over_floor"] * facts["floor"] >= score["bias"] ** 2 * (1 - 1e-9)


@pytest.mark.slow
def test_simulate_on_a_plan_and_on_values_of_ones_own(unpoison: Command) -> None:
    Path("base.json").write_text(
        Plan.new(protocol="baseline", low=0, high=86_400, min_epsilon=0.25).to_json()
    )
    own = ("--values", "values.parquet", "-c", "seconds", "-a", "none", "-g", "0")
    facts = unpoison.done("simulate", *own, "-p", "base.json", "--plot", "p.svg", "--json").json
    values = read_table(Path("values.parquet"))["seconds"]
    assert facts["truth"] == pytest.approx(values.mean())
    assert [score["method"] for score in facts["methods"]] == [
        *("ostrich", "trimming", "baseline", "ostrich", "trimming"),
    ]
    table = unpoison.done("simulate", *own, "--methods", "emf-star").out
    assert "emf-star" in table
    assert "ungrouped" not in table


PICTURES = {".png": b"\x89PNG\r\n", ".svg": b"<?xml", ".pdf": b"%PDF-", ".PNG": b"\x89PNG\r\n"}


@pytest.mark.slow
@pytest.mark.parametrize("suffix", PICTURES)
def test_plot_writes_a_picture(unpoison: Command, suffix: str) -> None:
    reports = make_reports(unpoison, "reports.parquet")
    before = contents(Path.cwd())
    plain = unpoison.done("estimate", reports, "-p", "plan.json")
    with_plot = unpoison.done("estimate", reports, "-p", "plan.json", "--plot", f"fit{suffix}")
    assert with_plot.out == plain.out
    assert contents(Path.cwd()).keys() - before.keys() == {f"fit{suffix}"}
    assert Path(f"fit{suffix}").read_bytes().startswith(PICTURES[suffix])


@pytest.mark.slow
def test_options_reach_the_estimator(unpoison: Command) -> None:
    reports = make_reports(unpoison, "reports.parquet")
    common = ("estimate", reports, "-p", "plan.json", "--json")
    summary = summarise("reports.parquet", Plan.load("plan.json"))
    choices: list[tuple[list[str], dict[str, Any]]] = [
        ([], {"method": "joint"}),
        (["--attackers-at-most", "1/4"], {"attackers_at_most": 0.25}),
        (["--method", "emf", "--weights", "paper"], {"method": "emf", "weights": "paper"}),
        (
            ["--method", "emf", "--side-rule", "likelihood"],
            {"method": "emf", "side_rule": "likelihood"},
        ),
        (
            ["--method", "emf", "--initial-mean", "20000"],
            {"method": "emf", "initial_mean": 20_000.0},
        ),
        (
            ["--method", "emf", "--initial-mean", "pessimistic", "--gamma-sup", "1/4"],
            {"method": "emf", "initial_mean": "pessimistic", "gamma_sup": 0.25},
        ),
        (
            ["--method", "cemf-star", "--suppression", "2"],
            {"method": "cemf-star", "suppression": 2.0},
        ),
        (
            ["--method", "trimming", "--poisoned-side", "left"],
            {"method": "trimming", "side": "left"},
        ),
    ]
    for flags, options in choices:
        answer = unpoison.done(*common, *flags).json
        assert answer == json.loads(estimate(summary, **options).to_json()), flags


def test_a_bound_on_iterations_is_a_warning_not_a_failure(unpoison: Command) -> None:
    reports = make_reports(unpoison, "reports.parquet")
    command = ("estimate", reports, "-p", "plan.json", "--method", "emf-star", "--json")
    outcome = unpoison(*command, "--max-iterations", "2")
    assert outcome.code == 0
    assert outcome.json["converged"] is False
    lines = outcome.err.splitlines()
    assert lines
    assert all(re.fullmatch(r"unpoison: warning: .* 2 iterations .*", line) for line in lines)


def test_plan_shows_expands_and_round_trips(unpoison: Command) -> None:
    short = '{"mechanism": "piecewise", "epsilon": 1.5, "low": 0, "high": 86400}'
    Path("short.json").write_text(short)
    shown = unpoison.done("plan", "-p", "short.json").out
    assert "0.1875" in shown.split()
    full = unpoison.done("plan", "-p", "short.json", "-o", "full.json", "--json").out
    assert Path("full.json").read_text() == full
    assert Plan.load("full.json") == Plan.load("short.json")
    again = unpoison.done("plan", "-p", "full.json", "--json").out
    assert again == full


@pytest.mark.slow
def test_a_byte_order_mark_and_windows_line_ends_do_not_matter(unpoison: Command) -> None:
    reports = make_reports(unpoison, "reports.csv")
    text = reports.read_text().replace('"', "").replace("\n", "\r\n")
    Path("windows.CSV").write_bytes(b"\xef\xbb\xbf" + text.encode())
    answers = [
        unpoison.done("estimate", name, "-p", "plan.json", "--json").out
        for name in ("reports.csv", "windows.CSV")
    ]
    assert answers[0] == answers[1]


@pytest.mark.parametrize("command", list(COMMANDS))
def test_help_names_every_option_and_shows_an_example(unpoison: Command, command: str) -> None:
    shown = unpoison.done(command, "--help").out
    assert unpoison.done(command, "-h").out == shown
    assert f"Example: unpoison {command} " in shown
    for parameter in COMMANDS[command].params:
        assert parameter.help, parameter.name
        for name in (*parameter.opts, *parameter.secondary_opts):
            assert name in shown
        assert fill_names(parameter.help).split()[0] in shown


def test_help_lists_every_command(unpoison: Command) -> None:
    shown = unpoison.done("--help").out
    assert unpoison.done().out == shown
    assert set(PATH) <= COMMANDS.keys()
    assert all(re.search(rf"\b{command}\b", shown) for command in COMMANDS)
    assert "Placeholder" not in shown


@pytest.mark.slow
@pytest.mark.parametrize("command", PATH)
def test_the_example_in_help_runs(unpoison: Command, command: str) -> None:
    """In a folder that has the files that the examples name."""
    Path("reports").mkdir()
    make_reports(unpoison, "reports/one.parquet")
    for day in ("monday", "tuesday"):
        unpoison.done("summarise", "reports", "-p", "plan.json", "-o", f"{day}.summary")
    docstring = COMMANDS[command].help
    example = shlex.split(docstring.partition("Example: ")[2].partition("\n\n")[0])
    assert example[:2] == ["unpoison", command]
    unpoison.done(*example[1:], *(["-n", "2000"] if command == "simulate" else []))


def test_version(unpoison: Command) -> None:
    assert unpoison.done("--version").out == f"unpoison {__version__}\n"


def as_process(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "unpoison", *(str(word) for word in arguments)]
    return subprocess.run(words, capture_output=True, text=True, check=False, **options)


@pytest.mark.slow
def test_as_a_process(unpoison: Command) -> None:
    reports = make_reports(unpoison, "reports.parquet")
    arguments = ("estimate", reports, "-p", "plan.json", "--method", "emf", "--json")
    noisy = {**os.environ, "FORCE_COLOR": "1", "PYTHONIOENCODING": "ascii"}
    done = as_process(*arguments, env=noisy)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == unpoison.done(*arguments).out
    plan = as_process("plan", "-p", "plan.json", env=noisy)
    assert (plan.returncode, plan.stderr) == (0, "")
    before = contents(Path.cwd())
    bad = as_process("perturb", "values.csv", "-c", "nothing", "-p", "plan.json", "-o", "r.csv")
    assert (bad.returncode, bad.stdout) == (2, "")
    assert re.fullmatch(r"unpoison: values\.csv: .*'nothing'.*\n", bad.stderr)
    assert contents(Path.cwd()) == before


UNFLUSHED = """
import sys, typer
from unpoison.cli import main
typer.echo = sys.stdout.write
main(sys.argv[1:])
"""


@pytest.mark.slow
@pytest.mark.parametrize("start", [["-m", "unpoison"], ["-c", UNFLUSHED]], ids=["at once", "late"])
def test_a_reader_who_leaves_early_is_no_fault(start: list[str]) -> None:
    """Both if the pipe breaks at the first line, and if it does when the last one is flushed."""
    words = [sys.executable, *start, "plan", "-p", "plan.json"]
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        words, stdout=writing, stderr=subprocess.PIPE, text=True, check=False, env=buffered
    )
    os.close(writing)
    assert done.stderr == ""
    assert done.returncode in (0, 1)


STOPPED = """
import os, signal, sys
from unpoison.cli import main
from unpoison.reports import Reporter
Reporter.report = lambda *_: os.kill(os.getpid(), signal.SIGTERM)
main(sys.argv[1:])
"""


@pytest.mark.slow
def test_nothing_is_left_by_a_process_that_is_stopped() -> None:
    before = contents(Path.cwd())
    arguments = ("perturb", "values.csv", "-c", "seconds", "-p", "plan.json", "-o", "r.csv")
    done = subprocess.run([sys.executable, "-c", STOPPED, *arguments], check=False)
    assert done.returncode == 128 + signal.SIGTERM
    assert contents(Path.cwd()) == before


class Terminal(io.StringIO):
    """Standard error that is a terminal."""

    def isatty(self) -> bool:
        return True


PERTURB = ("perturb", "values.csv", "-c", "seconds", "-p", "plan.json", "-o", "r.parquet")
SIMULATE = ("simulate", "-n", "2000", "-e", "1", "--min-epsilon", "0.5")
BARS = {
    PERTURB: ["Perturbing"],
    ("summarise", "reports.csv", "-p", "plan.json", "-o", "new.summary"): ["Counting"],
    ("estimate", "reports.csv", "-p", "plan.json"): ["Counting", "Estimating"],
    ("estimate", "a.summary"): ["Merging", "Estimating"],
    ("merge", "a.summary", "-o", "new.summary"): ["Merging"],
    (*SIMULATE, "--reports", "r.csv", "--plot", "p.png"): ["Simulating", "Writing", "Drawing"],
    (*SIMULATE, "--methods", "emf"): ["Simulating"],
    ("simulate", "--values", "values.csv", "-c", "seconds"): ["Reading", "Simulating"],
}


@pytest.mark.slow
@pytest.mark.parametrize(("arguments", "labels"), BARS.items(), ids=lambda words: words[0])
def test_a_bar_on_a_terminal_and_nowhere_else(
    unpoison: Command,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    labels: list[str],
) -> None:
    reports = make_reports(unpoison, "reports.csv")
    unpoison.done("summarise", reports, "-p", "plan.json", "-o", "a.summary")
    monkeypatch.setenv("FORCE_COLOR", "1")
    unpoison.done(*arguments)
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    assert run(arguments) == 0
    for label in labels:
        assert label in terminal.getvalue()


@pytest.mark.slow
def test_a_bar_reaches_its_end(unpoison: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    make_reports(unpoison, "reports.csv")
    for arguments in BARS:
        if arguments[0] in ("perturb", "simulate"):
            terminal = Terminal()
            monkeypatch.setattr(sys, "stderr", terminal)
            monkeypatch.setenv("TERM", "xterm")
            assert run(arguments) == 0
            assert "100%" in terminal.getvalue()
