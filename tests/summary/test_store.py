"""Stores of summaries: processes that add at the same time, renamed files, foreign manifests."""

from __future__ import annotations

import json
import multiprocessing
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import numpy as np
import pytest

from support.command_line import Command
from unpoison import InvalidFile, Plan, Summary, perturb
from unpoison.reports.writing import ReportWriter
from unpoison.summary import store as store_module
from unpoison.summary.manifest import Manifest
from unpoison.summary.store import Store
from unpoison.summary.tally import load_tally
from unpoison.summary.windows import Window

pytestmark = pytest.mark.slow

PLAN = Plan.new(epsilon=1.0, min_epsilon=0.5, low=0, high=100)
HOUR = 3600 * 10**6


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    PLAN.save("plan.json")


def write_reports(name: str, seed: int) -> str:
    reports = perturb(np.full(50, 30.0), PLAN, np.random.default_rng(seed))
    with Path(name).open("wb") as file, ReportWriter(file, name) as writer:
        writer.write(reports.group, reports.value)
    return name


def summarise(*arguments: str) -> tuple[str, ...]:
    return ("summarise", *arguments, "-p", "plan.json", "-o", "all.summary")


def hold_lock(path: Path, held: object, leave: object) -> None:
    """Another process that has locked a store until it is told to leave."""
    with Store(path).locked():
        held.set()  # type: ignore[attr-defined]
        leave.wait(60)  # type: ignore[attr-defined]


@contextmanager
def locked_elsewhere(path: Path) -> Iterator[object]:
    context = multiprocessing.get_context("spawn")
    held, leave = context.Event(), context.Event()
    other = context.Process(target=hold_lock, args=(path, held, leave))
    other.start()
    try:
        assert held.wait(60)
        yield leave
    finally:
        leave.set()
        other.join(60)


def test_processes_that_add_at_the_same_time_lose_nothing(unpoison: Command) -> None:
    """Without the lock both load the same summary, and the last to write forgets the other."""
    names = [write_reports(f"{number}.csv", seed=number) for number in range(4)]
    unpoison.done(*summarise(names[0]))
    command = [sys.executable, "-m", "unpoison"]
    adding = [
        subprocess.Popen([*command, *summarise(name, "--add")], stdout=subprocess.DEVNULL)
        for name in names[1:]
    ]
    assert [process.wait(120) for process in adding] == [0, 0, 0]
    assert json.loads(unpoison.done(*summarise(*names, "--add", "--json")).out)["files"] == 0
    unpoison.done("summarise", *names, "-p", "plan.json", "-o", "once.summary")
    assert Summary.load("all.summary") == Summary.load("once.summary")


def test_a_second_process_waits_for_the_first(unpoison: Command) -> None:
    name = write_reports("0.csv", seed=1)
    store = Store(Path("all.summary"))
    with locked_elsewhere(store.path) as leave:
        waits: list[str] = []

        @contextmanager
        def progress(label: str, total: int | None) -> Iterator[object]:
            waits.append(label)
            leave.set()  # type: ignore[attr-defined]
            yield lambda done: None

        with store.locked(progress):  # type: ignore[arg-type]
            assert waits == ["Waiting for another process"]
    assert unpoison.done(*summarise(name, "--add", "--json")).json["files"] == 1


