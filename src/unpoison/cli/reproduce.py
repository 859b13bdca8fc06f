"""`unpoison reproduce`: runs experiments and writes their rows, tables, pictures and a report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unpoison.cli.options import (
    Json,
    check_at_least_one,
    option,
    whole_number_option,
    workers_option,
)

if TYPE_CHECKING:
    from unpoison.experiments import Cell, Experiment, Section


def reproduce(
    names: Annotated[
        list[str],
        typer.Argument(help="{paper_experiments}; or all of these. Ours: {other_experiments}."),
    ],
    output: Annotated[
        Path, option("Folder for rows, tables and pictures.", "--output", "-o")
    ] = Path("results"),
    quick: Annotated[bool, option("Fewer users and trials, for a first look.", "--quick")] = False,
    fast: Annotated[
        bool, option("Draw counts directly instead of every report.", "--fast")
    ] = False,
    trials: Annotated[
        int | None,
        whole_number_option("Independent collections a cell.", default="each experiment's own"),
    ] = None,
    page: Annotated[
        Path | None, option("Also write the tables into this Markdown file.", "--markdown")
    ] = None,
    workers: Annotated[int | None, workers_option("Processes at once.")] = None,
    json: Json = False,
) -> None:
    """Run experiments, and write their rows (Parquet), tables (Markdown) and pictures (PNG).

    A page, report.html, lays all out beside what the paper says, confirmed or not by this run.
    A run that was stopped goes on where it was: run the same command again.

    Example: unpoison reproduce fig-sw --quick
    """
    from unpoison.experiments import experiments, markdown, report
    from unpoison.output.markdown import check_markers, put_between_markers

    check_at_least_one("--trials", trials)
    check_at_least_one("--workers", workers)
    of_the_paper = [name for name in experiments if experiments[name].of_the_paper]
    requested = of_the_paper if names == ["all"] else list(dict.fromkeys(names))
    requested_experiments = {name: experiments[name]() for name in requested}
    # Before hours of work: a page that has no place for a table.
    for name in requested_experiments:
        if page is not None:
            check_markers(page, name)
    sections = []
    for name, experiment in requested_experiments.items():
        cells = adjusted_cells(experiment.cells(quick), fast, trials)
        section = _run(name, experiment, cells, output, workers, quick)
        sections.append(section)
        if page is not None:
            put_between_markers(page, name, markdown(_all_tables(section)))
        if not json:
            _print_section(section)
    _write(
        output / "report.html", report(sections, _command_line(names, quick, fast, trials)).encode()
    )
    if json:
        _print_json(sections, output)
    else:
        typer.echo(f"Written: rows, tables and pictures in {output}, and {output}/report.html.")


def _command_line(names: list[str], quick: bool, fast: bool, trials: int | None) -> str:
    options = ["--quick"] * quick + ["--fast"] * fast
    if trials is not None:
        options.append(f"--trials {trials}")
    return " ".join(["unpoison reproduce", *names, *options])


def _all_tables(section: Section) -> dict[str, list[list[str]]]:
    """The table of claims, if any, before the tables of numbers."""
    from unpoison.experiments import claims_table

    if not section.claims:
        return dict(section.tables)
    claims = claims_table(section.claims, section.claim_head)
    return {section.claim_title: claims, **section.tables}


def _print_section(section: Section) -> None:
    from unpoison.output.tables import print_table

    typer.echo(f"{section.title}\n")
    for title, rows in section.tables.items():
        typer.echo(title)
        print_table(rows[0], rows[1:])
        typer.echo("")
    for claim in section.claims:
        verdict = "confirmed" if claim.confirmed else "NOT confirmed"
        typer.echo(f'"{claim.text}": {verdict} ({claim.evidence}).')
    typer.echo("")


def _print_json(sections: list[Section], output: Path) -> None:
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


def adjusted_cells(cells: list[Cell], fast: bool, trials: int | None) -> list[Cell]:
    """An experiment's cells with `--fast` and `--trials` in the place of their own settings."""
    from dataclasses import replace

    return [replace(cell, fast=fast or cell.fast, trials=trials or cell.trials) for cell in cells]


def _run(
    name: str,
    experiment: Experiment,
    cells: list[Cell],
    output: Path,
    workers: int | None,
    quick: bool,
) -> Section:
    """Run the cells that are missing, and write rows, tables and picture of one experiment."""
    import io

    import pyarrow.parquet as pq

    from unpoison.experiments import Section, markdown, run_cells
    from unpoison.output.figure import save_figure
    from unpoison.output.progress import progress

    # Panels may share cells, each of which runs once.
    with progress(name, sum(cell.trials for cell in dict.fromkeys(cells))) as advance:
        table = run_cells(cells, output / "cells", workers, advance)
    # In memory first, so that the file appears whole or not at all.
    rows = io.BytesIO()
    pq.write_table(table, rows)
    tables, picture = experiment.tables(table, quick), output / f"{name}.png"
    _write(output / f"{name}.parquet", rows.getvalue())
    save_figure(experiment.draw(table, quick), picture)
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
