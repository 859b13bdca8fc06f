"""Summaries: merging to the bit, the file form, and binning against a slow and obvious version."""

from __future__ import annotations

import io
import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from unpoison import (
    IncompatibleSummaries,
    InvalidFile,
    InvalidParameter,
    InvalidReport,
    Plan,
    Summary,
    perturb,
    summarise,
)
from unpoison.summary.binning import BATCH, BLOCK, Binner
from unpoison.summary.compiled import compiled_loop, count_rows
from unpoison.summary.summary import FIXED_POINT, FORMAT, METADATA_KEY, is_summary
from unpoison.types import FloatArray, IntArray

PLAN = Plan.new(epsilon=0.5, min_epsilon=0.25, low=0, high=10, cells=8)
OTHER_PLAN = Plan.new(epsilon=0.5, min_epsilon=0.25, low=0, high=11, cells=8)
PLANS = (
    PLAN,
    Plan.new(mechanism="square-wave", epsilon=1.0, min_epsilon=0.25, low=0, high=1, cells=37),
    Plan.new(mechanism="piecewise-integer", epsilon=2.0, min_epsilon=0.5, low=0, high=1, cells=30),
    Plan.new(mechanism="square-wave-integer", epsilon=1.0, low=0, high=1, cells=11),
    Plan.new(mechanism="k-rr", epsilon=1.0, min_epsilon=0.5, categories=["a", "b", "c"]),
    Plan.new(epsilon=1.0, min_epsilon=0.5, low=0, high=1, cells=9, tiers=[{"epsilon": 0.25}]),
    Plan.new(protocol="baseline", epsilon=1.0, low=0, high=1, cells=16),
)
EDGE_TOLERANCE = Fraction(1, 10**9)

every_plan = pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.mechanism)


ENDS = ("low", "high")
LOOPS = {"plain": count_rows, "compiled": compiled_loop()}


def mixed_reports(plan: Plan, rows: int = 3000) -> tuple[NDArray[Any], NDArray[Any]]:
    """Reports anywhere in their domains, some at either end and some on edges of cells."""
    rng = np.random.default_rng(1)
    parts = plan.group_mechanisms
    group = rng.integers(0, len(parts), rows, dtype=np.int32)
    low, high = (np.array([getattr(part, f"output_{end}") for part in parts]) for end in ENDS)
    value = low[group] + rng.random(rows) * (high - low)[group]
    value[::5] = (low + rng.integers(0, plan.cells + 1, rows)[:, None] / plan.cells * (high - low))[
        np.arange(rows), group
    ][::5]
    value[::7], value[1::7] = low[group][::7], high[group][1::7]
    if parts[0].discrete:
        return group, np.clip(np.floor(value), 0, plan.cells - 1)
    return group, np.clip(value, low[group], high[group])


@pytest.mark.slow
@pytest.mark.parametrize("kind", [np.float64, np.float32])
@pytest.mark.parametrize("name", LOOPS)
@every_plan
def test_the_loop_counts_what_whole_arrays_count(plan: Plan, name: str, kind: Any) -> None:
    loop = LOOPS[name]
    if loop is None:
        pytest.skip("needs the extra fast")
    group, value = mixed_reports(plan)
    whole, looped = Binner(plan), Binner(plan, loop=loop)
    for binner in (whole, looped):
        binner.add(group, value.astype(kind))
    assert looped._looped(loop, group, value.astype(kind))
    assert looped.summary().reports.sum() == 2 * len(value)
    assert whole.summary() + whole.summary() == looped.summary()


@pytest.mark.parametrize("fault", [np.nan, np.inf, 1e9, -1e9])
@pytest.mark.parametrize("name", LOOPS)
def test_the_loop_leaves_batches_with_invalid_rows_alone(name: str, fault: float) -> None:
    loop = LOOPS[name]
    if loop is None:
        pytest.skip("needs the extra fast")
    group, value = mixed_reports(PLAN, 200)
    value[150] = fault
    strict, lax, plain = (
        Binner(PLAN, drop, chosen_loop)
        for drop, chosen_loop in ((False, loop), (True, loop), (True, None))
    )
    with pytest.raises(InvalidReport, match="row 151"):
        strict.add(group, value)
    assert strict.summary() == Summary.empty(PLAN)
    lax.add(group, value)
    plain.add(group, value)
    assert lax.summary() == plain.summary()
    assert lax.invalid == 1
    group[3] = len(PLAN.groups)
    with pytest.raises(InvalidReport, match="row 4: group must be"):
        strict.add(group, value)


