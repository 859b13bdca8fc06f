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
        typer.Argument(
            help="table-1, fig-datasets, fig-gamma, fig-mse, fig-robustness, fig-sw, "
            "fig-kmeans, fig-frequency, fig-frequency-own, fig-evasion; or all of these. "
            "Ours: joint, joint-nobody."
        ),
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

    A page, report.html, lays all out beside what the paper says, confirmed or not by this run.
    A run that was stopped goes on where it was: run the same command again.

    Example: unpoison reproduce fig-sw --quick
    """
    from unpoison.experiments import experiments, markdown, report
    from unpoison.output.markdown import check_markers, put_between_markers

    for option, value in (("--trials", trials), ("--workers", workers)):
        if value is not None and value < 1:
            raise InvalidParameter(option, "must be at least 1", value)
    everything = [name for name in experiments if experiments[name].of_the_paper]
    wanted = everything if names == ["all"] else list(dict.fromkeys(names))
    chosen = {name: experiments[name]() for name in wanted}
    for name in chosen:
        if page is not None:
            check_markers(page, name)
    sections = []
    for name, each in chosen.items():
        cells = _cells(each.cells(quick), fast, trials)
        section = _run(name, each, cells, output, workers, quick)
        sections.append(section)
        if page is not None:
            put_between_markers(page, name, markdown(_all_tables(section)))
        if not json:
            _show(section)
    _write(output / "report.html", report(sections, _command(names, quick, fast, trials)).encode())
    if json:
        _print_json(sections, output)
    else:
        typer.echo(f"Written: rows, tables and pictures in {output}, and {output}/report.html.")


def _command(names: list[str], quick: bool, fast: bool, trials: int | None) -> str:
    options = ["--quick"] * quick + ["--fast"] * fast
    if trials is not None:
        options.append(f"--trials {trials}")
    return " ".join(["unpoison reproduce", *names, *options])


def _all_tables(section: Any) -> dict[str, list[list[str]]]:
    """What was claimed first, then the numbers."""
    from unpoison.experiments import claims_table

    if not section.claims:
        return dict(section.tables)
    claims = claims_table(section.claims, section.claim_head)
    return {section.claim_title: claims, **section.tables}


def _show(section: Any) -> None:
    from unpoison.output.tables import print_table

    typer.echo(f"{section.title}\n")
    for title, rows in section.tables.items():
        typer.echo(title)
        print_table(rows[0], rows[1:])
        typer.echo("")
    for claim in section.claims:
        word = "confirmed" if claim.confirmed else "NOT confirmed"
        typer.echo(f'"{claim.text}": {word} ({claim.evidence}).')
    typer.echo("")


def _print_json(sections: list[Any], output: Path) -> None:
    import json as encoder
    from dataclasses import asdict

    facts = {
        section.name: {
            **{kind: str(output / f"{section.name}.{kind}") for kind in ("parquet", "md", "png")},
            "claims": [asdict(claim) for claim in section.claims],
        }
        for section in sections
    }
    typer.echo(encoder.dumps({**facts, "report": str(output / "report.html")}))


def _cells(cells: list[Any], fast: bool, trials: int | None) -> list[Any]:
    from dataclasses import replace

    changes = {} if trials is None else {"trials": trials}
    return [replace(cell, fast=fast or cell.fast, **changes) for cell in cells]


def _run(
    name: str, experiment: Any, cells: list[Any], output: Path, workers: int | None, quick: bool
) -> Any:
    """Run what is missing, write rows, tables and picture, and give all that the report needs."""
    import io

    import pyarrow.parquet as pq

    from unpoison.experiments import Section, markdown, run_cells
    from unpoison.output.plots import save
    from unpoison.output.progress import progress

    with progress(name, sum(cell.trials for cell in dict.fromkeys(cells))) as advance:
        table = run_cells(cells, output / "cells", workers, advance)
    rows = io.BytesIO()
    pq.write_table(table, rows)
    tables, picture = experiment.tables(table, quick), output / f"{name}.png"
    _write(output / f"{name}.parquet", rows.getvalue())
    save(experiment.draw(table, quick), picture)
    claims = experiment.claims(table, quick)
    section = Section(
        name, experiment.title, picture.read_bytes(), tables, claims, experiment.of_the_paper
    )
    _write(output / f"{name}.md", (markdown(_all_tables(section)) + "\n").encode())
    return section


def _write(path: Path, data: bytes) -> None:
    from unpoison.system.atomic_files import whole_file

    with whole_file(path) as file:
        file.write(data)
