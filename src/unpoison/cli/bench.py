"""`unpoison bench`: speed and memory as ratios to plain implementations, measured in one run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unpoison.cli.options import Json, option

if TYPE_CHECKING:
    from unpoison.bench.result import Row

MARKER = "bench"
"""The name of the markers in a Markdown file between which the tables go."""
Tables = dict[tuple[str, ...], list[list[str]]]
"""The lines of each table by its heads."""


def bench(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="{benchmarks}; all if none is named, but for joint-constants, which takes longest."
        ),
    ] = None,
    markdown: Annotated[
        Path | None, option("Also write the table into this Markdown file.")
    ] = None,
    json: Json = False,
) -> None:
    """Measure speed and memory as ratios to plain implementations, all in this run.

    A ratio over 1 in a line of time means that we are faster. Takes some minutes.

    Example: unpoison bench em dap
    """
    from unpoison.bench import benchmarks, default_benchmarks
    from unpoison.output.markdown import check_markers, markdown_table, put_between_markers
    from unpoison.output.progress import progress

    # Before minutes of measuring: a file that cannot take the table, a name that is none.
    if markdown is not None:
        check_markers(markdown, MARKER)
    requested = [benchmarks[name] for name in names or default_benchmarks()]
    rows: list[Row] = []
    with progress("Measuring", len(requested)) as advance:
        for benchmark in requested:
            rows += benchmark()
            advance(1)
    tables = _tables(rows)
    if markdown is not None:
        texts = [markdown_table([heads, *lines]) for heads, lines in tables.items()]
        put_between_markers(markdown, MARKER, "\n\n".join(texts))
    if json:
        import json as encoder

        typer.echo(encoder.dumps([row.to_dict() for row in rows]))
    else:
        _print_tables(tables)


def _tables(rows: list[Row]) -> Tables:
    """Rows with the same heads stand in one table, in the order in which they were measured."""
    tables: Tables = {}
    for row in rows:
        tables.setdefault(row.HEADS, []).append(row.cells())
    return tables


def _print_tables(tables: Tables) -> None:
    from unpoison.output.tables import print_table

    for heads, lines in tables.items():
        print_table(list(heads), lines)
