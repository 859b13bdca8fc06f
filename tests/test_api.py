"""The public functions and exports of the package."""

from __future__ import annotations

import inspect
import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import unpoison
from unpoison import (
    Estimate,
    Plan,
    Reports,
    Summary,
    errors,
    estimate,
    perturb,
    simulate,
    summarise,
)
from unpoison.errors import InvalidParameter, InvalidReport, UnpoisonError

PUBLIC = [name for name in unpoison.__all__ if not name.startswith("__")]
FAULTS = [
    name
    for name in PUBLIC
    if isinstance(getattr(unpoison, name), type) and issubclass(getattr(unpoison, name), Exception)
]
USED = [name for name in PUBLIC if name not in FAULTS]


def plan(mechanism: str = "piecewise") -> Plan:
    return Plan.new(mechanism=mechanism, epsilon=1.0, min_epsilon=0.25, low=0, high=10)


def values(users: int = 6_000) -> np.ndarray:
    return 10 * np.random.default_rng(1).beta(2, 5, users)


def reports(mechanism: str = "piecewise") -> Reports:
    return perturb(values(), plan(mechanism), np.random.default_rng(2))


# The flat namespace


def test_the_promised_names_are_there() -> None:
    promised = {"Plan", "Summary", "Estimate", "perturb", "summarise", "estimate", "simulate"}
    assert promised <= set(unpoison.__all__)


def test_names_are_listed_once_and_in_order() -> None:
    assert sorted(set(unpoison.__all__)) == list(unpoison.__all__)


@pytest.mark.parametrize("name", unpoison.__all__)
def test_every_listed_name_exists(name: str) -> None:
    assert getattr(unpoison, name) is not None


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_is_documented(name: str) -> None:
    assert len(inspect.getdoc(getattr(unpoison, name)) or "") > 20
    assert getattr(unpoison, name).__module__.startswith("unpoison.")


@pytest.mark.parametrize("name", USED)
def test_everything_that_users_call_has_an_example(name: str) -> None:
    assert ">>>" in (getattr(unpoison, name).__doc__ or "")


@pytest.mark.parametrize("name", [name for name in FAULTS if not name.endswith("Warning")])
def test_every_error_is_in_the_one_tree(name: str) -> None:
    assert issubclass(getattr(unpoison, name), UnpoisonError)


def test_every_public_error_of_the_tree_is_exported() -> None:
    defined = {
        name
        for name, item in vars(errors).items()
        if isinstance(item, type) and issubclass(item, Exception)
    }
    assert defined <= set(unpoison.__all__)


@pytest.mark.slow
def test_nothing_heavy_is_imported_with_the_package() -> None:
    heavy = "{'matplotlib', 'pandas', 'pyarrow', 'rich', 'typer'}"
    code = f"import sys, unpoison; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# Values of any kind


@pytest.mark.parametrize(
    "kind",
    [np.asarray, list, tuple, pd.Series, pa.array, lambda v: np.asarray(v, dtype=np.float64)],
    ids=["array", "list", "tuple", "series", "arrow", "float64"],
)
def test_values_of_any_kind_give_the_same_reports(kind: Callable[[np.ndarray], Any]) -> None:
    perturbed = perturb(kind(values()), plan(), np.random.default_rng(2))
    expected = reports()
    np.testing.assert_array_equal(perturbed.group, expected.group)
    np.testing.assert_array_equal(perturbed.value, expected.value)
    np.testing.assert_array_equal(perturbed.user, expected.user)


def test_a_column_of_a_table_can_be_perturbed_and_simulated() -> None:
    frame = pd.DataFrame({"hours": values()})
    assert len(perturb(frame["hours"], plan(), np.random.default_rng(2))) == len(reports())
    done = simulate(plan(), frame["hours"], "none", 0, np.random.default_rng(2))
    assert done.truth == pytest.approx(frame["hours"].mean())


