"""`unpoison perturb`: draws the reports of a whole table of values, as devices would."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unpoison.cli.options import Json, PlanFile, Seed, option
from unpoison.errors import InvalidFile, InvalidParameter, InvalidValue

if TYPE_CHECKING:
    import numpy as np

    from unpoison.reports import Reporter, Reports

REPORTS_AT_ONCE = 2**20
"""Reports that are drawn together: 8 MB a column, however many reports a user sends."""


def perturb(
    values: Annotated[Path, typer.Argument(help="Parquet or CSV file, one row a user.")],
    column: Annotated[str, option("The column with the values.", "--column", "-c")],
    plan: PlanFile,
    output: Annotated[
        Path, option("Where to write the reports (.parquet or .csv).", "--output", "-o")
    ],
    user_column: Annotated[
        str | None, option("An opaque column to keep beside the reports, as `user`.")
    ] = None,
    budget_column: Annotated[str | None, option("Personal budgets, for a plan with tiers.")] = None,
    seed: Seed = None,
    json: Json = False,
) -> None:
    """Perturb a column: each user gets a random group and sends that group's number of reports.

    Without --seed every bit comes from the operating system's generator.

    Example: unpoison perturb values.csv -c seconds -p plan.json -o reports.parquet
    """
    import numpy as np

    from unpoison.output.progress import progress
    from unpoison.plan import Plan
    from unpoison.reports import Reporter
    from unpoison.reports.writing import ReportWriter
    from unpoison.system.atomic_files import whole_file

    agreed = Plan.load(plan)
    _check_files_and_columns(values, output, column, user_column, budget_column)
    reporter = Reporter(agreed, None if seed is None else np.random.default_rng(seed))
    whole = agreed.group_mechanisms[0].discrete
    users = rows = 0
    with (
        whole_file(output) as file,
        ReportWriter(file, output, whole=whole, users=user_column is not None) as writer,
        progress("Perturbing", values.stat().st_size) as advance,
    ):
        blocks = _draw_in_blocks(reporter, values, column, user_column, budget_column)
        for block, reports, bytes_read in blocks:
            names = None if user_column is None else block[user_column][reports.user]
            writer.write(reports.group, reports.value, names)
            users, rows = users + len(block[column]), rows + len(reports)
            advance(bytes_read)
        if not users:
            raise InvalidFile(values, "holds no rows")
    _print_counts(users, rows, output, json)
    # A seed says that this is a simulation, where floating-point noise is as good.
    if not (json or agreed.group_mechanisms[0].discrete or seed is not None):
        typer.echo(
            f"Note: {agreed.mechanism} draws floating-point noise, which is for simulation; on "
            f"real devices use {agreed.mechanism}-integer."
        )


def _check_files_and_columns(
    values: Path, output: Path, column: str, user_column: str | None, budget_column: str | None
) -> None:
    from unpoison.reports.writing import REPORT_SUFFIXES
    from unpoison.system.paths import check_input, check_output

    check_output(output, "--output", REPORT_SUFFIXES)
    check_input(values)
    if output.exists() and output.samefile(values):
        raise InvalidParameter("--output", "must not be the file of the values", output)
    for flag, other in (("--user-column", user_column), ("--budget-column", budget_column)):
        if other == column:
            raise InvalidParameter(flag, "must not be the column of the values", column)


def _draw_in_blocks(
    reporter: Reporter,
    values: Path,
    column: str,
    user_column: str | None,
    budget_column: str | None,
) -> Iterator[tuple[dict[str, np.ndarray], Reports, int]]:
    """Columns of a block of users, their reports, and how many bytes were read for them."""
    from unpoison.reports.reading import read_batches

    plan = reporter.plan
    columns = [name for name in (column, user_column, budget_column) if name is not None]
    text = [user_column or ""] + ([column] if plan.categorical else [])
    # A block may be far smaller than a batch: users of the smallest ε send many reports each.
    step = max(1, REPORTS_AT_ONCE // max(group.reports for group in plan.all_groups))
    bytes_before = 0
    for batch in read_batches(values, columns, text):
        for first in range(0, len(batch.columns[column]), step):
            block = {name: cells[first : first + step] for name, cells in batch.columns.items()}
            try:
                reports = reporter.report(block[column], block.get(budget_column or ""))
            except InvalidValue as fault:
                faulty = budget_column if fault.rule.startswith("budgets") else column
                source = f"{values}, column {faulty!r}"
                raise fault.at(source, batch.rows_before + first) from None
            yield block, reports, batch.bytes_read - bytes_before
            bytes_before = batch.bytes_read


def _print_counts(users: int, rows: int, output: Path, json: bool) -> None:
    if json:
        import json as encoder

        typer.echo(encoder.dumps({"users": users, "reports": rows, "output": str(output)}))
    else:
        typer.echo(f"{users} users, {rows} reports, written to {output}.")
