"""`unpoison summarise` and `unpoison merge`: reports to summaries, summaries to one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from unpoison.cli.app import DropInvalid, Json, PlanFile, whole
from unpoison.errors import IncompatibleSummaries, InvalidParameter

Output = Annotated[Path, typer.Option("--output", "-o", help="Where to write the summary.")]


def summarise(
    reports: Annotated[
        list[str], typer.Argument(help="Report files (Parquet, CSV), folders or globs.")
    ],
    plan: PlanFile,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="Where to write the summary; a folder for windows."),
    ],
    add: Annotated[
        bool,
        typer.Option("--add", help="Add to the summary if it is there: only new files count."),
    ] = False,
    window: Annotated[
        str | None,
        typer.Option(help="A summary for each window of time: 15m, 1h, 1d, … (UTC)."),
    ] = None,
    time_column: Annotated[
        str,
        typer.Option(
            help="With --window: the column of moments (timestamps, ISO 8601 text or seconds "
            "since 1970)."
        ),
    ] = "timestamp",
    engine: Annotated[str, typer.Option(help="What counts: local or dask.")] = "local",
    scheduler: Annotated[
        str | None,
        typer.Option(
            show_default="a cluster on this machine",
            help="dask: the scheduler's address, such as tcp://10.0.0.1:8786.",
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            parser=whole,
            metavar="INTEGER",
            show_default="all cores",
            help="Threads, or processes of a cluster on this machine.",
        ),
    ] = None,
    skip_bad_files: Annotated[
        bool,
        typer.Option(
            "--skip-bad-files", help="Leave out files that cannot be counted: each is named."
        ),
    ] = False,
    drop_invalid: DropInvalid = False,
    json: Json = False,
) -> None:
    """Count reports into a summary: all that any estimator needs, a few hundred kilobytes.

    A file that is named twice counts once. A manifest beside the summary says which files it holds,
    by their content: with --add, those are not counted again.

    Example: unpoison summarise reports/*.parquet -p plan.json -o today.summary
    """
    from unpoison.engines import Job
    from unpoison.plan import Plan
    from unpoison.reports.writing import REPORT_SUFFIXES
    from unpoison.summary.store import Store
    from unpoison.summary.windows import parse_width
    from unpoison.system.paths import expand

    width = None if window is None else parse_width(window)
    store, scheduling = Store(output, width), _engine(engine, scheduler, workers)
    store.check(adding=add)
    agreed, paths = Plan.load(plan), expand(reports, REPORT_SUFFIXES)
    if output.resolve() in [path.resolve() for path in paths]:
        raise InvalidParameter("--output", "must not be one of the report files", output)
    job = Job(agreed, drop_invalid, width, time_column)
    outcome = _add(store, paths, job, scheduling, add=add, skip_bad_files=skip_bad_files)
    _tell(outcome, output, json)


def merge(
    summaries: Annotated[
        list[str],
        typer.Argument(help="Summary files of the same plan, folders of .summary files or globs."),
    ],
    output: Output,
    json: Json = False,
) -> None:
    """Add summaries of the same plan, in any order.

    A file that is named twice counts once.

    Example: unpoison merge monday.summary tuesday.summary -o week.summary
    """
    from unpoison.summary.store import SUMMARY_SUFFIX
    from unpoison.system.paths import check_output, expand

    check_output(output, "--output")
    total = merged(expand(summaries, [SUMMARY_SUFFIX]))
    total.save(output)
    show(total, output, json)


@dataclass(frozen=True)
class _Outcome:
    """What a run of `summarise` did."""

    total: Any
    windows: list[Any]
    counted: int
    known: int
    bad: dict[Path, Any]


def _engine(name: str, scheduler: str | None, workers: int | None) -> Any:
    from unpoison.engines import engines

    if workers is not None and workers < 1:
        raise InvalidParameter("--workers", "must be at least 1", workers)
    chosen, options = engines[name], {"workers": workers, "scheduler": scheduler}
    taken = {option: value for option, value in options.items() if value is not None}
    if name == "local" and scheduler is not None:
        raise InvalidParameter("--scheduler", "needs --engine dask", scheduler)
    try:
        return chosen(**taken)
    except TypeError:
        given = " and ".join(f"--{option}" for option in taken)
        raise InvalidParameter("--engine", f"takes no {given}", name) from None


def _add(
    store: Any, paths: Sequence[Path], job: Any, engine: Any, *, add: bool, skip_bad_files: bool
) -> _Outcome:
    """Count files that are not held yet, and write what there is then."""
    from unpoison.engines.counting import count_files
    from unpoison.summary.manifest import Manifest, new_files
    from unpoison.summary.tally import add_tally, summary_of

    tally, held = store.load(job.plan) if add else ({}, Manifest())
    fresh, known = new_files(paths, _digests(paths), held)
    found = _counted(fresh, partial(count_files, job=job, engine=engine), skip_bad_files)
    add_tally(tally, found.tally)
    _settle(tally, job)
    kept = {
        str(path.resolve()): content for path, content in fresh.items() if path not in found.bad
    }
    store.save(tally, held | kept)
    windows = sorted(window for window in tally if window is not None)
    total = summary_of(tally, job.plan)
    return _Outcome(total, windows, len(kept), len(known), found.bad)


def _settle(tally: Any, job: Any) -> None:
    """What belongs to no window (reports without a time that were left out) goes to the first."""
    from dataclasses import replace

    from unpoison.summary import Summary

    if job.window is None:
        tally.setdefault(None, Summary.empty(job.plan))
        return
    rest = tally.pop(None, None)
    if rest is not None and tally:
        first = min(tally)
        tally[first] = replace(tally[first], invalid=tally[first].invalid + rest.invalid)


def _digests(paths: Sequence[Path]) -> list[str]:
    """The content of each file as a hash, by all threads, with a bar."""
    from concurrent.futures import ThreadPoolExecutor

    from unpoison.output.progress import progress
    from unpoison.summary.manifest import digest
    from unpoison.system.cores import usable_cores

    found = []
    with (
        progress("Hashing", len(paths)) as advance,
        ThreadPoolExecutor(usable_cores()) as pool,
    ):
        for each in pool.map(digest, paths):
            found.append(each)
            advance(1)
    return found


def _counted(paths: Iterable[Path], counting: Any, skip_bad_files: bool) -> Any:
    """Files counted, with a bar."""
    from unpoison.output.progress import progress

    files = list(paths)
    with progress("Counting", sum(path.stat().st_size for path in files)) as advance:
        return counting(files, skip_bad_files=skip_bad_files, advance=advance)


def summarised(paths: Sequence[Path], plan: Any, drop_invalid: bool) -> Any:
    """A summary of report files, with a bar."""
    from unpoison.engines import Job, count_files

    found = _counted(paths, partial(count_files, job=Job(plan, drop_invalid)), False)
    return found.summary(plan)


def merged(paths: Sequence[Path]) -> Any:
    """The sum of summary files, with a bar."""
    from unpoison.output.progress import progress
    from unpoison.summary import Summary

    with progress("Merging", len(paths)) as advance:
        total = Summary.load(paths[0])
        for path in paths[1:]:
            try:
                total = total + Summary.load(path)
            except IncompatibleSummaries as fault:
                raise IncompatibleSummaries(f"{path}: {fault}") from None
            advance(1)
    return total


def show(summary: Any, output: Path, json: bool) -> None:
    """Say what a summary holds."""
    if json:
        _print_json(summary, output, {})
        return
    _say(summary)
    typer.echo(f"Written to {output}.")


def _tell(outcome: _Outcome, output: Path, json: bool) -> None:
    """Say what was counted, what was not, and why."""
    if json:
        facts = {
            "files": outcome.counted,
            "known_files": outcome.known,
            "bad_files": {str(path): str(fault) for path, fault in outcome.bad.items()},
            "windows": [str(window) for window in outcome.windows],
        }
        _print_json(outcome.total, output, facts)
        return
    _say(outcome.total)
    if outcome.known:
        typer.echo(f"{_files(outcome.known)} had been counted before; {outcome.counted} new.")
    for fault in outcome.bad.values():
        typer.echo(f"Left out: {fault}")
    if outcome.bad:
        typer.echo(f"{_files(len(outcome.bad))} left out, {outcome.counted} counted.")
    if outcome.windows:
        first, last = outcome.windows[0], outcome.windows[-1]
        typer.echo(f"{len(outcome.windows)} windows, {first.hull(last)}.")
    typer.echo(f"Written to {output}.")


def _files(number: int) -> str:
    return "1 file" if number == 1 else f"{number} files"


def _print_json(summary: Any, output: Path, more: dict[str, Any]) -> None:
    import json as encoder

    facts = {
        "plan": summary.plan.fingerprint,
        "users": summary.total_users,
        "reports": summary.reports.tolist(),
        "invalid": summary.invalid,
        "output": str(output),
    }
    typer.echo(encoder.dumps({**facts, **more}))


def _say(summary: Any) -> None:
    typer.echo(f"{int(summary.reports.sum())} reports of about {summary.total_users:.0f} users.")
    if summary.invalid:
        typer.echo(f"{summary.invalid} invalid reports were left out.")