def test_categories_are_given_by_name() -> None:
    chosen = Plan.new(mechanism="k-rr", epsilon=2.0, min_epsilon=1.0, categories=["a", "b", "c"])
    names = ["a", "c", "b", "a"] * 50
    summary = summarise(perturb(names, chosen, np.random.default_rng(1)), chosen)
    series = summarise(perturb(pd.Series(names), chosen, np.random.default_rng(1)), chosen)
    assert summary == series
    assert summary.total_users == 200


def test_without_a_generator_the_systems_own_is_used() -> None:
    one, other = (perturb(values(), plan()) for _ in range(2))
    assert len(one) == len(other) == len(reports())
    assert not np.array_equal(one.value, other.value)


@pytest.mark.parametrize(
    "bad", [[[0.5, 0.5]], ["x"], [None], [math.nan], [math.inf], [-1.0], [11.0], 3.0]
)
def test_values_that_are_no_column_of_numbers_in_the_range_are_refused(bad: Any) -> None:
    with pytest.raises(UnpoisonError, match="values"):
        perturb(bad, plan())


# Reports of any kind


KINDS: dict[str, Callable[[Reports], Any]] = {
    "reports": lambda batch: batch,
    "dict of arrays": lambda batch: {"group": batch.group, "value": batch.value},
    "dict of lists": lambda batch: {"group": batch.group.tolist(), "value": batch.value.tolist()},
    "frame": lambda batch: batch.to_pandas(),
    "frame with more columns": lambda batch: batch.to_pandas().assign(user=batch.user),
    "frame with small integers": lambda batch: batch.to_pandas().astype({"group": "int8"}),
    "frame with an index": lambda batch: batch.to_pandas().set_index(batch.user),
    "table": lambda batch: pa.table({"group": batch.group, "value": batch.value}),
    "table in chunks": lambda batch: pa.concat_tables(
        [
            pa.table({"group": batch.group[:99], "value": batch.value[:99]}),
            pa.table({"group": batch.group[99:], "value": batch.value[99:]}),
        ]
    ),
    "records": lambda batch: batch.to_pandas().to_records(index=False),
}


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
@pytest.mark.parametrize("mechanism", ["piecewise", "piecewise-integer"])
def test_reports_of_any_kind_give_the_same_summary(
    kind: Callable[[Reports], Any], mechanism: str
) -> None:
    sent = reports(mechanism)
    assert summarise(kind(sent), plan(mechanism)) == summarise(sent, plan(mechanism))


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
def test_reports_of_any_kind_give_the_same_estimate(kind: Callable[[Reports], Any]) -> None:
    answer = estimate(kind(reports()), plan(), method="emf")
    assert isinstance(answer, Estimate)
    assert answer == estimate(summarise(reports(), plan()), method="emf")


def test_a_summary_needs_no_plan_and_reports_do() -> None:
    summary = summarise(reports(), plan())
    assert isinstance(summary, Summary)
    assert estimate(summary, method="ostrich").users == 6_000
    with pytest.raises(InvalidParameter, match="plan must be given with reports"):
        estimate(reports(), method="ostrich")


def test_parts_of_the_reports_add_up_to_the_whole() -> None:
    frame = reports().to_pandas()
    first, rest = frame.iloc[:777], frame.iloc[777:]
    assert summarise(first, plan()) + summarise(rest, plan()) == summarise(frame, plan())


def test_the_path_from_values_to_an_answer() -> None:
    answer = estimate(perturb(values(60_000), plan(), np.random.default_rng(2)), plan(), "ostrich")
    deviation = plan().natural_scale * math.sqrt(
        plan().group_mechanisms[-1].worst_variance / 60_000
    )
    assert abs(answer.mean - values(60_000).mean()) < 5 * deviation


# Reports that are refused


