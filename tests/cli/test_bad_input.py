"""Bad input to every command: one line on stderr, exit code 2, no partial output."""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.command_line import FORMATS, Command, contents, write_table
from unpoison import Plan, Summary, perturb, summarise
from unpoison.cli import run
from unpoison.reports import Reporter
from unpoison.reports import reading as reading_module

USERS = 300
SHORT = {"mechanism": "piecewise", "epsilon": 1.0, "min_epsilon": 0.25, "low": 0, "high": 100}


pytestmark = pytest.mark.usefixtures("few_replicates")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one good file of each kind, and an old file where output will go."""
    monkeypatch.chdir(tmp_path)
    plan = Plan.from_dict(SHORT)
    Path("plan.json").write_text(json.dumps(SHORT))
    values = np.random.default_rng(1).uniform(0, 100, USERS)
    reports = perturb(values, plan, np.random.default_rng(2))
    columns = {"group": reports.group, "value": reports.value}
    for suffix in FORMATS:
        write_table(f"values{suffix}", {"x": values})
        write_table(f"reports{suffix}", columns)
        Path(f"old{suffix}").write_text("an old file")
    Path("good.summary").write_bytes(summarise(reports, plan).to_bytes())
    Path("old.summary").write_text("an old file")
    Path("old.json").write_text("an old file")
    return tmp_path


def good_reports() -> tuple[list[Any], list[Any]]:
    table = pq.read_table("reports.parquet")
    return table["group"].to_pylist(), table["value"].to_pylist()


def has(line: str, *words: str) -> None:
    for word in words:
        assert word in line


# Plans


GOOD_GROUP = {"epsilon": 1.0, "reports": 1, "share": 1.0}
BAD_PLANS: dict[str, tuple[Any, tuple[str, ...]]] = {
    "zero epsilon": ({**SHORT, "epsilon": 0}, ("epsilon", "received 0")),
    "negative epsilon": ({**SHORT, "epsilon": -1}, ("epsilon", "received -1")),
    "text epsilon": ({**SHORT, "epsilon": "1"}, ("epsilon must be", "received '1'")),
    "true epsilon": ({**SHORT, "epsilon": True}, ("epsilon must be", "received True")),
    "NaN epsilon": ({**SHORT, "epsilon": float("nan")}, ("epsilon must be", "received nan")),
    "infinite epsilon": ({**SHORT, "epsilon": float("inf")}, ("epsilon must be", "received inf")),
    "huge epsilon": ({**SHORT, "epsilon": 10**400}, ("epsilon must be",)),
    "min above epsilon": ({**SHORT, "min_epsilon": 2}, ("min_epsilon", "epsilon 1", "received 2")),
    "zero min_epsilon": ({**SHORT, "min_epsilon": 0}, ("min_epsilon", "received 0")),
    "low above high": ({**SHORT, "low": 200}, ("low", "high", "200")),
    "infinite high": ({**SHORT, "high": float("inf")}, ("high must be", "received inf")),
    "no high": ({"mechanism": "piecewise", "epsilon": 1, "low": 0}, ("high",)),
    "unknown key": ({**SHORT, "epsilom": 1}, ("'epsilom'", "did you mean 'epsilon'")),
    "no mechanism": ({"epsilon": 1, "low": 0, "high": 1}, ("mechanism",)),
    "unknown mechanism": ({**SHORT, "mechanism": "picewise"}, ("did you mean 'piecewise'",)),
    "unknown protocol": ({**SHORT, "protocol": "dop"}, ("protocol", "did you mean 'dap'")),
    "no groups": ({**SHORT, "groups": []}, ("groups", "received []")),
    "strange groups": ({**SHORT, "groups": [3]}, ("groups", "received 3")),
    "a group too dear": (
        {**SHORT, "min_epsilon": 1.0, "groups": [{**GOOD_GROUP, "reports": 2}]},
        ("groups", "epsilon 1"),
    ),
    "shares too many": (
        {**SHORT, "min_epsilon": 1.0, "groups": [{**GOOD_GROUP, "share": 0.5}]},
        ("shares", "0.5"),
    ),
    "unknown group key": (
        {**SHORT, "groups": [{**GOOD_GROUP, "shear": 1}]},
        ("'shear'", "did you mean 'share'"),
    ),
    "categories with piecewise": ({**SHORT, "categories": ["a", "b"]}, ("categories",)),
    "a list": ([1, 2], ("JSON object", "list")),
    "a string": ("plan", ("JSON object", "str")),
    "null": (None, ("JSON object", "None")),
}
BAD_TEXTS: dict[str, bytes] = {
    "not JSON": b"mechanism: piecewise",
    "truncated": b'{"mechanism": "piecewise", "epsi',
    "empty": b"",
    "binary": bytes(range(256)),
    "deeply nested": b"[" * 100_000,
}


def with_plan(path: str) -> Iterator[tuple[str, ...]]:
    """Every command that takes a plan, on otherwise good input."""
    yield ("plan", "-p", path, "-o", "old.json")
    yield ("perturb", "values.csv", "-c", "x", "-p", path, "-o", "old.csv")
    yield ("summarise", "reports.csv", "-p", path, "-o", "old.summary")
    yield ("estimate", "reports.csv", "-p", path, "--plot", "new.png")
    yield ("estimate", "good.summary", "-p", path)
    yield ("simulate", "-n", "1000", "-p", path, "--summary", "old.summary")


@pytest.mark.parametrize("fault", BAD_PLANS)
def test_bad_plan(unpoison: Command, fault: str) -> None:
    keys, words = BAD_PLANS[fault]
    Path("bad.json").write_text(json.dumps(keys))
    for arguments in with_plan("bad.json"):
        has(unpoison.refused(*arguments), "bad.json: ", *words)


@pytest.mark.parametrize("fault", BAD_TEXTS)
def test_a_plan_that_is_no_json(unpoison: Command, fault: str) -> None:
    Path("bad.json").write_bytes(BAD_TEXTS[fault])
    for arguments in with_plan("bad.json"):
        has(unpoison.refused(*arguments), "bad.json: ", "plan")


def test_a_plan_that_is_not_there(unpoison: Command) -> None:
    for path in ("no.json", "no/where.json", "."):
        for arguments in with_plan(path):
            has(unpoison.refused(*arguments), f"{path}: ")


# Options


NEW_PLAN = ("plan", "--low", "0", "--high", "1", "-o", "old.json")
PERTURB = ("perturb", "values.csv", "-c", "x", "-p", "plan.json", "-o", "old.csv")
SUMMARISE = ("summarise", "reports.csv", "-p", "plan.json", "-o", "old.summary")
ESTIMATE = ("estimate", "reports.csv", "-p", "plan.json", "--plot", "new.png")
MERGE = ("merge", "good.summary", "-o", "old.summary")
SIMULATE = ("simulate", "-n", "500", "--reports", "old.csv", "--summary", "old.summary")
STAR = ("--method", "emf-star")
BAD_OPTIONS: list[tuple[tuple[str, ...], tuple[str, ...]]] = [
    (("plna",), ("plna", "did you mean 'plan'")),
    (("plan", "--hihg", "1"), ("--hihg", "--high")),
    (("estimate",), ("data",)),
    (("merge", "-o", "old.summary"), ("summaries",)),
    ((*NEW_PLAN, "-e", "0"), ("epsilon must be in [0.0001, 16]", "received 0")),
    ((*NEW_PLAN, "-e", "-1"), ("epsilon", "received -1")),
    ((*NEW_PLAN, "-e", "nan"), ("--epsilon", "number", "received 'nan'")),
    ((*NEW_PLAN, "-e", "1e400"), ("--epsilon", "number", "received '1e400'")),
    ((*NEW_PLAN, "-e", "1e999999999"), ("--epsilon", "number", "received '1e999999999'")),
    ((*NEW_PLAN, "-e", "1/0"), ("--epsilon", "number", "received '1/0'")),
    ((*NEW_PLAN, "-e", "one"), ("--epsilon", "number", "received 'one'")),
    ((*NEW_PLAN, "-e", "1", "--min-epsilon", "2"), ("min_epsilon", "at most", "received 2")),
    ((*NEW_PLAN, "--min-epsilon", "1/2/3"), ("--min-epsilon", "received '1/2/3'")),
    ((*NEW_PLAN, "--tier", "0.5", "--tier", "x"), ("--tier", "number", "received 'x'")),
    ((*NEW_PLAN, "--tier", "7"), ("tiers", "received 7")),
    ((*NEW_PLAN, "-m", "piecewize"), ("did you mean 'piecewise'",)),
    ((*NEW_PLAN, "-m", "k-rr", "--categories", "a"), ("low and high", "k-rr")),
    ((*NEW_PLAN, "--protocol", "basline"), ("did you mean 'baseline'",)),
    (("plan", "-m", "k-rr", "--categories", "a,,b"), ("categories", "empty")),
    (("plan", "-m", "k-rr", "--categories", "a, a"), ("categories", "'a' twice")),
    (("plan", "-o", "old.json"), ("low and high",)),
    (("plan", "--low", "5", "--high", "5"), ("low must be below high", "5")),
    (("plan", "--low", "x", "--high", "5"), ("--low", "received 'x'")),
    (("plan", "-p", "plan.json", "--low", "5"), ("--plan", "--low")),
    (("plan", "-p", "plan.json", "--tier", "0.5"), ("--plan", "--tier")),
    (("perturb", "values.csv", "-c", "x", "-o", "old.csv"), ("--plan",)),
    (("perturb", "values.csv", "-p", "plan.json", "-o", "old.csv"), ("--column",)),
    (("perturb", "values.csv", "-c", "x", "-p", "plan.json"), ("--output",)),
    ((*PERTURB, "--seed", "-1"), ("--seed", "negative", "received -1")),
    ((*PERTURB, "--seed", "1.5"), ("--seed", "whole", "received '1.5'")),
    ((*PERTURB, "--user-column", "x"), ("--user-column", "must not", "received x")),
    ((*PERTURB, "--user-column", "y"), ("values.csv", "no column 'y'", "'x'")),
    ((*PERTURB, "--budget-column", "x"), ("--budget-column", "must not", "received x")),
    (("perturb", "none.csv", *PERTURB[2:]), ("none.csv: does not exist",)),
    (("perturb", ".", *PERTURB[2:]), ("is a folder",)),
    (("summarise", "reports.csv", "-o", "old.summary"), ("--plan",)),
    (("summarise", "none/*.csv", *SUMMARISE[2:]), ("none/*.csv: does not exist",)),
    (("estimate", "reports.csv"), ("--plan", "must be given", "received nothing")),
    ((*ESTIMATE, "--method", "enf"), ("method", "one of", "did you mean 'emf'")),
    ((*ESTIMATE, "--method", "baseline"), ("method", "baseline", "dap")),
    ((*ESTIMATE, "--method", "ostrich"), ("plot", "received ostrich")),
    ((*ESTIMATE, "--method", "ostrich", "--weights", "paper"), ("ostrich", "'weights'")),
    ((*ESTIMATE, "--poisoned-side", "left"), ("joint", "'side'")),
    ((*ESTIMATE, "--weights", "paper"), ("joint", "'weights'")),
    ((*ESTIMATE, "--attackers-at-most", "1.5"), ("attackers_at_most", "[0, 1/2]", "received 1.5")),
    ((*ESTIMATE, "--method", "trimming", "--poisoned-side", "lfet"), ("did you mean 'left'",)),
    ((*ESTIMATE, *STAR, "--weights", "papr"), ("weights", "did you mean 'paper'")),
    ((*ESTIMATE, *STAR, "--side-rule", "varience"), ("side_rule", "did you mean 'variance'")),
    ((*ESTIMATE, "--initial-mean", "pesimistic"), ("--initial-mean", "'pesimistic'")),
    ((*ESTIMATE, "--initial-mean", "nan"), ("--initial-mean", "'nan'")),
    ((*ESTIMATE, *STAR, "--initial-mean", "101"), ("initial_mean", "[0, 100]", "received 101")),
    ((*ESTIMATE, *STAR, "--gamma-sup", "0"), ("gamma_sup", "(0, 1/2]", "received 0")),
    ((*ESTIMATE, *STAR, "--gamma-sup", "-0.1"), ("gamma_sup", "(0, 1/2]", "received -0.1")),
    ((*ESTIMATE, *STAR, "--gamma-sup", "0.51"), ("gamma_sup", "(0, 1/2]", "received 0.51")),
    ((*ESTIMATE, *STAR, "--gamma-sup", "nan"), ("--gamma-sup", "received 'nan'")),
    ((*ESTIMATE, *STAR, "--suppression", "-1"), ("suppression", "received -1")),
    ((*ESTIMATE, "--max-iterations", "0"), ("max_iterations", "at least 1", "received 0")),
    ((*ESTIMATE, "--max-iterations", "many"), ("--max-iterations", "whole", "'many'")),
    ((*SIMULATE, "--trials", "0"), ("--trials", "at least 1", "received 0")),
    ((*SIMULATE, "--trials", "x"), ("--trials", "whole number", "received 'x'")),
    ((*SIMULATE, "-n", "-5"), ("--users", "at least 1", "received -5")),
    ((*SIMULATE, "-n", "2"), ("values", "at least one a group", "received 2")),
    ((*SIMULATE, "-n", "1.5"), ("--users", "whole number", "received '1.5'")),
    ((*SIMULATE, "-g", "0.6"), ("byzantine_fraction", "1/2", "received 0.6")),
    ((*SIMULATE, "-g", "-0.1"), ("byzantine_fraction", "received -0.1")),
    ((*SIMULATE, "-g", "half"), ("--byzantine-fraction", "received 'half'")),
    ((*SIMULATE, "-a", "some-groups:9;point:C"), ("groups must be from 0 to 3", "received 9")),
    ((*SIMULATE, "--fault", "runding"), ("fault", "did you mean 'rounding'")),
    ((*SIMULATE, "--faulty-fraction", "0.5"), ("--faulty-fraction", "--fault")),
    (
        (*SIMULATE, "--fault", "rounding", "--faulty-fraction", "2"),
        ("faulty_fraction must be in [0, 1]", "received 2"),
    ),
    ((*SIMULATE, "-d", "taxis"), ("dataset", "did you mean 'taxi'")),
    ((*SIMULATE, "-a", "unifrom:0,C"), ("attack", "did you mean 'uniform'")),
    ((*SIMULATE, "-a", "point:2C"), ("output domain", "'2C'")),
    ((*SIMULATE, "-a", "point:X"), ("'X'",)),
    ((*SIMULATE, "-a", "uniform:C,0"), ("attack range", "C, 0")),
    ((*SIMULATE, "-a", "none:3"), ("none", "'3'")),
    ((*SIMULATE, "-a", "evasion:2"), ("share", "[0, 1]", "received 2")),
    ((*SIMULATE, "--methods", "emf,enf"), ("method", "did you mean 'emf'")),
    ((*SIMULATE, "--methods", "baseline"), ("method", "baseline", "dap")),
    ((*SIMULATE, "--methods", " , "), ("--methods", "at least one")),
    ((*SIMULATE, "-e", "0"), ("epsilon", "received 0")),
    ((*SIMULATE, "-e", "1", "--min-epsilon", "2"), ("min_epsilon", "received 2")),
    ((*SIMULATE, "-p", "plan.json", "-e", "1"), ("--plan", "--epsilon")),
    ((*SIMULATE, "-p", "plan.json"), ("row", "[0, 100]", "above high", "TLC")),
    ((*SIMULATE, "--seed", "-3"), ("--seed", "negative")),
    ((*SIMULATE, "-c", "x"), ("--values", "--column")),
    (("simulate", "--values", "values.csv"), ("--column", "--values")),
    (("simulate", "--values", "values.csv", "-c", "y"), ("values.csv", "no column 'y'")),
    (("simulate", "--values", "values.csv", "-c", "x", "-n", "5"), ("--values", "--users")),
    (("simulate", "--values", "values.csv", "-c", "x", "-d", "taxi"), ("--values", "--dataset")),
    (("simulate", "--values", "no.csv", "-c", "x"), ("no.csv: does not exist",)),
    (("simulate", "--values", ".", "-c", "x"), ("is a folder",)),
    ((*SIMULATE, "--plot", "old.csv"), ("--plot", ".png", "received old.csv")),
    (
        ("simulate", "--reports", "a.csv", "--summary", "./a.csv"),
        ("outputs", "different", "a.csv"),
    ),
]


@pytest.mark.parametrize(
    ("arguments", "words"), BAD_OPTIONS, ids=lambda words: " ".join(words[-3:])
)
def test_bad_options(unpoison: Command, arguments: tuple[str, ...], words: tuple[str, ...]) -> None:
    line = unpoison.refused(*arguments)
    has(line.lower(), *(word.lower() for word in words))
    assert "received None" not in line


def test_a_method_must_fit_the_protocol(unpoison: Command) -> None:
    plan = Plan.from_dict({**SHORT, "protocol": "baseline"})
    Path("plan.json").write_text(plan.to_json())
    write_table("reports.csv", {"group": [0, 1] * 50, "value": [0.5] * 100})
    for method in ("emf", "emf-star", "cemf-star"):
        line = unpoison.refused(*ESTIMATE, "--method", method)
        has(line, "method must be baseline", "baseline plan", "received")


# Where outputs go


OUTPUTS = [
    (("plan", "--low", "0", "--high", "1", "-o"), "{}.json"),
    (PERTURB[:-1], "{}.parquet"),
    (SUMMARISE[:-1], "{}.summary"),
    (MERGE[:-1], "{}.summary"),
    (ESTIMATE[:-1], "{}.png"),
    (("simulate", "-n", "1000", "--reports"), "{}.csv"),
    (("simulate", "-n", "1000", "--summary"), "{}.summary"),
    (("simulate", "-n", "1000", "--plot"), "{}.svg"),
]


@pytest.mark.parametrize(("command", "name"), OUTPUTS, ids=lambda words: words[0])
def test_outputs_must_be_files_in_folders_that_exist(
    unpoison: Command, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], name: str
) -> None:
    option = "--output" if command[-1] == "-o" else command[-1]
    nowhere, taken = name.format("nowhere/out"), name.format("taken")
    Path(taken).mkdir()
    has(unpoison.refused(*command, nowhere), option, "folder that exists", nowhere)
    has(unpoison.refused(*command, taken), option, "not a folder", taken)
    has(unpoison.refused(*command, f"plan.json/{taken}"), option, "folder that exists")
    Path(name.format("null")).symlink_to("/dev/null")
    has(unpoison.refused(*command, name.format("null")), option, "not a device")
    monkeypatch.setattr("os.access", lambda _, mode: mode != os.W_OK)
    has(unpoison.refused(*command, name.format("new")), option, "written to")


@pytest.mark.parametrize("ending", ["", ".txt", ".parquet.gz", ".feather"])
def test_reports_must_end_as_a_format_that_is_known(unpoison: Command, ending: str) -> None:
    name = f"new{ending}"
    has(unpoison.refused(*PERTURB[:-1], name), "--output", ".parquet or .csv", f"received {name}")
    line = unpoison.refused("simulate", "--reports", name)
    has(line, "--reports", ".parquet or .csv", f"received {name}")
    line = unpoison.refused(*ESTIMATE[:-1], name)
    has(line, "--plot", ".png", ".svg", ".pdf", f"received {name}")


def test_outputs_must_not_be_inputs(unpoison: Command) -> None:
    Path("link.csv").symlink_to("values.csv")
    for name in ("values.csv", Path("values.csv").resolve(), "link.csv"):
        has(unpoison.refused(*PERTURB[:-1], name), "--output", "must not", str(name))
    has(unpoison.refused(*SUMMARISE[:-1], "reports.csv"), "--output", "must not", "reports.csv")


# Reports


TEXT: dict[str, tuple[Any, Any]] = {
    "text value": ("0", "abc"),
    "text group": ("first", "0.5"),
    "octal value": ("0", "0x1p3"),
    "comma value": ("0", "0,5"),
    "control characters": ("0", "\x1b[2Jgone"),
}
NUMBERS: dict[str, tuple[Any, Any]] = {
    "NaN value": (0, float("nan")),
    "infinite value": (1, float("inf")),
    "minus infinity": (2, float("-inf")),
    "value outside": (0, 4.5),
    "value far outside": (2, -1e300),
    "unknown group": (3, 0.5),
    "negative group": (-1, 0.5),
    "half a group": (0.5, 0.5),
    "NaN group": (float("nan"), 0.5),
    "infinite group": (float("inf"), 0.5),
    "missing value": (0, None),
    "missing group": (None, 0.5),
}
BAD_REPORTS = [(suffix, fault) for suffix in FORMATS for fault in NUMBERS]
BAD_REPORTS += [(".csv", fault) for fault in TEXT]


def write_reports(path: str, group: list[Any], value: list[Any]) -> None:
    """Reports, of which some may be text in a CSV file."""
    if path.endswith(".csv"):
        cells = zip(group, value, strict=True)
        rows = ["group,value", *(f"{_cell(g)},{_cell(v)}" for g, v in cells)]
        Path(path).write_text("\n".join(rows) + "\n")
        return
    kind = pa.int32() if all(isinstance(number, int | None) for number in group) else pa.float64()
    columns = {"group": pa.array(group, kind), "value": pa.array(value, pa.float64())}
    pq.write_table(pa.table(columns), path, row_group_size=100)


def _cell(cell: Any) -> str:
    text = "" if cell is None else str(cell)
    return f'"{text}"' if "," in text else text


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading_module, "BATCH_ROWS", 64)
    monkeypatch.setattr(reading_module, "BLOCK_BYTES", 1024)
    command = importlib.import_module("unpoison.cli.perturb")
    monkeypatch.setattr(command, "REPORTS_AT_ONCE", 40)


@pytest.mark.parametrize(("suffix", "fault"), BAD_REPORTS)
@pytest.mark.parametrize("row", [1, 65, 700])
@pytest.mark.usefixtures("small_batches")
def test_an_invalid_report_is_placed(unpoison: Command, suffix: str, fault: str, row: int) -> None:
    bad_group, bad_value = (NUMBERS | TEXT)[fault]
    group, value = good_reports()
    assert len(group) == 700
    group[row - 1], value[row - 1] = bad_group, bad_value
    path = f"bad{suffix}"
    write_reports(path, group, value)
    for arguments in (("summarise", path, *SUMMARISE[2:]), ("estimate", path, *ESTIMATE[2:])):
        line = unpoison.refused(*arguments)
        has(line, f"{path}: row {row}: ", "group" if "group" in fault else "value", "received")
        assert line.isprintable() or line[:-1].isprintable()


@pytest.mark.slow
@pytest.mark.parametrize(("suffix", "fault"), BAD_REPORTS)
@pytest.mark.usefixtures("small_batches")
def test_drop_invalid_is_as_if_the_rows_were_not_there(
    unpoison: Command, suffix: str, fault: str
) -> None:
    group, value = good_reports()
    bad_group, bad_value = (NUMBERS | TEXT)[fault]
    rows = [0, 1, 300, 699]
    for row in rows:
        group[row], value[row] = bad_group, bad_value
    path = f"bad{suffix}"
    write_reports(path, group, value)
    valid_rows = [row for row in range(700) if row not in rows]
    write_reports(
        f"valid{suffix}", [group[row] for row in valid_rows], [value[row] for row in valid_rows]
    )
    common = ("-p", "plan.json")
    # EMF answers in a fraction of the default method's time, and rows are dropped before either.
    method = ("--method", "emf")
    dropped = unpoison.done("estimate", path, *common, *method, "--drop-invalid", "--json").json
    clean = unpoison.done("estimate", f"valid{suffix}", *common, *method, "--json").json
    assert dropped.pop("invalid") == 4
    assert clean.pop("invalid") == 0
    assert dropped == clean
    text = unpoison.done("estimate", path, *common, *method, "--drop-invalid").out
    assert "4 invalid reports" in text
    counted = ("summarise", path, *common, "--drop-invalid", "-o", "new.summary")
    assert unpoison.done(*counted, "--json").json["invalid"] == 4
    assert "4 invalid reports" in unpoison.done(*counted).out
    from_summary = unpoison.done("estimate", "new.summary", *method, "--json").json
    assert from_summary.pop("invalid") == 4
    assert from_summary == clean


@pytest.mark.slow
def test_dropped_reports_add_up_over_files(unpoison: Command) -> None:
    group, value = good_reports()
    for name in ("one.csv", "two.parquet"):
        write_reports(name, [*group, 9], [*value, 0.0])
        part = ("-p", "plan.json", "--drop-invalid", "-o", f"{name}.summary")
        unpoison.done("summarise", name, *part)
    unpoison.done("merge", "one.csv.summary", "two.parquet.summary", "-o", "all.summary")
    merged = unpoison.done("estimate", "all.summary", "--json").json
    both = ("estimate", "one.csv", "two.parquet", "-p", "plan.json", "--drop-invalid", "--json")
    assert merged["invalid"] == 2
    assert unpoison.done(*both).json == merged


@pytest.mark.slow
def test_cells_of_an_integer_mechanism_are_whole_and_in_range(unpoison: Command) -> None:
    plan = Plan.new("piecewise-integer", epsilon=1.0, min_epsilon=1.0, low=0, high=1)
    Path("plan.json").write_text(plan.to_json())
    cells = list(range(0, plan.cells, 7))
    for value in (plan.cells, -1, 0.5):
        write_reports("bad.csv", [0] * (len(cells) + 1), [*cells, value])
        line = unpoison.refused("estimate", "bad.csv", "-p", "plan.json")
        has(line, f"row {len(cells) + 1}", "whole number", str(plan.cells - 1), f"value {value}")
    write_reports("good.csv", [0] * len(cells), cells)
    unpoison.done("estimate", "good.csv", "-p", "plan.json")


@pytest.mark.parametrize("suffix", FORMATS)
def test_too_few_reports(unpoison: Command, suffix: str) -> None:
    group, value = good_reports()
    write_reports(f"none{suffix}", [], [])
    outside_group_1 = [row for row, number in enumerate(group) if number != 1]
    write_reports(
        f"two{suffix}",
        [group[row] for row in outside_group_1],
        [value[row] for row in outside_group_1],
    )
    few = [group.index(number) for number in (0, 1, 2)]
    write_reports(f"few{suffix}", [group[row] for row in few], [value[row] for row in few])
    expected = {
        "none": ("needs reports", "received none"),
        "two": ("at least 16 reports", "received 0 in the group of epsilon 0.5"),
        "few": ("at least 16 reports", "received 1 in the group of epsilon"),
    }
    for name, words in expected.items():
        has(unpoison.refused("estimate", f"{name}{suffix}", *ESTIMATE[2:], *STAR), *words)
        unpoison.done("summarise", f"{name}{suffix}", "-p", "plan.json", "-o", "s.summary")
        has(unpoison.refused("estimate", "s.summary", *STAR), *words)
    for name in ("none", "few"):
        words = expected[name] if name == "none" else ("at least 16 reports", "none has them")
        has(unpoison.refused("estimate", f"{name}{suffix}", *ESTIMATE[2:]), *words)
    line = unpoison.refused("estimate", f"none{suffix}", "-p", "plan.json", "--method", "ostrich")
    has(line, "at least one report", "received none")


# Values: a message must never repeat one


SECRET = 98765
SECRETS: dict[str, list[Any]] = {
    "above": [50.0, float(SECRET)],
    "below": [50.0, -float(SECRET)],
    "whole number": [50, SECRET],
    "too large for a float": [50, SECRET * 10**13 + 1, None],
    "text": ["50", f"{SECRET}abc"],
    "mixed": ["50", f"{SECRET}"],
}


@pytest.mark.slow
@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("fault", SECRETS)
@pytest.mark.parametrize("rows_before", [0, 500])
@pytest.mark.usefixtures("small_batches")
def test_perturb_never_repeats_a_value(
    unpoison: Command, suffix: str, fault: str, rows_before: int
) -> None:
    cells = SECRETS[fault]
    write_table(f"bad{suffix}", {"x": cells[:1] * rows_before + cells})
    for output in ("old.csv", "old.parquet", "new.parquet"):
        line = unpoison.refused("perturb", f"bad{suffix}", *PERTURB[2:-1], output)
        has(line, f"bad{suffix}", "'x'", "numbers")
        assert str(SECRET) not in line
        if suffix == ".csv" or fault not in ("text", "mixed"):
            has(line, f"row {rows_before + 2}:", "[0, 100]")


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (float("nan"), "not a number"),
        (float("inf"), "an infinity"),
        (float("-inf"), "an infinity"),
        (None, "not a number"),
        (100.00001, "a value above high"),
        (-1e-9, "a value below low"),
    ],
)
def test_perturb_says_what_is_wrong_with_a_value(
    unpoison: Command, suffix: str, value: Any, kind: str
) -> None:
    write_table(f"bad{suffix}", {"x": [0.0, 100.0, 3.5, value]})
    line = unpoison.refused("perturb", f"bad{suffix}", *PERTURB[2:])
    has(line, f"bad{suffix}, column 'x': row 4: ", "[0, 100]", f"received {kind}")


def test_a_row_with_too_many_cells_is_placed_and_not_repeated(unpoison: Command) -> None:
    Path("bad.csv").write_text(f"x,y\n1,2\n{SECRET},4,5\n")
    line = unpoison.refused("perturb", "bad.csv", *PERTURB[2:])
    has(line, "bad.csv: row 2: ", "2 columns", "received 3")
    assert str(SECRET) not in line


def test_a_first_row_that_is_no_header_is_not_repeated(unpoison: Command) -> None:
    Path("bad.csv").write_text(f"{SECRET},ann\n50,bob\n")
    line = unpoison.refused("perturb", "bad.csv", *PERTURB[2:])
    has(line, "bad.csv: has no column 'x'", "header")
    assert str(SECRET) not in line


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("value", ["secret", "", None, "None"])
def test_unknown_categories_are_not_repeated(
    unpoison: Command, suffix: str, value: str | None
) -> None:
    plan = Plan.new("k-rr", epsilon=1.0, min_epsilon=1.0, categories=["yes", "no", "null"])
    Path("plan.json").write_text(plan.to_json())
    write_table(f"bad{suffix}", {"x": pa.array(["yes", "no", value], pa.string())})
    line = unpoison.refused("perturb", f"bad{suffix}", *PERTURB[2:])
    has(line, "row 3: ", "categories")
    assert "secret" not in line


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_missing_category_is_not_the_category_none(unpoison: Command, suffix: str) -> None:
    plan = Plan.new("k-rr", epsilon=1.0, min_epsilon=1.0, categories=["None", "nan", "some"])
    Path("plan.json").write_text(plan.to_json())
    write_table(f"bad{suffix}", {"x": pa.array(["some", "None", None], pa.string())})
    has(unpoison.refused("perturb", f"bad{suffix}", *PERTURB[2:]), "row 3: ", "categories")


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("budget", [0.3, float("nan"), None])
def test_budgets_below_every_tier(unpoison: Command, suffix: str, budget: float | None) -> None:
    plan = Plan.from_dict({**SHORT, "tiers": [{"epsilon": 0.5}]})
    Path("plan.json").write_text(plan.to_json())
    write_table(f"bad{suffix}", {"x": [1.0, 2.0], "budget": [1.0, budget]})
    arguments = ("perturb", f"bad{suffix}", *PERTURB[2:], "--budget-column", "budget")
    line = unpoison.refused(*arguments)
    has(line, f"bad{suffix}, column 'budget': row 2: ", "budgets", "0.5", "received")
    assert "0.3" not in line


@pytest.mark.parametrize("suffix", FORMATS)
def test_values_to_simulate_with_must_be_finite(unpoison: Command, suffix: str) -> None:
    for value in (float("nan"), float("inf"), None):
        write_table(f"bad{suffix}", {"x": [1.0, 2.0, value]})
        line = unpoison.refused("simulate", "--values", f"bad{suffix}", "-c", "x")
        has(line, f"bad{suffix}", "row 3", "finite")
    write_table(f"same{suffix}", {"x": [7.0] * 100})
    has(unpoison.refused("simulate", "--values", f"same{suffix}", "-c", "x"), "low", "high")


# Files that are not what they should be


def truncated(path: str, size: int) -> bytes:
    return Path(path).read_bytes()[:size]


FOREIGN: dict[str, Callable[[], bytes]] = {
    "empty": lambda: b"",
    "truncated Parquet": lambda: truncated("reports.parquet", 2000),
    "half a header": lambda: truncated("reports.parquet", 3),
    "noise": lambda: np.random.default_rng(1).bytes(5000),
    "zeros": lambda: bytes(5000),
    "a picture": lambda: b"\x89PNG\r\n\x1a\n" + np.random.default_rng(1).bytes(500),
    "JSON": lambda: Path("plan.json").read_bytes(),
    "a long line": lambda: b"x" * 10_000_000,
    "control characters": lambda: b"\x1b[2J\x1b]0;title\x07,b\n1,2\n",
    "other columns": lambda: b"a,b\n1,2\n",
    "semicolons": lambda: b"group;value\n0;0.5\n",
    "twice a column": lambda: b"group,value,value,x,x\n0,1,2,3,4\n",
}


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [*FORMATS, ".summary", ".txt", ""])
@pytest.mark.parametrize("fault", FOREIGN)
def test_foreign_files(unpoison: Command, suffix: str, fault: str) -> None:
    path = f"foreign{suffix}"
    Path(path).write_bytes(FOREIGN[fault]())
    lines = [
        unpoison.refused("summarise", path, *SUMMARISE[2:]),
        unpoison.refused("estimate", path, *ESTIMATE[2:]),
        unpoison.refused("summarise", "reports.csv", path, *SUMMARISE[2:]),
        unpoison.refused("perturb", path, *PERTURB[2:]),
        unpoison.refused("simulate", "--values", path, "-c", "x"),
        unpoison.refused("merge", path, *MERGE[2:]),
        unpoison.refused("merge", "good.summary", path, "-o", "new.summary"),
    ]
    for line in lines:
        has(line, f"{path}: ")
        assert line[:-1].isprintable()
        assert len(line) < 600
    unpoison.refused("estimate", "good.summary", path)


@pytest.mark.parametrize("name", ["two\nlines.csv", "\x1b[2Jclear.csv", "tab\t.csv", "\udcff.csv"])
def test_names_of_files_cannot_write_on_the_terminal(unpoison: Command, name: str) -> None:
    for command in (("estimate", name, *ESTIMATE[2:]), ("perturb", name, *PERTURB[2:])):
        line = unpoison.refused(*command)
        has(line, ".csv: does not exist")
        assert line[:-1].isprintable()


def test_truncated_summaries(unpoison: Command) -> None:
    content = Path("good.summary").read_bytes()
    for size in (1, 100, len(content) // 2, len(content) - 1):
        Path("bad.summary").write_bytes(content[:size])
        has(unpoison.refused("estimate", "bad.summary"), "bad.summary: ")
        has(unpoison.refused("merge", "good.summary", "bad.summary", *MERGE[2:]), "bad.summary: ")


COLUMNS: dict[str, Any] = {
    "text": pa.array(["0.1", "0.2"]),
    "categories": pa.array(["a", "b"]).dictionary_encode(),
    "lists": pa.array([[0.1], [0.2]]),
    "truth": pa.array([True, False]),
    "times": pa.array([1, 2], pa.timestamp("s")),
}


@pytest.mark.parametrize("kind", COLUMNS)
@pytest.mark.parametrize("column", ["group", "value"])
def test_columns_that_hold_no_numbers(unpoison: Command, kind: str, column: str) -> None:
    columns = {"group": [0, 0], "value": [0.1, 0.2], column: COLUMNS[kind]}
    pq.write_table(pa.table(columns), "bad.parquet")
    line = unpoison.refused("estimate", "bad.parquet", *ESTIMATE[2:])
    has(line, "bad.parquet: ", f"column '{column}'", "numbers")


@pytest.mark.parametrize("suffix", FORMATS)
def test_missing_columns(unpoison: Command, suffix: str) -> None:
    many = {f"column_{number}": [1.0] for number in range(50)}
    for columns, missing in (
        ({"value": [1.0]}, "group"),
        ({"group": [0]}, "value"),
        ({"Group": [0], "value": [1.0]}, "group"),
        (many, "group"),
    ):
        write_table(f"bad{suffix}", columns)
        line = unpoison.refused("estimate", f"bad{suffix}", *ESTIMATE[2:])
        has(line, f"bad{suffix}: has no column '{missing}'", f"'{next(iter(columns))}'")
    assert "column_49" not in line


def test_a_column_that_stands_twice(unpoison: Command) -> None:
    Path("bad.csv").write_text("group,value,value\n0,0.5,99\n")
    has(unpoison.refused("estimate", "bad.csv", *ESTIMATE[2:]), "'value'", "more than once")
    schema = pa.schema([("group", pa.int32()), ("value", pa.float64()), ("value", pa.float64())])
    table = pa.Table.from_arrays([pa.array([0]), pa.array([0.5]), pa.array([99.0])], schema=schema)
    pq.write_table(table, "bad.parquet")
    has(unpoison.refused("estimate", "bad.parquet", *ESTIMATE[2:]), "'value'", "more than once")


def test_folders_without_reports(unpoison: Command) -> None:
    Path("empty/deep").mkdir(parents=True)
    Path("empty/.hidden.csv").write_text("group,value\n0,0.5\n")
    Path("empty/notes.txt").write_text("nothing")
    has(unpoison.refused("estimate", "empty", *ESTIMATE[2:]), "empty: holds no .parquet or .csv")
    has(unpoison.refused("merge", "empty", *MERGE[2:]), "empty: holds no .summary")
    has(unpoison.refused("estimate", "*.nothing", *ESTIMATE[2:]), "*.nothing: does not exist")


@pytest.mark.parametrize("suffix", FORMATS)
def test_values_without_rows(unpoison: Command, suffix: str) -> None:
    write_table(f"bad{suffix}", {"x": pa.array([], pa.float64())})
    has(unpoison.refused("perturb", f"bad{suffix}", *PERTURB[2:]), "holds no rows")
    has(unpoison.refused("simulate", "--values", f"bad{suffix}", "-c", "x"), "holds no rows")


# Summaries


def other_summary(path: str) -> None:
    plan = Plan.from_dict({**SHORT, "high": 101})
    reports = perturb(np.full(USERS, 5.0), plan, np.random.default_rng(1))
    Path(path).write_bytes(summarise(reports, plan).to_bytes())


def test_summaries_of_different_plans(unpoison: Command) -> None:
    other_summary("other.summary")
    for command in (("merge", "good.summary", "other.summary", "-o", "old.summary"),):
        has(unpoison.refused(*command), "other.summary: ", "plans", "received")
    has(unpoison.refused("estimate", "good.summary", "other.summary"), "other.summary: ", "plans")
    line = unpoison.refused("estimate", "other.summary", "-p", "plan.json")
    has(line, "--plan", "must be the plan of the summaries", "received plan.json")


def test_summaries_are_not_reports_nor_reports_summaries(unpoison: Command) -> None:
    Path("summary.parquet").write_bytes(Path("good.summary").read_bytes())
    for name in ("good.summary", "summary.parquet"):
        for reports in ("reports.csv", "reports.parquet"):
            line = unpoison.refused("estimate", name, reports, "-p", "plan.json")
            has(line, "reports or summaries, not both")
        has(unpoison.refused("summarise", name, *SUMMARISE[2:]), f"{name}: ")
    has(unpoison.refused("summarise", "summary.parquet", *SUMMARISE[2:]), "is a summary")
    has(unpoison.refused("merge", "good.summary", "reports.parquet", *MERGE[2:]), "not a summary")
    has(unpoison.refused("merge", "reports.csv", *MERGE[2:]), "not a summary")


def test_summaries_that_were_tampered_with(unpoison: Command) -> None:
    table = pq.read_table("good.summary")
    head = json.loads(table.schema.metadata[b"unpoison.summary"])
    changes: list[dict[str, Any]] = [
        {"format": 99},
        {"plan": {**head["plan"], "epsilon": -1}},
        {"plan": {**head["plan"], "cells": 4}},
        {"plan": 3},
        {"sums": ["x", "y", "z"]},
        {"sums": []},
        {"invalid": -1},
        {"invalid": None},
    ]
    texts = [json.dumps({**head, **change}) for change in changes]
    for text in (*texts, "{", "[]", "null", "{}"):
        metadata = {b"unpoison.summary": text.encode()}
        pq.write_table(table.replace_schema_metadata(metadata), "bad.summary")
        has(unpoison.refused("estimate", "bad.summary"), "bad.summary")
        has(unpoison.refused("merge", "bad.summary", *MERGE[2:]), "bad.summary")


# Nothing half-written


@pytest.mark.parametrize("target", ["old.csv", "old.parquet", "new.csv", "new.parquet"])
@pytest.mark.usefixtures("small_batches")
def test_a_fault_at_the_end_leaves_nothing(unpoison: Command, target: str) -> None:
    """Many batches are written before the last value turns out to be bad."""
    write_table("bad.csv", {"x": [1.0] * 2000 + [101.0]})
    has(unpoison.refused("perturb", "bad.csv", *PERTURB[2:-1], target), "row 2001")


@pytest.mark.slow
def test_outputs_of_one_run_appear_together_or_not_at_all(
    unpoison: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device", "p.png")

    monkeypatch.setattr("matplotlib.figure.Figure.savefig", full)
    arguments = (*SIMULATE, "-e", "1", "--min-epsilon", "0.5", "--plot", "p.png")
    has(unpoison.refused(*arguments), "p.png: No space left on device")


@pytest.mark.parametrize("stop", [KeyboardInterrupt, EOFError])
def test_an_interrupted_run_leaves_nothing(
    unpoison: Command, monkeypatch: pytest.MonkeyPatch, stop: type[BaseException]
) -> None:
    def interrupt(*_: Any) -> None:
        raise stop

    before = contents(Path.cwd())
    monkeypatch.setattr(Reporter, "report", interrupt)
    outcome = unpoison(*PERTURB)
    assert (outcome.code, outcome.out) == (130, "")
    assert outcome.err.strip() == "unpoison: interrupted"
    assert contents(Path.cwd()) == before


def test_too_little_memory_is_one_line(unpoison: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def exhausted(*_: Any) -> None:
        raise MemoryError("Unable to allocate 745 TiB")

    monkeypatch.setattr(Reporter, "report", exhausted)
    has(unpoison.refused(*PERTURB), "memory", "745 TiB")


def test_a_bug_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise ZeroDivisionError

    before = contents(Path.cwd())
    monkeypatch.setattr(Reporter, "report", broken)
    with pytest.raises(ZeroDivisionError):
        run(PERTURB)
    assert contents(Path.cwd()) == before


@pytest.mark.slow
def test_the_good_files_are_good(unpoison: Command) -> None:
    """The input that the refusals above alter is accepted unaltered."""
    for arguments in (NEW_PLAN, PERTURB, SUMMARISE, ESTIMATE, MERGE, SIMULATE):
        unpoison.done(*arguments)
    assert Summary.load("old.summary").plan.epsilon == 1.0