@st.composite
def summaries(draw: st.DrawFn, plan: Plan = PLAN) -> Summary:
    shape = (len(plan.all_groups), plan.cells)
    numbers = st.integers(0, 2**60)
    size = shape[0] * shape[1]
    counts = draw(st.lists(numbers, min_size=size, max_size=size))
    sums = st.integers(-(2**90), 2**90)
    return Summary(
        plan,
        np.array(counts, dtype=np.int64).reshape(shape),
        tuple(draw(st.lists(sums, min_size=shape[0], max_size=shape[0]))),
        draw(st.integers(0, 2**40)),
    )


def binned(plan: Plan, group: Any, value: Any, drop_invalid: bool = False) -> Summary:
    binner = Binner(plan, drop_invalid)
    binner.add(np.asarray(group), np.asarray(value))
    return binner.summary()


def random_reports(plan: Plan, count: int, seed: int) -> tuple[IntArray, FloatArray]:
    """Valid reports anywhere in the domain, its ends included."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, len(plan.all_groups), count)
    share = np.where(rng.random(count) < 0.1, rng.integers(0, 2, count), rng.random(count))
    parts = plan.group_mechanisms
    low = np.array([part.output_low for part in parts])[group]
    high = np.array([part.output_high - part.discrete for part in parts])[group]
    value = np.clip(low + share * (high - low), low, high)
    return group, np.rint(value) if parts[0].discrete else value


def exact_position(plan: Plan, group: int, value: float) -> Fraction:
    """Where a report stands, counted in cells from the low end of its domain."""
    part = plan.group_mechanisms[group]
    width = Fraction(part.output_high) - Fraction(part.output_low)
    return (Fraction(value) - Fraction(part.output_low)) * plan.cells / width


def slow_sums(plan: Plan, group: IntArray, value: FloatArray) -> tuple[int, ...]:
    """Each group's sum of reports, each rounded to a whole number of 2^-32ths."""
    sums = [0] * len(plan.all_groups)
    for index, number in zip(group.tolist(), value.tolist(), strict=True):
        sums[index] += round(Fraction(number) * FIXED_POINT)
    return tuple(sums)


# Merging


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(one=summaries(), two=summaries(), three=summaries())
def test_merging_is_associative_and_commutative_to_the_bit(
    one: Summary, two: Summary, three: Summary
) -> None:
    assert (one + two) + three == one + (two + three)
    assert one + two == two + one
    assert one + Summary.empty(PLAN) == one


@settings(max_examples=30, deadline=None)
@given(one=summaries(), two=summaries())
def test_merging_adds_everything(one: Summary, two: Summary) -> None:
    merged = one + two
    assert (merged.counts == one.counts + two.counts).all()
    assert merged.sums == tuple(a + b for a, b in zip(one.sums, two.sums, strict=True))
    assert merged.invalid == one.invalid + two.invalid


def test_summaries_of_different_plans_are_not_merged() -> None:
    with pytest.raises(IncompatibleSummaries, match="only if their plans are equal"):
        Summary.empty(PLAN) + Summary.empty(OTHER_PLAN)


def test_a_summary_adds_to_nothing_but_a_summary() -> None:
    with pytest.raises(TypeError):
        Summary.empty(PLAN) + 1  # type: ignore[operator]


