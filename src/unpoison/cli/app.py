"""The application that commands are added to, and what they share."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Annotated

import typer

from unpoison._version import __version__
from unpoison.errors import InvalidParameter

app = typer.Typer(
    name="unpoison",
    help="Statistics under local differential privacy that survive colluding poisoners.",
    epilog="Exit codes: 0 done, 2 bad input (one line on standard error), 130 interrupted.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def number(text: str | float) -> float:
    """A number or a fraction, such as 0.5 or 1/16.

    >>> number("1/16")
    0.0625
    """
    try:
        return float(Fraction(str(text).strip()))
    except (ValueError, ZeroDivisionError):
        raise InvalidParameter("a number", "must be like 0.5 or 1/16", repr(text)) from None


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"unpoison {__version__}")
        raise typer.Exit


@app.callback()
def about(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Statistics under local differential privacy that survive colluding poisoners."""


PlanFile = Annotated[
    Path | None, typer.Option("--plan", "-p", help="Plan file (see `unpoison plan`).")
]
Seed = Annotated[
    int | None,
    typer.Option(help="Seed, to repeat a run. For simulation only: seeded noise is not private."),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")]
DropInvalid = Annotated[
    bool, typer.Option("--drop-invalid", help="Leave invalid reports out, and say how many.")
]
