"""`unpoison bench`: speed as ratios, measured in one run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from unpoison.cli.app import Json


def bench(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="k-rr, engines, collector, dap, em, ems, joint, perturb, scaling; all if none "
            "is named."
        ),
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

    if markdown is not None:
        check_markers(markdown, MARKER)
    chosen = [(name, benchmarks[name]) for name in names or list(benchmarks)]
    results: list[Any] = []
    with progress("Measuring", len(chosen)) as advance:
        for _, run in chosen:
            results += run()
            advance(1)
    if markdown is not None:
        put_between_markers(markdown, MARKER, markdown_table([HEADS, *_rows(results)]))
    if json:
        import json as encoder

        typer.echo(encoder.dumps([result.to_dict() for result in results]))
    else:
        _show(results)


MARKER = "bench"
HEADS = ["what", "unpoison", "against", "ratio", "target", ""]


def _rows(results: list[Any]) -> list[list[str]]:
    marks = {True: "met", False: "MISSED", None: ""}
    return [
        [
            each.name,
            each.ours,
            each.theirs,
            "–" if each.ratio is None else f"{each.ratio:.3g}×",
            each.target,
            marks[each.met],
        ]
        for each in results
    ]


def _show(results: list[Any]) -> None:
    from unpoison.output.tables import print_table

    print_table(HEADS, _rows(results))
