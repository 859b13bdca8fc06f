"""`unpoison perturb`: what devices do, for a table of values."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unpoison.cli.app import PlanFile, Seed
from unpoison.errors import InvalidFile, InvalidParameter, InvalidValue


def perturb(
    values: Annotated[Path, typer.Argument(help="Parquet or CSV file, one row a user.")],
    column: Annotated[str, typer.Option("--column", "-c", help="The column with the values.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Where to write the reports (.parquet or .csv).")
    ],
    plan: PlanFile = None,
    user_column: Annotated[
        str | None, typer.Option(help="An opaque column to keep beside the reports, as `user`.")
    ] = None,
    budget_column: Annotated[
        str | None, typer.Option(help="Personal budgets, for a plan with tiers.")
    ] = None,
    seed: Seed = None,
) -> None:
    """Perturb a column: each user gets a random group and sends that group's number of reports.

    Without --seed every bit comes from the operating system's generator.

    Example: unpoison perturb values.csv -c seconds -p plan.json -o reports.parquet
    """
    import numpy as np

    from unpoison.cli.progress import progress
    from unpoison.files import ReportWriter, read_batches, whole_file
    from unpoison.plan import Plan
    from unpoison.reports import Reporter

    if plan is None:
        raise InvalidParameter("--plan", "must be given", None)
    agreed = Plan.load(plan)
    if not values.exists():
        raise InvalidFile(values, "does not exist")
    reporter = Reporter(agreed, None if seed is None else np.random.default_rng(seed))
    columns = [column] + [name for name in (user_column, budget_column) if name]
    text = {column: agreed.categorical, user_column or "": True}
    users = rows = seen = 0
    with whole_file(output) as file, progress("Perturbing", values.stat().st_size) as advance:
        writer = ReportWriter(file, output)
        for batch in read_batches(values, columns, text):
            mine = batch.columns[column]
            try:
                made = reporter.report(mine, batch.columns.get(budget_column or ""))
            except InvalidValue as fault:
                raise fault.at(f"{values}, column {column!r}", batch.rows_before) from None
            names = batch.columns[user_column][made.user] if user_column else None
            writer.write(made.group, made.value, names)
            users, rows = users + len(mine), rows + len(made)
            advance(batch.bytes_read - seen)
            seen = batch.bytes_read
        if not users:
            raise InvalidFile(values, "holds no rows")
        writer.close()
    typer.echo(f"{users} users, {rows} reports, written to {output}.")
