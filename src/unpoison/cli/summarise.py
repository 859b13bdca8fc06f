"""`unpoison summarise` and `unpoison merge`: reports to summaries, summaries to one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unpoison.cli.options import (
    DropInvalid,
    Json,
    PlanFile,
    check_at_least_one,
    option,
    workers_option,
)
from unpoison.errors import InvalidParameter

if TYPE_CHECKING:
    from unpoison.engines import Counting, Engine, Job
    from unpoison.plan import Plan
    from unpoison.summary import Summary
    from unpoison.summary.store import Addition
    from unpoison.summary.tally import Tally

Output = Annotated[Path, option("Where to write the summary.", "--output", "-o")]


def summarise(
    reports: Annotated[
        list[str], typer.Argument(help="Report files (Parquet, CSV), folders or globs.")
    ],
    plan: PlanFile,
    output: Annotated[
        Path, option("Where to write the summary; a folder for windows.", "--output", "-o")
    ],
    add: Annotated[
        bool, option("Add to the summary if it is there: only new files count.", "--add")
    ] = False,
    window: Annotated[
        str | None, option("A summary for each window of time: 15m, 1h, 1d, … (UTC).")
    ] = None,
    time_column: Annotated[
        str,
        option(
            "With --window: the column of moments (timestamps, ISO 8601 text or seconds "
            "since 1970)."
        ),
    ] = "timestamp",
    engine: Annotated[str, option("What counts: {engines}.")] = "local",
    scheduler: Annotated[
        str | None,
        option(
            "dask: the scheduler's address, such as tcp://10.0.0.1:8786.",
            default="a cluster on this machine",
        ),
    ] = None,
    workers: Annotated[
        int | None, workers_option("Threads, or processes of a cluster on this machine.")
    ] = None,
    skip_bad_files: Annotated[
        bool, option("Leave out files that cannot be counted: each is named.", "--skip-bad-files")
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
    from unpoison.output.progress import progress
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
    count = partial(_count, job=job, engine=scheduling, skip_bad_files=skip_bad_files)
    _show_addition(store.add(paths, agreed, count, keep=add, progress=progress), output, json)


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
    (total,) = load_with_progress(expand(summaries, [SUMMARY_SUFFIX]), by_window=False).values()
    total.save(output)
    _show_summary(total, output, json)


def _count(
    paths: Sequence[Path],
    advance: Callable[[int], None],
    *,
    job: Job,
    engine: Engine,
    skip_bad_files: bool,
) -> Counting:
    from unpoison.engines import count_files

    return count_files(paths, job, engine, skip_bad_files=skip_bad_files, advance=advance)


def _engine(name: str, scheduler: str | None, workers: int | None) -> Engine:
    from unpoison.engines import engines

    check_at_least_one("--workers", workers)
    engine_class, options = engines[name], {"workers": workers, "scheduler": scheduler}
    taken = {option: value for option, value in options.items() if value is not None}
    if name == "local" and scheduler is not None:
        raise InvalidParameter("--scheduler", "needs --engine dask", scheduler)
    try:
        return engine_class(**taken)
    except TypeError:
        given = " and ".join(f"--{option}" for option in taken)
        raise InvalidParameter("--engine", f"takes no {given}", name) from None


def count_with_progress(paths: Sequence[Path], plan: Plan, drop_invalid: bool) -> Summary:
    """A summary of report files, with a bar."""
    from unpoison.engines import Job, count_files
    from unpoison.output.progress import progress

    with progress("Counting", sum(path.stat().st_size for path in paths)) as advance:
        return count_files(paths, Job(plan, drop_invalid), advance=advance).summary(plan)


def load_with_progress(paths: Sequence[Path], *, by_window: bool) -> Tally:
    """Summary files by window, or all of them as one, with a bar."""
    from unpoison.output.progress import progress
    from unpoison.summary.tally import load_tally

    with progress("Merging", len(paths)) as advance:
        return load_tally(paths, by_window=by_window, advance=advance)


def _show_summary(summary: Summary, output: Path, json: bool) -> None:
    """Say what a summary holds."""
    if json:
        _print_json(summary, output, {})
        return
    _print_size(summary)
    typer.echo(f"Written to {output}.")


def _show_addition(addition: Addition, output: Path, json: bool) -> None:
    """Say what was counted, what was not, and why."""
    if json:
        facts = {
            "files": addition.counted,
            "known_files": addition.known,
            "bad_files": {str(path): str(fault) for path, fault in addition.bad.items()},
            "windows": [str(window) for window in addition.windows],
        }
        _print_json(addition.total, output, facts)
        return
    _print_size(addition.total)
    if addition.known:
        typer.echo(f"{_files(addition.known)} had been counted before; {addition.counted} new.")
    for fault in addition.bad.values():
        typer.echo(f"Left out: {fault}")
    if addition.bad:
        typer.echo(f"{_files(len(addition.bad))} left out, {addition.counted} counted.")
    if addition.windows:
        first, last = addition.windows[0], addition.windows[-1]
        typer.echo(f"{len(addition.windows)} windows, {first.hull(last)}.")
    typer.echo(f"Written to {output}.")


def _files(count: int) -> str:
    return "1 file" if count == 1 else f"{count} files"


def _print_json(summary: Summary, output: Path, more: dict[str, Any]) -> None:
    import json as encoder

    facts = {
        "plan": summary.plan.fingerprint,
        "users": summary.total_users,
        "reports": summary.reports.tolist(),
        "invalid": summary.invalid,
        "output": str(output),
    }
    typer.echo(encoder.dumps({**facts, **more}))


def _print_size(summary: Summary) -> None:
    typer.echo(f"{int(summary.reports.sum())} reports of about {summary.total_users:.0f} users.")
    if summary.invalid:
        typer.echo(f"{summary.invalid} invalid reports were left out.")
