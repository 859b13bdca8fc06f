"""Experiments: cells with seeds of their own, a runner that goes on, panels from tidy rows."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.command_line import Command
from support.processes import HAS_PROC, group_members
from support.waiting import HANG_SECONDS, eventually
from unpoison.attacks import parse_attack
from unpoison.cli.reproduce import adjusted_cells
from unpoison.datasets import datasets
from unpoison.errors import InvalidFile
from unpoison.estimate.methods import find_method
from unpoison.experiments import (
    Cell,
    Claim,
    Panel,
    Section,
    draw,
    experiments,
    markdown,
    report,
    run_cells,
)
from unpoison.experiments import runner as runner_module
from unpoison.experiments.many_categories import CategoriesCell
from unpoison.experiments.panel import panel_table
from unpoison.mechanisms import mechanisms
from unpoison.system.cores import usable_cores

SMALL = Cell("beta-2-5", 2000, "piecewise", 0.5, "uniform:C/2,C", 0.25, ("ostrich",), trials=2)
CATEGORIES = Cell(
    "covid-19", 5000, "k-rr", 0.5, "targets:45-54 years", 0.25, ("emf", "ostrich"), trials=1
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


every_experiment = pytest.mark.parametrize("name", list(experiments))


def means(cell: Cell) -> list[tuple[str, float]]:
    return [(row["method"], row["mean"]) for row in cell.run()]


@pytest.mark.slow
def test_a_cell_gives_the_same_rows_every_time() -> None:
    assert means(SMALL) == means(SMALL)


@pytest.mark.slow
def test_more_methods_and_more_trials_leave_the_collections_as_they_are() -> None:
    more = replace(SMALL, methods=("emf", "ostrich"), trials=3)
    of_ostrich = [row for row in means(more) if row[0] == "ostrich"]
    assert of_ostrich[:4] == means(SMALL)


@pytest.mark.parametrize(
    "changed",
    [
        {"dataset": "beta-5-2"},
        {"users": 2001},
        {"mechanism": "square-wave", "attack": "uniform:1+b/2,1+b"},
        {"epsilon": 1.0},
        {"min_epsilon": 0.25},
        {"attack": "point:C"},
        {"gamma": 0.3},
        {"methods": ("emf",)},
        {"trials": 3},
        {"statistic": "distribution"},
        {"fast": True},
    ],
)
def test_every_field_of_a_cell_is_in_its_name(changed: dict[str, object]) -> None:
    assert replace(SMALL, **changed).key != SMALL.key  # type: ignore[arg-type]


@pytest.mark.slow
def test_counts_drawn_directly_are_as_good() -> None:
    as_counts = replace(SMALL, users=20_000, fast=True)
    errors = [abs(row["mean"] - row["truth"]) for row in as_counts.run()]
    single = [abs(row["mean"] - row["truth"]) for row in replace(as_counts, fast=False).run()]
    assert errors == pytest.approx(single, rel=0.2)
    assert errors != single


def test_a_row_says_what_cell_it_is_from() -> None:
    (row, *_) = CATEGORIES.run()
    assert row["dataset"] == "covid-19"
    assert row["groups"] == 4
    assert row["located"] == 1
    left_out = {"methods", "trials", "options"}
    assert {field.name for field in fields(Cell)} - left_out <= set(row)


def test_another_version_does_everything_again(monkeypatch: pytest.MonkeyPatch) -> None:
    before = SMALL.key
    monkeypatch.setattr("unpoison.experiments.cell.__version__", "0.0.0")
    assert SMALL.key != before


@pytest.mark.slow
def test_what_is_done_is_not_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    others = [replace(SMALL, gamma=gamma) for gamma in (0.1, 0.2)]
    first = run_cells([SMALL, others[0]], tmp_path, workers=1)
    ran: list[Cell] = []
    run_and_save = runner_module._run_and_save

    def watched(cell: Cell, folder: Path) -> None:
        ran.append(cell)
        run_and_save(cell, folder)

    monkeypatch.setattr(runner_module, "_run_and_save", watched)
    progress: list[int] = []
    table = run_cells([SMALL, *others], tmp_path, workers=1, advance=progress.append)
    assert ran == [others[1]]
    assert progress == [4, 2]
    assert table.slice(0, first.num_rows).equals(first)


@pytest.mark.slow
def test_a_run_that_was_stopped_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = [SMALL, replace(SMALL, gamma=0.1), replace(SMALL, gamma=0.2)]
    whole = run_cells(cells, tmp_path / "whole", workers=1)

    def stop(self: Cell) -> None:
        raise KeyboardInterrupt

    run = Cell.run
    monkeypatch.setattr(Cell, "run", lambda cell: stop(cell) if cell.gamma == 0.1 else run(cell))
    with pytest.raises(KeyboardInterrupt):
        run_cells(cells, tmp_path / "stopped", workers=1)
    assert len(list((tmp_path / "stopped").iterdir())) == 1
    monkeypatch.undo()
    assert run_cells(cells, tmp_path / "stopped", workers=1).equals(whole)


@pytest.mark.slow
def test_errors_are_on_the_mechanisms_own_domain() -> None:
    natural = replace(SMALL, dataset="taxi").run()
    for row in natural:
        assert row["unit"] > 1000
        error = (row["mean"] - row["truth"]) / row["unit"]
        assert row["squared_error"] == pytest.approx(error**2)
        assert 0 < row["floor"] < 1
    assert {row["unit"] for row in CATEGORIES.run()} == {1.0}


@pytest.mark.slow
def test_an_interrupted_run_leaves_no_process_behind(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "unpoison", "reproduce", "fig-mse", "-o", str(tmp_path)]
    # Whoever tests in the background of a shell has interrupts ignored, and so would the process.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    process = subprocess.Popen(
        command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    eventually(lambda: workers_run(process.pid, tmp_path / "cells"))
    process.send_signal(signal.SIGINT)
    try:
        assert process.wait(HANG_SECONDS) == 130
    finally:
        process.kill()
        process.wait()
    eventually(lambda: not _alive(process.pid))


def workers_run(group: int, cells: Path) -> bool:
    """Whether a run has begun, and has started a worker beside itself and a resource tracker."""
    if usable_cores() == 1 or not HAS_PROC:
        return cells.exists()
    return cells.exists() and len(group_members(group)) >= 3


def _alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.slow
def test_processes_give_what_one_gives(tmp_path: Path) -> None:
    cells = [SMALL, CATEGORIES]
    one = run_cells(cells, tmp_path / "one", workers=1)
    assert run_cells(cells, tmp_path / "two", workers=2).equals(one)


def test_a_file_that_is_no_result_is_named(tmp_path: Path) -> None:
    (tmp_path / f"{SMALL.key}.parquet").write_text("not a table")
    with pytest.raises(InvalidFile, match=r"no result of this experiment"):
        run_cells([SMALL], tmp_path)


ROWS = pa.table(
    {
        "method": ["emf", "emf", "ostrich", "emf"],
        "collection": ["grouped", "grouped", "ungrouped", "grouped"],
        "epsilon": [1.0, 1.0, 1.0, 2.0],
        "gamma": [0.25] * 4,
        "byzantine_fraction": [0.5, 0.0, 0.0, 0.25],
        "side": ["right", "left", "none", "right"],
        "squared_error": [1.0, 3.0, 4.0, 5.0],
        "floor": [0.5, 1.5, 1.0, 2.0],
    }
)


def test_a_panel_averages_over_trials() -> None:
    panel = Panel("MSE", "squared_error", floor=True)
    assert panel.lines(ROWS) == {"emf": {1.0: 2.0, 2.0: 5.0}, "ostrich (ungrouped)": {1.0: 4.0}}
    assert panel.floors(ROWS) == {1.0: 1.0, 2.0: 2.0}
    only = Panel("MSE", "squared_error", where={"epsilon": 2.0})
    assert only.lines(ROWS) == {"emf": {2.0: 5.0}}


def test_only_those_who_estimate_gamma_have_an_error_of_it() -> None:
    assert Panel("γ", "gamma_error").lines(ROWS) == {"emf": {1.0: 0.25, 2.0: 0.0}}


def test_a_table_has_a_row_a_method_and_a_column_a_place() -> None:
    rows = panel_table(Panel("MSE", "squared_error", floor=True), ROWS)
    assert rows == [
        ["MSE", "ε = 1", "ε = 2"],
        ["emf", "2", "5"],
        ["ostrich (ungrouped)", "4", "–"],
        ["floor", "1", "2"],
    ]
    lines = markdown({"|γ̂ − γ|": [["|x|"], ["1"]]}).splitlines()
    assert lines[2] == "| \\|x\\| |"


def test_lines_and_places_may_be_of_any_column() -> None:
    panel = Panel("MSE", "squared_error", against="method", by="epsilon", labels={"emf": "EMF"})
    assert panel_table(panel, ROWS)[0] == ["MSE", "EMF", "ostrich"]
    assert panel.lines(ROWS)["2.0"] == {"emf": 5.0}
    either = Panel("MSE", "squared_error", where={"method": ("emf", "ostrich")})
    assert either.rows(ROWS).num_rows == ROWS.num_rows


def test_a_method_without_the_parameter_counts_at_every_place() -> None:
    methods = ["k-means:rate=0.1", "k-means:rate=0.5,subsets=9", "emf"]
    columns = {"method": methods, "squared_error": [1.0, 2.0, 3.0], "floor": [0.5] * 3}
    rows = ROWS.slice(0, 3).drop_columns(["method", "squared_error", "floor"])
    for name, values in columns.items():
        rows = rows.append_column(name, pa.array(values))
    panel = Panel("MSE", "squared_error", {"epsilon": 1.0}, against="rate", by="scheme")
    lines = panel.lines(rows)
    assert lines["emf (ungrouped)"] == {0.1: 3.0, 0.5: 3.0}
    assert lines["k-means"] == {0.1: 1.0, 0.5: 2.0}
    assert panel.floors(rows) == {0.1: 0.5, 0.5: 0.5}


@pytest.mark.slow
def test_a_figure_draws_every_line_and_the_floor() -> None:
    figure = draw("title", [Panel("MSE", "squared_error", floor=True)] * 5, ROWS)
    assert len(figure.axes) == 5
    assert [line.get_label() for line in figure.axes[0].lines] == [
        "emf",
        "ostrich (ungrouped)",
        "floor",
    ]


@every_experiment
@pytest.mark.parametrize("quick", [True, False])
def test_an_experiment_is_made_of_what_there_is(name: str, quick: bool) -> None:
    experiment = experiments[name]()
    cells = experiment.cells(quick)
    assert len({cell.key for cell in cells}) == len(cells)
    for cell in cells:
        # Categories by Zipf's law are drawn by the cell itself: there are as many as it says.
        assert cell.dataset in datasets or isinstance(cell, CategoriesCell)
        assert cell.mechanism in mechanisms
        assert [find_method(method).name for method in cell.methods] == list(cell.methods)
        parse_attack(cell.attack)
    assert experiment.title
    titles = [panel.title for panel in experiment.panels(quick)]
    assert len(set(titles)) == len(titles)
    assert titles or not cells


@every_experiment
def test_quick_is_less_work(name: str) -> None:
    def work(quick: bool) -> int:
        return sum(cell.users * cell.trials for cell in experiments[name]().cells(quick))

    assert work(quick=True) <= work(quick=False) / 10


def test_a_report_shows_claims_pictures_and_tables() -> None:
    claims = [Claim("1 < 2", True, "always"), Claim("2 < 1", False, "<never>")]
    section = Section("table-x", "Table X", b"png", {"Panel": [["MSE"], ["1"]]}, claims)
    page = report([section], "unpoison reproduce table-x")
    assert "unpoison reproduce table-x" in page
    assert "1 &lt; 2" in page
    assert page.count(">confirmed<") == page.count(">not confirmed<") == 1
    assert "&lt;never&gt;" in page
    assert "data:image/png;base64,cG5n" in page
    assert "<th>MSE</th>" in page
    assert "http" not in page


def test_a_report_keeps_the_papers_claims_and_our_aims_apart() -> None:
    claims = [Claim("1 < 2", True, "always")]
    theirs = Section("table-x", "Table X", b"png", {}, claims)
    ours = Section("mine", "Mine", b"png", {}, claims, of_the_paper=False)
    page = report([theirs, ours], "unpoison reproduce table-x mine")
    first, second = page.index("<h2>What the paper says</h2>"), page.index("What it is to reach")
    assert first < page.index('href="#table-x"') < second < page.index('href="#mine"')
    assert page.count("<th>the aim</th>") == 1
    assert "What it is to reach" not in report([theirs], "unpoison reproduce table-x")


def test_cells_that_draw_counts_directly_do_so_without_being_told() -> None:
    slow, fast = experiments["fig-mse"]().cells(True)[0], experiments["joint"]().cells(True)[0]
    assert [cell.fast for cell in adjusted_cells([slow, fast], False, None)] == [False, True]
    assert [cell.fast for cell in adjusted_cells([slow, fast], True, 3)] == [True, True]
    assert [cell.trials for cell in adjusted_cells([slow, fast], True, 3)] == [3, 3]


@pytest.mark.slow
def test_reproduce_writes_rows_tables_and_a_picture(
    unpoison: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = [replace(cell, users=5000) for cell in experiments["fig-frequency"]().cells(True)]
    monkeypatch.setattr(experiments["fig-frequency"], "cells", lambda self, quick: small)
    options = ("--trials", "1", "--fast", "--workers", "1", "-o", "out")
    command = ("reproduce", "fig-frequency", *options)
    written = unpoison.done(*command, "--json")
    paths = written.json["fig-frequency"]
    assert "<h2" in Path(written.json["report"]).read_text()
    rows = pq.read_table(paths["parquet"])
    assert set(rows["trial"].to_pylist()) == {0}
    tables = Path(paths["md"]).read_text()
    assert "| emf-star |" in tables
    assert "| Ostrich significantly underperforms our schemes |" in tables
    assert Path(paths["png"]).stat().st_size > 10_000
    assert set(rows["fast"].to_pylist()) == {True}
    again = unpoison.done(*command)
    assert "emf-star" in again.out
    assert "report.html" in again.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("fig-swe",), "did you mean 'fig-sw'"),
        (("fig-sw", "--trials", "0"), "--trials must be at least 1"),
        (("fig-sw", "--workers", "0"), "--workers must be at least 1"),
    ],
)
def test_reproduce_refuses_what_it_cannot_do(
    unpoison: Command, arguments: tuple[str, ...], said: str
) -> None:
    assert said in unpoison.refused("reproduce", *arguments)
    assert not Path("results").exists()