@pytest.mark.parametrize(
    "bad",
    [
        None,
        5,
        {},
        [1, 2],
        {"group": [0]},
        {"value": [0.0]},
        np.zeros((3, 2)),
        pd.DataFrame({"group": [0], "values": [0.0]}),
        pa.table({"groups": [0], "value": [0.0]}),
    ],
    ids=str,
)
def test_reports_without_their_columns_are_refused(bad: Any) -> None:
    with pytest.raises(InvalidParameter, match="reports must have the columns group and value"):
        summarise(bad, plan())


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"group": [0, 1], "value": [0.0]}, "columns of one length"),
        ({"group": [[0, 1]], "value": [[0.0, 1.0]]}, "columns of one length"),
        ({"group": 0, "value": 0.0}, "columns of one length"),
        ({"group": ["a"], "value": [0.0]}, "numbers in group"),
        ({"group": [0], "value": ["a"]}, "numbers in value"),
        ({"group": [True], "value": [0.0]}, "numbers in group"),
        ({"group": [0], "value": [1j]}, "numbers in value"),
    ],
)
def test_columns_that_are_no_numbers_of_one_length_are_refused(bad: Any, message: str) -> None:
    with pytest.raises(InvalidParameter, match=f"reports must have {message}"):
        summarise(bad, plan())


@pytest.mark.parametrize(
    ("group", "value", "message"),
    [
        (3, 0.0, "row 2: group must be a whole number from 0 to 2; received 3"),
        (-1, 0.0, "row 2: group must be a whole number"),
        (0.5, 0.0, "row 2: group must be a whole number"),
        (math.nan, 0.0, "row 2: group must be a whole number"),
        (0, 1e6, "row 2: value must be in"),
        (0, math.nan, "row 2: value must be in"),
        (0, -math.inf, "row 2: value must be in"),
    ],
)
def test_an_invalid_report_is_refused_by_row_or_counted(
    group: float, value: float, message: str
) -> None:
    frame = pd.DataFrame({"group": [0, group, 1], "value": [0.0, value, 0.5]})
    with pytest.raises(InvalidReport, match=message):
        summarise(frame, plan())
    kept = summarise(frame, plan(), drop_invalid=True)
    assert kept.invalid == 1
    assert kept.reports.sum() == 2


def test_a_missing_value_in_a_table_is_refused_by_row() -> None:
    table = pa.table({"group": [0, 0, 0], "value": [0.5, None, 0.25]})
    with pytest.raises(InvalidReport, match="row 2"):
        summarise(table, plan())


@pytest.mark.parametrize("value", [0.5, -1.0, 4096.0])
def test_reports_of_an_integer_mechanism_are_whole_cells(value: float) -> None:
    with pytest.raises(InvalidReport, match="value must be a whole number in"):
        summarise({"group": [0], "value": [value]}, plan("piecewise-integer"))


@pytest.mark.parametrize("nothing", ["", [], [""]])
def test_no_path_at_all_is_refused(nothing: Any) -> None:
    with pytest.raises(InvalidParameter, match="must name at least one file"):
        unpoison.summarise(nothing, unpoison.Plan.new(low=0, high=1))


def test_a_summary_is_not_estimated_under_another_plan() -> None:
    mine, other = (unpoison.Plan.new(low=0, high=high) for high in (1, 2))
    with pytest.raises(InvalidParameter, match="plan must be the summary's own"):
        unpoison.estimate(unpoison.Summary.empty(mine), other)


def test_estimate_leaves_invalid_reports_out_when_asked() -> None:
    plan = unpoison.Plan.new(epsilon=0.5, min_epsilon=0.5, low=0, high=1)
    table = {"group": [0, 0, 0], "value": [1.0, math.nan, 3.0]}
    answer = unpoison.estimate(table, plan, method="ostrich", drop_invalid=True)
    assert (answer.invalid, answer.reports) == (1, 2)
    with pytest.raises(InvalidReport, match="row 2"):
        unpoison.estimate(table, plan, method="ostrich")


def test_plans_and_summaries_are_read_back_from_the_files_they_were_saved_in(
    tmp_path: Path,
) -> None:
    plan = unpoison.Plan.new(epsilon=0.5, low=0, high=1)
    plan.save(tmp_path / "plan.json")
    assert unpoison.Plan.load(tmp_path / "plan.json") == plan
    summary = unpoison.summarise(unpoison.perturb([0.1, 0.2, 0.7, 0.9], plan), plan)
    summary.save(tmp_path / "today.summary")
    assert unpoison.Summary.load(tmp_path / "today.summary") == summary
