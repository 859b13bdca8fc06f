"""`unpoison summarise` and `unpoison merge`: reports to summaries, summaries to one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from unpoison.cli.app import DropInvalid, Json, PlanFile
from unpoison.errors import InvalidParameter

Output = Annotated[Path, typer.Option("--output", "-o", help="Where to write the summary.")]


def summarise(
    reports: Annotated[
        list[str], typer.Argument(help="Report files (Parquet, CSV), folders or globs.")
    ],
    output: Output,
    plan: PlanFile = None,
    drop_invalid: DropInvalid = False,
    json: Json = False,
) -> None:
    """Count reports into a summary: all that any estimator needs, a few hundred kilobytes.

    Example: unpoison summarise reports/*.parquet -p plan.json -o today.summary
    """
    summary = summarised(reports, plan, drop_invalid)
    save(summary, output)
    show(summary, output, json)


def merge(
    summaries: Annotated[list[str], typer.Argument(help="Summary files of the same plan.")],
    output: Output,
    json: Json = False,
) -> None:
    """Add summaries of the same plan, in any order.

    Example: unpoison merge monday.summary tuesday.summary -o week.summary
    """
    from unpoison.summary import Summary

    loaded = [Summary.load(path) for path in summaries]
    total = loaded[0]
    for each in loaded[1:]:
        total = total + each
    save(total, output)
    show(total, output, json)


def summarised(reports: list[str], plan: Path | None, drop_invalid: bool) -> Any:
    """A summary of report files, with a bar."""
    from unpoison.cli.progress import progress
    from unpoison.engines.local import summarise_files
    from unpoison.files import expand
    from unpoison.plan import Plan

    if plan is None:
        raise InvalidParameter("--plan", "must be given with report files", None)
    agreed = Plan.load(plan)
    paths = expand(list(reports))
    size = sum(path.stat().st_size for path in paths)
    with progress("Counting", size) as advance:
        return summarise_files(list(paths), agreed, drop_invalid=drop_invalid, advance=advance)


def save(summary: Any, output: Path) -> None:
    """Write a summary file, whole or not at all."""
    from unpoison.files import whole_file

    with whole_file(output) as file:
        file.write(summary.to_bytes())


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
