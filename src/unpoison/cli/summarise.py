"""`unpoison summarise` and `unpoison merge`: reports to summaries, summaries to one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from unpoison.cli.app import DropInvalid, Json, PlanFile
from unpoison.errors import IncompatibleSummaries, InvalidParameter

SUMMARY_SUFFIX = ".summary"
Output = Annotated[Path, typer.Option("--output", "-o", help="Where to write the summary.")]


def summarise(
    reports: Annotated[
        list[str], typer.Argument(help="Report files (Parquet, CSV), folders or globs.")
    ],
    plan: PlanFile,
    output: Output,
    drop_invalid: DropInvalid = False,
    json: Json = False,
) -> None:
    """Count reports into a summary: all that any estimator needs, a few hundred kilobytes.

    A file that is named twice counts once.

    Example: unpoison summarise reports/*.parquet -p plan.json -o today.summary
    """
    from unpoison.files import check_output, expand
    from unpoison.plan import Plan

    check_output(output, "--output")
    agreed, paths = Plan.load(plan), expand(reports)
    if output.resolve() in [path.resolve() for path in paths]:
        raise InvalidParameter("--output", "must not be one of the report files", output)
    summary = summarised(paths, agreed, drop_invalid)
    summary.save(output)
    show(summary, output, json)


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
    from unpoison.files import check_output, expand

    check_output(output, "--output")
    total = merged(expand(summaries, [SUMMARY_SUFFIX]))
    total.save(output)
    show(total, output, json)


def summarised(paths: Sequence[Path], plan: Any, drop_invalid: bool) -> Any:
    """A summary of report files, with a bar."""
    from unpoison.cli.progress import progress
    from unpoison.engines.local import summarise_files

    size = sum(path.stat().st_size for path in paths)
    with progress("Counting", size) as advance:
        return summarise_files(list(paths), plan, drop_invalid=drop_invalid, advance=advance)


def merged(paths: Sequence[Path]) -> Any:
    """The sum of summary files, with a bar."""
    from unpoison.cli.progress import progress
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
        import json as encoder

        facts = {
            "plan": summary.plan.fingerprint,
            "users": summary.total_users,
            "reports": summary.reports.tolist(),
            "invalid": summary.invalid,
            "output": str(output),
        }
        typer.echo(encoder.dumps(facts))
        return
    typer.echo(f"{int(summary.reports.sum())} reports of about {summary.total_users:.0f} users.")
    if summary.invalid:
        typer.echo(f"{summary.invalid} invalid reports were left out.")
    typer.echo(f"Written to {output}.")