def test_summaries_differ_in_any_part() -> None:
    counts = np.zeros((2, 8), dtype=np.int64)
    more = counts.copy()
    more[1, 3] = 1
    base = Summary(PLAN, counts, (0, 0))
    assert base == Summary.empty(PLAN)
    assert base != Summary(PLAN, more, (0, 0))
    assert base != Summary(PLAN, counts, (0, 1))
    assert base != Summary(PLAN, counts, (0, 0), invalid=1)
    assert base != Summary.empty(OTHER_PLAN)
    assert base != "summary"


# Parts


def test_reports_users_and_sums_are_read_off() -> None:
    summary = binned(PLAN, [0, 0, 0, 1, 1, 1, 1], [0.5, -0.25, 1.0, 1.5, 0, 0, 0])
    assert summary.reports.tolist() == [3, 4]
    assert summary.users.tolist() == [3.0, 2.0]
    assert summary.total_users == 5
    assert (summary.sum(0), summary.sum(1)) == (1.25, 1.5)


def test_a_user_of_the_baseline_is_counted_once() -> None:
    plan = Plan.new(protocol="baseline", epsilon=1.0, low=0, high=1)
    summary = summarise(perturb(np.linspace(0, 1, 30), plan, np.random.default_rng(1)), plan)
    assert summary.reports.tolist() == [30, 30]
    assert summary.total_users == 30


def test_counts_of_the_wrong_shape_or_sign_are_refused() -> None:
    with pytest.raises(InvalidParameter, match=r"counts must have the shape \(2, 8\)"):
        Summary(PLAN, np.zeros((2, 9), dtype=np.int64), (0, 0))
    with pytest.raises(InvalidParameter, match="counts must have the shape"):
        Summary(PLAN, np.zeros((2, 8), dtype=np.int64), (0,))
    with pytest.raises(InvalidParameter, match="must not be negative"):
        Summary(PLAN, np.full((2, 8), -1), (0, 0))
    with pytest.raises(InvalidParameter, match="must not be negative"):
        Summary(PLAN, np.zeros((2, 8), dtype=np.int64), (0, 0), invalid=-1)


def test_a_summary_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="read-only"):
        Summary.empty(PLAN).counts[0, 0] = 1


# File form


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(summary=st.one_of([summaries(plan) for plan in PLANS]))
def test_the_file_form_brings_back_an_equal_summary(summary: Summary) -> None:
    again = Summary.from_bytes(summary.to_bytes())
    assert again == summary
    assert again.plan == summary.plan


def test_a_summary_file_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "summary.parquet"
    summary = binned(PLAN, *random_reports(PLAN, 100, 1))
    path.write_bytes(summary.to_bytes())
    assert Summary.load(path) == summary


def test_a_missing_file_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile, match=r"absent\.parquet: cannot be read"):
        Summary.load(tmp_path / "absent.parquet")


@settings(max_examples=60, deadline=None)
@given(share=st.floats(0, 1, exclude_max=True))
def test_truncated_bytes_are_refused(share: float) -> None:
    data = binned(PLAN, *random_reports(PLAN, 100, 1)).to_bytes()
    with pytest.raises(InvalidFile, match=r"^some file: "):
        Summary.from_bytes(data[: int(share * len(data))], "some file")


@pytest.mark.parametrize("data", [b"", b"group,value\n0,1\n", b"PAR1", b"PAR1" * 20, bytes(1000)])
def test_bytes_of_something_else_are_refused(data: bytes) -> None:
    with pytest.raises(InvalidFile, match="is not a summary"):
        Summary.from_bytes(data)