def test_a_process_that_waits_too_long_says_so(
    unpoison: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = write_reports("0.csv", seed=1)
    monkeypatch.setattr(store_module, "LOCK_SECONDS", 0.1)
    with locked_elsewhere(Path("all.summary")):
        assert "another process is still adding to it" in unpoison.refused(*summarise(name))
    assert not Path("all.summary").exists()


def test_the_lock_leaves_no_file_behind(unpoison: Command) -> None:
    unpoison.done(*summarise(write_reports("0.csv", seed=1)))
    names = {path.name for path in Path().iterdir()}
    assert names == {"plan.json", "0.csv", "all.summary", "all.summary.manifest.json"}


def test_threads_of_one_process_take_turns_too() -> None:
    store = Store(Path("all.summary"))
    order: list[str] = []

    def other() -> None:
        with Store(store.path).locked():
            order.append("second")

    with store.locked():
        thread = Thread(target=other)
        thread.start()
        thread.join(0.2)
        order.append("first")
    thread.join(60)
    assert order == ["first", "second"]


def test_a_summary_renamed_with_its_manifest_can_be_added_to(unpoison: Command) -> None:
    first, second = (write_reports(f"{number}.csv", seed=number) for number in (1, 2))
    unpoison.done(*summarise(first))
    Path("all.summary").rename("week.summary")
    Path("all.summary.manifest.json").rename("week.summary.manifest.json")
    week = ("-p", "plan.json", "-o", "week.summary", "--add", "--json")
    added = unpoison.done("summarise", first, second, *week).json
    assert (added["files"], added["known_files"]) == (1, 1)
    unpoison.done(*summarise(first, second))
    assert Summary.load("week.summary") == Summary.load("all.summary")


def test_a_file_that_a_manifest_names_is_never_overwritten(unpoison: Command) -> None:
    """The manifest of a renamed summary names a file that is another store's by now."""
    first, second = (write_reports(f"{number}.csv", seed=number) for number in (1, 2))
    unpoison.done(*summarise(first))
    Path("all.summary").rename("week.summary")
    Path("all.summary.manifest.json").rename("week.summary.manifest.json")
    unpoison.done(*summarise(second))
    other = Path("all.summary").read_bytes()
    week = ("-p", "plan.json", "-o", "week.summary", "--add")
    unpoison.done("summarise", write_reports("3.csv", seed=3), *week)
    assert Path("all.summary").read_bytes() == other
    assert Summary.load("week.summary").total_users == 100


def windowed(hour: int) -> Summary:
    empty = Summary.empty(PLAN)
    return Summary(PLAN, empty.counts, empty.sums, window=Window(hour * HOUR, (hour + 1) * HOUR))


def test_a_window_is_not_added_to_as_if_it_were_all(unpoison: Command) -> None:
    """Its sum would be written under the window's own name, over whatever has that name."""
    Store(Path("w"), HOUR).save({windowed(0).window: windowed(0)}, Manifest())
    (summary,) = Path("w").glob("*.summary")
    summary.rename("all.summary")
    manifest = json.loads(Path("w/windows.manifest.json").read_text())
    Path("all.summary.manifest.json").write_text(json.dumps(manifest))
    name = write_reports("0.csv", seed=1)
    assert "is of a window of time" in unpoison.refused(*summarise(name, "--add"))


def test_a_window_under_the_name_of_another_is_refused() -> None:
    store = Store(Path("w"), HOUR)
    store.save({windowed(hour).window: windowed(hour) for hour in (0, 1)}, Manifest())
    first, second = sorted(Path("w").glob("*.summary"))
    content = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(content)
    manifest = json.loads(store.manifest.read_text())
    names, digests = list(manifest["summaries"]), list(manifest["summaries"].values())
    manifest["summaries"] = dict(zip(names, reversed(digests), strict=True))
    store.manifest.write_text(json.dumps(manifest))
    with pytest.raises(InvalidFile, match="is of another window than its name says"):
        store.load(PLAN)


def test_summaries_are_read_once(unpoison: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"{hour}.summary" for hour in range(3)]
    for hour, name in enumerate(names):
        windowed(hour).save(name)
    loaded: list[object] = []
    load = Summary.load

    def watched(path: Path) -> Summary:
        loaded.append(path)
        return load(path)

    monkeypatch.setattr(Summary, "load", watched)
    assert "no window has enough reports" in unpoison.refused("estimate", *names)
    assert sorted(map(str, loaded)) == names


def test_one_summary_without_a_window_makes_one_sum_of_all() -> None:
    windowed(0).save("a.summary")
    windowed(1).save("b.summary")
    assert len(load_tally([Path("a.summary"), Path("b.summary")])) == 2
    Summary.empty(PLAN).save("c.summary")
    for order in (["a", "b", "c"], ["c", "a", "b"], ["a", "c", "b"]):
        assert list(load_tally([Path(f"{name}.summary") for name in order])) == [None]
