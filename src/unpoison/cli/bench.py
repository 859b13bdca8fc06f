"""`unpoison bench`: speed and memory as ratios to plain implementations, measured in one run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unpoison.cli.options import Json

if TYPE_CHECKING:
    from unpoison.bench.result import Result

MARKER = "bench"
"""The name of the markers in a Markdown file between which the table goes."""
HEADS = ["what", "unpoison", "against", "ratio", "target", ""]


def bench(
    names: Annotated[
        list[str] | None, typer.Argument(help="{benchmarks}; all if none is named.")
    ] = None,
    markdown: Annotated[
        Path | None, typer.Option(help="Also write the table into this Markdown file.")
    ] = None,
    json: Json = False,
) -> None:
    """Measure speed and memory as ratios to plain implementations, all in this run.

    A ratio over 1 in a line of time means that we are faster. Takes some minutes.

    Example: unpoison bench em dap
    """
    from unpoison.bench import benchmarks
    from unpoison.output.markdown import check_markers, markdown_table, put_between_markers
    from unpoison.output.progress import progress

    # Before minutes of measuring: a file that cannot take the table, a name that is none.
    if markdown is not None:
        check_markers(markdown, MARKER)
    chosen = [benchmarks[name] for name in names or list(benchmarks)]
    results: list[Result] = []
    with progress("Measuring", len(chosen)) as advance:
        for benchmark in chosen:
            results += benchmark()
            advance(1)
    if markdown is not None:
        put_between_markers(markdown, MARKER, markdown_table([HEADS, *_rows(results)]))
    if json:
        import json as encoder

        typer.echo(encoder.dumps([result.to_dict() for result in results]))
    else:
        _print_results(results)


def _rows(results: list[Result]) -> list[list[str]]:
    marks = {True: "met", False: "MISSED", None: ""}
    return [
        [
            result.name,
            result.ours,
            result.theirs,
            "–" if result.ratio is None else f"{result.ratio:.3g}×",
            result.target,
            marks[result.met],
        ]
        for result in results
    ]


def _print_results(results: list[Result]) -> None:
    from unpoison.output.tables import print_table

    print_table(HEADS, _rows(results))
