"""`unpoison bench`: speed as ratios, measured in one run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from unpoison.cli.app import Json


def bench(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="perturb, em, dap, scaling, summarise; all if none is named."),
    ] = None,
    markdown: Annotated[
        Path | None, typer.Option(help="Also write the table into this Markdown file.")
    ] = None,
    json: Json = False,
) -> None:
    """Measure speed and memory as ratios to plain implementations, all in this run.

    A ratio over 1 in a line of time means that we are faster. Takes about two minutes.

    Example: unpoison bench em dap
    """
    from unpoison.bench import benchmarks
    from unpoison.cli.progress import progress

    if markdown is not None:
        _table_place(markdown)
    chosen = [(name, benchmarks[name]) for name in names or list(benchmarks)]
    results: list[Any] = []
    with progress("Measuring", len(chosen)) as advance:
        for _, run in chosen:
            results += run()
            advance(1)
    if markdown is not None:
        _write(markdown, results)
    if json:
        import json as encoder

        typer.echo(encoder.dumps([result.to_dict() for result in results]))
    else:
        _show(results)


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
    from unpoison.cli.tables import print_table

    print_table(HEADS, _rows(results))


BEGIN, END = "<!-- bench:begin -->", "<!-- bench:end -->"


def _table_place(path: Path) -> tuple[str, str]:
    """What stands before and after the table: the file must have its two markers."""
    from unpoison.errors import InvalidFile

    text = path.read_text(encoding="utf-8")
    if BEGIN not in text or END not in text:
        raise InvalidFile(path, f"must have the markers {BEGIN} and {END}")
    return text.split(BEGIN)[0], text.split(END)[1]


def _write(path: Path, results: list[Any]) -> None:
    """Put the table between the two markers."""
    from unpoison.files import whole_file

    before, after = _table_place(path)
    lines = [HEADS, ["---"] * len(HEADS), *_rows(results)]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    with whole_file(path) as file:
        file.write(f"{before}{BEGIN}\n\n{table}\n\n{END}{after}".encode())