def parquet(columns: dict[str, Any], head: bytes | None) -> bytes:
    """A Parquet file, with the footer of a summary where one is given."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    metadata = None if head is None else {METADATA_KEY: head}
    buffer = io.BytesIO()
    pq.write_table(pa.table(columns).replace_schema_metadata(metadata), buffer)
    return buffer.getvalue()


def test_a_foreign_parquet_file_is_refused() -> None:
    with pytest.raises(InvalidFile, match="is a Parquet file, but not a summary"):
        Summary.from_bytes(parquet({"group": [0], "value": [0.5]}, None))


ROWS: dict[str, Any] = {"group": [0], "cell": [0], "count": [1]}
HEAD: dict[str, Any] = {
    "format": FORMAT,
    "plan": PLAN.to_dict(),
    "sums": ["0", "0"],
    "reports": [1, 0],
    "invalid": 0,
}


def test_the_footer_and_rows_used_below_are_sound() -> None:
    assert Summary.from_bytes(parquet(ROWS, json.dumps(HEAD).encode())).counts[0, 0] == 1


@pytest.mark.parametrize(
    "head",
    [
        b"{",
        b"\xff",
        b"[]",
        b"{}",
        json.dumps({**HEAD, "format": FORMAT + 1}).encode(),
        json.dumps({**HEAD, "plan": {"mechanism": "piecewise"}}).encode(),
        json.dumps({**HEAD, "plan": None}).encode(),
        json.dumps({**HEAD, "sums": ["0"]}).encode(),
        json.dumps({**HEAD, "sums": ["0", "much"]}).encode(),
        json.dumps({**HEAD, "reports": [0, 1]}).encode(),
        json.dumps({**HEAD, "invalid": -1}).encode(),
        json.dumps({**HEAD, "invalid": "none"}).encode(),
    ],
)
def test_a_damaged_footer_is_refused(head: bytes) -> None:
    with pytest.raises(InvalidFile, match=r"^some file: cannot be read as a summary \("):
        Summary.from_bytes(parquet(ROWS, head), "some file")


@pytest.mark.parametrize(
    "change",
    [
        {"group": [2]},
        {"group": [-1]},
        {"cell": [8]},
        {"cell": [-1]},
        {"count": [-1]},
        {"count": [2]},
        {"count": [1.5]},
        {"cell": [None]},
        {"cell": ["first"]},
        {"count": ["many"]},
    ],
)
def test_damaged_rows_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(InvalidFile, match="cannot be read as a summary"):
        Summary.from_bytes(parquet({**ROWS, **change}, json.dumps(HEAD).encode()))


@pytest.mark.parametrize("missing", ["group", "cell", "count"])
def test_missing_columns_are_refused(missing: str) -> None:
    rows = {name: column for name, column in ROWS.items() if name != missing}
    with pytest.raises(InvalidFile, match=missing):
        Summary.from_bytes(parquet(rows, json.dumps(HEAD).encode()))


# Binning


def test_a_batch_with_a_refused_row_leaves_nothing_behind() -> None:
    binner = Binner(PLAN)
    good = np.zeros(BLOCK)
    with pytest.raises(InvalidReport):
        binner.add(np.zeros(BLOCK + 1, dtype=np.int64), np.append(good + 1.0, np.nan))
    assert binner.summary() == Summary.empty(PLAN)


@every_plan
def test_every_report_is_counted_in_the_cell_that_holds_it(plan: Plan) -> None:
    group, value = random_reports(plan, 400, 1)
    for index, number in zip(group.tolist(), value.tolist(), strict=True):
        counts = binned(plan, [index], [number]).counts
        assert counts.sum() == counts[index].sum() == 1
        cell, position = int(np.argmax(counts[index])), exact_position(plan, index, number)
        within = cell - EDGE_TOLERANCE <= position <= cell + 1 + EDGE_TOLERANCE
        assert within if not plan.group_mechanisms[0].discrete else cell == number


@every_plan
def test_many_reports_are_counted_as_they_are_one_by_one(plan: Plan) -> None:
    group, value = random_reports(plan, 300, 2)
    parts = [binned(plan, [g], [v]) for g, v in zip(group.tolist(), value.tolist(), strict=True)]
    assert binned(plan, group, value) == sum(parts, Summary.empty(plan))


@every_plan
def test_sums_are_those_of_whole_numbers(plan: Plan) -> None:
    group, value = random_reports(plan, 3000, 3)
    assert binned(plan, group, value).sums == slow_sums(plan, group, value)


@pytest.mark.slow
@every_plan
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32), cuts=st.lists(st.integers(0, 3 * BLOCK), max_size=4))
def test_order_and_chunks_change_nothing(plan: Plan, seed: int, cuts: list[int]) -> None:
    group, value = random_reports(plan, 2 * BLOCK + 77, 4)
    whole = binned(plan, group, value)
    order = np.random.default_rng(seed).permutation(len(value))
    binner = Binner(plan)
    for part in np.split(order, sorted(cuts)):
        binner.add(group[part], value[part])
    assert binner.summary() == whole


@pytest.mark.slow
def test_sums_stay_exact_where_a_block_of_floats_would_overflow() -> None:
    """At a tiny ε reports are so large that a few thousand of them exceed 2^53 in 2^-32ths."""
    plan = Plan.new(epsilon=1e-4, min_epsilon=1e-4, low=0, high=1, cells=4)
    top = plan.group_mechanisms[0].output_high
    value = top - np.random.default_rng(1).random(BLOCK)
    group = np.zeros(BLOCK, dtype=np.int64)
    assert binned(plan, group, value).sums == slow_sums(plan, group, value)


@every_plan
def test_a_report_on_a_cell_edge_is_counted_next_to_it(plan: Plan) -> None:
    for group, part in enumerate(plan.group_mechanisms):
        edges = part.grid()[:-1] if part.discrete else part.grid()
        for number, edge in enumerate(edges.tolist()):
            cell = int(np.argmax(binned(plan, [group], [edge]).counts[group]))
            assert cell in {min(number, plan.cells - 1), max(0, number - 1)}


@every_plan
def test_a_larger_report_is_never_in_an_earlier_cell(plan: Plan) -> None:
    for group, part in enumerate(plan.group_mechanisms):
        if part.discrete:
            continue
        edges = part.grid()
        near = np.concatenate([edges, np.nextafter(edges, -9e9), np.nextafter(edges, 9e9)])
        near = np.sort(near[(near >= part.output_low) & (near <= part.output_high)])
        cells = [int(np.argmax(binned(plan, [group], [v]).counts[group])) for v in near.tolist()]
        assert cells == sorted(cells)
        assert (cells[0], cells[-1]) == (0, plan.cells - 1)


@settings(max_examples=60, deadline=None)
@given(epsilon=st.floats(0.01, 5.0), name=st.sampled_from(["piecewise", "square-wave"]))
def test_float32_reports_may_stand_at_the_end_of_the_domain(epsilon: float, name: str) -> None:
    plan = Plan.new(mechanism=name, epsilon=epsilon, min_epsilon=epsilon, low=0, high=1, cells=4)
    part = plan.group_mechanisms[0]
    ends = np.array([part.output_low, part.output_high], dtype=np.float32)
    summary = binned(plan, [0, 0], ends)
    assert summary.counts.tolist() == [[1, 0, 0, 1]]
    stored = [float(np.clip(end, part.output_low, part.output_high)) for end in ends.tolist()]
    assert summary.sums == slow_sums(plan, np.array([0, 0]), np.array(stored))
    beyond = np.nextafter(ends, np.array([-9e9, 9e9], dtype=np.float32))
    assert binned(plan, [0, 0], beyond, drop_invalid=True).invalid == 2


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int32, np.int64, np.float32, np.float64])
def test_columns_of_any_number_type_are_counted_alike(kind: type[np.generic]) -> None:
    plan = PLANS[2]
    group, value = random_reports(plan, 200, 5)
    assert binned(plan, group.astype(kind), value.astype(kind)) == binned(plan, group, value)


def test_reports_come_from_frames_and_mappings_as_well() -> None:
    reports = perturb(np.linspace(0, 10, 50), PLAN, np.random.default_rng(1))
    expected = binned(PLAN, reports.group, reports.value)
    assert summarise(reports, PLAN) == expected
    assert summarise(reports.to_pandas(), PLAN) == expected
    assert summarise({"group": reports.group, "value": reports.value}, PLAN) == expected


def test_no_reports_are_the_empty_summary() -> None:
    assert binned(PLAN, np.empty(0, dtype=np.int64), np.empty(0)) == Summary.empty(PLAN)


# Invalid reports

FAR = PLAN.group_mechanisms[1].output_high + 1
BETWEEN = (PLAN.group_mechanisms[0].output_high + PLAN.group_mechanisms[1].output_high) / 2

BAD_ROWS: list[tuple[float, float, str]] = [
    (0, math.nan, "value must be in"),
    (0, math.inf, "value must be in"),
    (1, -math.inf, "value must be in"),
    (1, FAR, "value must be in .* in group 1"),
    (1, -FAR, "value must be in"),
    (0, BETWEEN, "value must be in .* in group 0"),
    (2, 0.5, "group must be a whole number from 0 to 1"),
    (-1, 0.5, "group must be a whole number"),
    (0.5, 0.5, "group must be a whole number"),
    (math.nan, 0.5, "group must be a whole number"),
    (math.inf, 0.5, "group must be a whole number"),
]


@pytest.mark.parametrize(("group", "value", "rule"), BAD_ROWS)
@pytest.mark.parametrize("row", [1, 3, BLOCK, BLOCK + 1, 2 * BLOCK + 9])
def test_an_invalid_report_is_refused_with_its_row(
    group: float, value: float, rule: str, row: int
) -> None:
    groups, values = np.zeros(2 * BLOCK + 20), np.zeros(2 * BLOCK + 20)
    groups[row - 1], values[row - 1] = group, value
    with pytest.raises(InvalidReport, match=rf"^row {row}: {rule}.*; received ") as caught:
        binned(PLAN, groups, values)
    assert caught.value.row == row


def test_rows_are_counted_on_beyond_the_first_batch() -> None:
    groups, values = np.zeros(BATCH + 9, dtype=np.int64), np.zeros(BATCH + 9)
    values[[BATCH + 4, BATCH + 6]] = math.nan
    with pytest.raises(InvalidReport) as caught:
        binned(PLAN, groups, values)
    assert caught.value.row == BATCH + 5


def test_a_row_is_placed_in_its_file() -> None:
    placed = InvalidReport("value must be small", 9, row=3).at("reports.csv", rows_before=100)
    assert str(placed) == "reports.csv: row 103: value must be small; received 9"


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_dropped_reports_are_counted_and_change_nothing_else(data: st.DataObject) -> None:
    group, value = random_reports(PLAN, 60, 6)
    bad: NDArray[np.bool_] = np.array(data.draw(st.lists(st.booleans(), min_size=60, max_size=60)))
    groups, values = group.astype(np.float64), value.copy()
    for row in np.flatnonzero(bad):
        groups[row], values[row], _ = data.draw(st.sampled_from(BAD_ROWS))
    dropped = binned(PLAN, groups, values, drop_invalid=True)
    kept = binned(PLAN, group[~bad], value[~bad])
    assert dropped.invalid == bad.sum()
    assert (dropped.counts == kept.counts).all()
    assert dropped.sums == kept.sums


@pytest.mark.parametrize("plan", [PLANS[2], PLANS[4]], ids=lambda plan: plan.mechanism)
@pytest.mark.parametrize("value", [0.5, -1.0, math.nan, math.inf, "cells"])
def test_cell_numbers_must_be_whole_and_below_the_number_of_cells(
    plan: Plan, value: float | str
) -> None:
    number = float(plan.cells) if value == "cells" else float(value)
    rule = rf"value must be a whole number in \[0, {plan.cells - 1}\] in group 0"
    with pytest.raises(InvalidReport, match=f"^row 2: {rule}") as caught:
        binned(plan, [0, 0], [1.0, number])
    assert caught.value.row == 2


def test_is_summary_knows_our_footer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("s").write_bytes(Summary.empty(PLAN).to_bytes())
    pq.write_table(pa.table({"group": [1], "cell": [1], "count": [1]}), "other.parquet")
    pacsv.write_csv(pa.table({"group": [1]}), "x.csv")
    Path("empty").touch()
    Path("half").write_bytes(Path("s").read_bytes()[:-10])
    assert is_summary(Path("s"))
    for name in ("other.parquet", "x.csv", "empty", "half", "none", "."):
        assert not is_summary(Path(name))
