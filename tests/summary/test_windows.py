"""Windows of time, and summaries that files are added to: nothing is counted twice."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from support.command_line import Command
from unpoison import InvalidFile, InvalidParameter, Plan, Summary, estimate, perturb, summarise
from unpoison.engines import Job, LocalEngine, count_files
from unpoison.reports.reading import NO_TIME, read_batches
from unpoison.summary.manifest import Manifest, digest, new_files
from unpoison.summary.store import Store
from unpoison.summary.windows import Window, parse_width, utc_text

PLAN = Plan.new(epsilon=1.0, min_epsilon=0.5, low=0, high=100)
START = datetime(2026, 3, 1, 22, 30, tzinfo=UTC)
HOUR = 3600 * 10**6


pytestmark = pytest.mark.usefixtures("few_replicates")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def table(users: int = 2000, hours: float = 4, seed: int = 1) -> Any:
    """Reports at random moments, in no order."""
    rng = np.random.default_rng(seed)
    reports = perturb(rng.uniform(0, 100, users), PLAN, rng)
    seconds = rng.uniform(0, hours * 3600, len(reports))
    moments = [START + timedelta(seconds=float(second)) for second in seconds]
    kind = pa.timestamp("us", tz="UTC")
    columns = {"group": reports.group, "value": reports.value}
    return pa.table({**columns, "timestamp": pa.array(moments, kind)})


def by_hand(rows: Any, width: int) -> dict[Window, Summary]:
    """Window by window, in plain Python."""
    places: dict[int, list[int]] = {}
    for place, when in enumerate(rows["timestamp"].to_pylist()):
        micros = int((when - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(microseconds=1))
        places.setdefault(micros // width, []).append(place)
    return {
        Window(number * width, (number + 1) * width): summarise(
            {name: rows[name].to_numpy()[indices] for name in ("group", "value")}, PLAN
        )
        for number, indices in places.items()
    }


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
@pytest.mark.parametrize("width", ["1h", "15m", "1d"])
def test_every_report_is_in_the_window_of_its_moment(
    width: str, suffix: str, tmp_path: Path
) -> None:
    rows, path = table(), tmp_path / f"day{suffix}"
    (pq.write_table if suffix == ".parquet" else pacsv.write_csv)(rows, path)
    summaries = count_files([path], Job(PLAN, window=parse_width(width))).tally
    expected = by_hand(rows, parse_width(width))
    assert summaries.keys() == expected.keys()
    for window, summary in expected.items():
        assert np.array_equal(summaries[window].counts, summary.counts)
        assert summaries[window].sums == summary.sums
        assert summaries[window].window == window


MOMENTS = {
    "seconds": pa.array([86_400, 86_401.5]),
    "text": pa.array(["1970-01-02T00:00:00Z", "1970-01-02 00:00:01.5"]),
    "zones": pa.array(["1970-01-02T02:00:00+02:00", "1970-01-01T23:00:01.5-01:00"]),
    "days": pa.array([datetime(1970, 1, 2).date(), None]),
    "naive": pa.array([datetime(1970, 1, 2), datetime(1970, 1, 2, 0, 0, 1, 500_000)]),
    "nanoseconds": pa.array([86_400 * 10**9, 86_401_500_000_000], pa.timestamp("ns")),
    "abroad": pa.array([86_400 * 10**6, 86_401_500_000], pa.timestamp("us", tz="Asia/Tokyo")),
}


@pytest.mark.parametrize("kind", MOMENTS)
def test_moments_are_read_in_the_forms_people_have(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "day.parquet"
    pq.write_table(pa.table({"when": MOMENTS[kind]}), path)
    (batch,) = read_batches(path, ["when"], times=["when"])
    second = NO_TIME if kind == "days" else 86_401_500_000
    assert batch.columns["when"].tolist() == [86_400 * 10**6, second]


def test_what_is_no_moment_is_none(tmp_path: Path) -> None:
    path = tmp_path / "day.csv"
    path.write_text("when,n\nsoon,1\n,2\n2026-01-01T00:00:00Z,3\n")
    (batch,) = read_batches(path, ["when"], times=["when"])
    assert batch.columns["when"][:2].tolist() == [NO_TIME, NO_TIME]
    assert utc_text(int(batch.columns["when"][2])) == "2026-01-01T00:00:00Z"
    other = tmp_path / "day.parquet"
    pq.write_table(pa.table({"when": [[1], [2]]}), other)
    with pytest.raises(InvalidFile, match="which must hold moments"):
        list(read_batches(other, ["when"], times=["when"]))


def test_reports_without_a_moment_are_refused_or_left_out(unpoison: Command) -> None:
    rows = table(100)
    moments = rows["timestamp"].to_pylist()
    moments[7] = None
    rows = rows.set_column(2, "timestamp", pa.array(moments, pa.timestamp("us", tz="UTC")))
    pq.write_table(rows, "day.parquet")
    PLAN.save("plan.json")
    command = ("summarise", "day.parquet", "-p", "plan.json", "-o", "w", "--window", "1h")
    assert "row 8: timestamp must be a moment" in unpoison.refused(*command)
    result = unpoison.done(*command, "--drop-invalid", "--json").json
    assert result["invalid"] == 1
    assert sum(result["reports"]) == rows.num_rows - 1
    kept = [Summary.load(path) for path in sorted(Path("w").glob("*.summary"))]
    assert sum(summary.invalid for summary in kept) == 1


def test_an_invalid_report_is_named_by_its_row_in_the_file(tmp_path: Path) -> None:
    rows = table(500)
    values = rows["value"].to_numpy().copy()
    values[321] = 1e9
    pq.write_table(rows.set_column(1, "value", pa.array(values)), tmp_path / "day.parquet")
    with pytest.raises(ValueError, match="row 322: value must be"):
        count_files([tmp_path / "day.parquet"], Job(PLAN, window=HOUR))


@pytest.mark.parametrize("text", ["", "h", "1", "0h", "1.5h", "-1h", "1 month", "1000000w"])
def test_widths_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(InvalidParameter, match="window must be a number and s, m, h, d or w"):
        parse_width(text)


def test_sums_of_windows_span_them_and_survive_the_file() -> None:
    first, second = (
        Summary(PLAN, summary.counts, summary.sums, window=Window(n * HOUR, (n + 1) * HOUR))
        for n, summary in enumerate([summarise(table(50, seed=s), PLAN) for s in (1, 2)])
    )
    both = first + second
    assert both.window == Window(0, 2 * HOUR)
    assert Summary.from_bytes(both.to_bytes()) == both
    assert (Summary.empty(PLAN) + first) == first
    assert (first + summarise(table(50), PLAN)).window is None


@pytest.mark.slow
def test_windows_are_estimated_one_by_one(unpoison: Command) -> None:
    pq.write_table(table(12_000, hours=3), "day.parquet")
    PLAN.save("plan.json")
    unpoison.done("summarise", "day.parquet", "-p", "plan.json", "-o", "w", "--window", "1h")
    windows = unpoison.done("estimate", "w", "--json").json["windows"]
    assert [window["start"] for window in windows] == [
        f"2026-03-0{day}T{hour:02}:00:00Z" for day, hour in ((1, 22), (1, 23), (2, 0), (2, 1))
    ]
    for window, path in zip(windows, sorted(Path("w").glob("*.summary")), strict=True):
        assert window["mean"] == estimate(Summary.load(path)).mean
        assert window["interval"][0] < 50 < window["interval"][1]
    shown = unpoison.done("estimate", "w", "--plot", "w.png").out
    assert "2026-03-02T01:00:00Z" in shown
    assert "of 4 windows" in shown
    assert Path("w.png").read_bytes().startswith(b"\x89PNG")
    together = unpoison.done("estimate", "w", "--together", "--json").json
    assert together["mean"] == estimate(summarise(pq.read_table("day.parquet"), PLAN)).mean


def test_windows_of_another_plan_are_refused(unpoison: Command) -> None:
    pq.write_table(table(300), "day.parquet")
    PLAN.save("plan.json")
    Plan.new(epsilon=1.0, min_epsilon=0.5, low=0, high=101).save("other.json")
    for plan, folder, width in (("plan", "a", "1h"), ("other", "b", "2h")):
        options = ("-p", f"{plan}.json", "-o", folder, "--window", width)
        unpoison.done("summarise", "day.parquet", *options)
    assert "--plan must be the plan of the summaries" in unpoison.refused(
        "estimate", "a", "--plan", "other.json"
    )
    assert "was counted by another plan than the others" in unpoison.refused("estimate", "a", "b")


@pytest.mark.slow
def test_windows_with_too_few_reports_are_told(unpoison: Command) -> None:
    rows = table(6000, hours=0.4)
    late = table(3, hours=0.1).set_column(
        2, "timestamp", pa.array([START + timedelta(hours=5)] * table(3).num_rows)
    )
    pq.write_table(pa.concat_tables([rows, late], promote_options="permissive"), "day.parquet")
    PLAN.save("plan.json")
    unpoison.done("summarise", "day.parquet", "-p", "plan.json", "-o", "w", "--window", "1h")
    shown = unpoison.done("estimate", "w").out
    assert "1 window has too few reports" in shown


def stored(names: list[str], *options: str) -> tuple[str, ...]:
    return ("summarise", *names, "-p", "plan.json", "-o", "all.summary", *options)


@pytest.fixture
def files() -> list[str]:
    PLAN.save("plan.json")
    for number in range(3):
        pq.write_table(table(200, seed=number), f"{number}.parquet")
    return ["0.parquet", "1.parquet", "2.parquet"]


def test_only_new_files_are_counted(unpoison: Command, files: list[str]) -> None:
    unpoison.done(*stored(files[:2]))
    result = unpoison.done(*stored(files, "--add", "--json")).json
    assert (result["files"], result["known_files"]) == (1, 2)
    again = unpoison.done(*stored(files, "--add")).out
    assert "3 files had been counted before; 0 new." in again
    unpoison.done("summarise", *files, "-p", "plan.json", "-o", "once.summary")
    assert Summary.load("all.summary") == Summary.load("once.summary")
    held = json.loads(Path("all.summary.manifest.json").read_text())["files"]
    assert held == {str(Path(name).resolve()): digest(Path(name)) for name in files}


def test_the_same_content_under_another_name_is_refused(
    unpoison: Command, files: list[str]
) -> None:
    Path("copy.parquet").write_bytes(Path("0.parquet").read_bytes())
    once = "copy.parquet: holds the same as "
    assert once in unpoison.refused(*stored([*files, "copy.parquet"]))
    unpoison.done(*stored(files))
    assert once in unpoison.refused(*stored(["copy.parquet"], "--add"))


def test_a_file_that_has_changed_is_refused(unpoison: Command, files: list[str]) -> None:
    unpoison.done(*stored(files))
    pq.write_table(table(300, seed=9), "1.parquet")
    assert "1.parquet: has changed since" in unpoison.refused(*stored(files, "--add"))


def test_a_summary_that_is_not_what_its_manifest_says_is_not_added_to(
    unpoison: Command, files: list[str]
) -> None:
    unpoison.done(*stored(files[:1]))
    before = Path("all.summary.manifest.json").read_bytes()
    unpoison.done(*stored(files[1:2], "--add"))
    Path("all.summary.manifest.json").write_bytes(before)
    assert "is not what its manifest says" in unpoison.refused(*stored(files, "--add"))
    Path("all.summary.manifest.json").unlink()
    assert "has no manifest beside it" in unpoison.refused(*stored(files, "--add"))
    Path("all.summary.manifest.json").write_text("[]")
    assert "is not a manifest" in unpoison.refused(*stored(files, "--add"))


def test_what_was_counted_otherwise_is_not_added_to(unpoison: Command, files: list[str]) -> None:
    windows = ("summarise", *files, "-p", "plan.json", "-o", "w", "--window")
    unpoison.done(*windows, "1h")
    assert "must be an empty folder" in unpoison.refused(*windows, "1h")
    assert "is of a window of 3,600 seconds, not of 7,200" in unpoison.refused(
        *windows, "2h", "--add"
    )
    unpoison.done(*stored(files[:1]))
    Plan.new(epsilon=1.0, min_epsilon=0.5, low=0, high=101).save("plan.json")
    assert "another plan" in unpoison.refused(*stored(files[1:], "--add"))


def test_bad_files_are_not_held(unpoison: Command, files: list[str]) -> None:
    Path("bad.csv").write_text("group,value\n0,nothing\n")
    unpoison.done(*stored([*files, "bad.csv"], "--skip-bad-files"))
    held = Manifest.load(Path("all.summary.manifest.json")).files
    assert sorted(Path(name).name for name in held) == files
    Path("bad.csv").write_text("group,value\n0,0.5\n")
    assert unpoison.done(*stored(["bad.csv"], "--add", "--json")).json["files"] == 1


def test_windows_can_be_added_to(unpoison: Command, files: list[str]) -> None:
    windows = ("-p", "plan.json", "--window", "1h", "--json")
    unpoison.done("summarise", *files[:2], "-o", "a", *windows)
    unpoison.done("summarise", *files, "-o", "a", "--add", *windows)
    unpoison.done("summarise", *files, "-o", "b", *windows)
    names = sorted(path.name for path in Path("b").glob("*.summary"))
    assert sorted(path.name for path in Path("a").glob("*.summary")) == names
    for name in names:
        assert Summary.load(Path("a", name)) == Summary.load(Path("b", name))


def test_nothing_is_lost_between_summary_and_manifest(tmp_path: Path) -> None:
    """A stop after the summary was written, and before the manifest was: no double count."""
    store = Store(tmp_path / "all.summary")
    store.save({None: Summary.empty(PLAN)}, Manifest({"a": "1"}))
    summarise(table(10), PLAN).save(tmp_path / "all.summary")
    with pytest.raises(InvalidFile, match="is not what its manifest says"):
        store.load(PLAN)


def test_new_files_are_told_from_known_ones() -> None:
    held = Manifest({str(Path("a").resolve()): "1"})
    assert new_files([Path("a"), Path("b")], ["1", "2"], held) == ({Path("b"): "2"}, [Path("a")])
    with pytest.raises(InvalidFile, match=r"b: holds the same as .*a, and would be counted twice"):
        new_files([Path("a"), Path("b")], ["3", "3"], Manifest())


def test_engines_take_windows_alike(tmp_path: Path) -> None:
    pq.write_table(table(), tmp_path / "day.parquet", row_group_size=100)
    job = Job(PLAN, window=HOUR)
    one, many = (
        count_files([tmp_path / "day.parquet"], job, LocalEngine(workers=n)).tally for n in (1, 4)
    )
    assert one.keys() == many.keys()
    assert all(one[window] == many[window] for window in one)
