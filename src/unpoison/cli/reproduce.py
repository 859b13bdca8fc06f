"""`unpoison reproduce`: tables and figures of the paper, and ours, by one command each."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from unpoison.cli.app import Json, whole
from unpoison.errors import InvalidParameter


def reproduce(
    names: Annotated[
        list[str],
        typer.Argument(help="fig-sw, fig-frequency, fig-frequency-own; or all."),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for rows, tables and pictures.")
    ] = Path("results"),
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer users and trials, for a first look.")
    ] = False,
    fast: Annotated[
        bool, typer.Option("--fast", help="Draw counts directly instead of every report.")
    ] = False,
    trials: Annotated[
        int | None,
        typer.Option(
            parser=whole,
            metavar="INTEGER",
            show_default="each experiment's own",
            help="Independent collections a cell.",
        ),
    ] = None,
    page: Annotated[
        Path | None,
        typer.Option("--markdown", help="Also write the tables into this Markdown file."),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            parser=whole, metavar="INTEGER", show_default="all cores", help="Processes at once."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Run experiments, and write their rows (Parquet), tables (Markdown) and pictures (PNG).

    A run that was stopped goes on where it was: run the same command again.

    Example: unpoison reproduce fig-sw --quick
    """
    from unpoison.experiments import experiments
    from unpoison.markdown import check_markers, put_between_markers

    for option, value in (("--trials", trials), ("--workers", workers)):
        if value is not None and value < 1:
            raise InvalidParameter(option, "must be at least 1", value)
    wanted = list(experiments) if names == ["all"] else list(dict.fromkeys(names))
    chosen = {name: experiments[name]() for name in wanted}
    for name in chosen:
        if page is not None:
            check_markers(page, name)
    written = {}
    for name, each in chosen.items():
        cells = _cells(each.cells(quick), fast, trials)
        written[name] = _run(name, each, cells, output, workers, quick)
        if page is not None:
            put_between_markers(page, name, _tables(written[name]))
        if not json:
            typer.echo(f"# {each.title}\n\n{_tables(written[name])}\n")
            typer.echo(f"Written: {', '.join(written[name].values())}\n")
    if json:
        import json as encoder

        typer.echo(encoder.dumps(written))


def _tables(paths: dict[str, str]) -> str:
    return Path(paths["md"]).read_text(encoding="utf-8").rstrip()


def _cells(cells: list[Any], fast: bool, trials: int | None) -> list[Any]:
    from dataclasses import replace

    changes: dict[str, Any] = {"fast": fast}
    if trials is not None:
        changes["trials"] = trials
    return [replace(cell, **changes) for cell in cells]


def _run(
    name: str, experiment: Any, cells: list[Any], output: Path, workers: int | None, quick: bool
) -> dict[str, str]:
    import pyarrow.parquet as pq

    from unpoison.cli.progress import progress
    from unpoison.experiments import draw, markdown, run_cells
    from unpoison.files import whole_file
    from unpoison.plots import save

    with progress(name, sum(cell.trials for cell in dict.fromkeys(cells))) as advance:
        table = run_cells(cells, output / "cells", workers, advance)
    panels = experiment.panels(quick)
    text = markdown(panels, table) + "\n"
    paths = {kind: output / f"{name}.{kind}" for kind in ("parquet", "md", "png")}
    with whole_file(paths["parquet"]) as file:
        pq.write_table(table, file)
    with whole_file(paths["md"]) as file:
        file.write(text.encode())
    save(draw(experiment.title, panels, table), paths["png"])
    return {kind: str(path) for kind, path in paths.items()}
