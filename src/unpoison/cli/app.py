"""The application that commands are added to, and what they share."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from unpoison._version import __version__
from unpoison.errors import InvalidParameter

app = typer.Typer(
    name="unpoison",
    help="Statistics under local differential privacy that survive colluding poisoners.",
    epilog="Exit codes: 0 done, 2 bad input (one line on standard error), 130 interrupted.",
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def number(text: str | float) -> float:
    """A number or a fraction, such as 0.5 or 1/16.

    >>> number("1/16")
    0.0625
    """
    above, slash, below = str(text).partition("/")
    try:
        value = float(above) / (float(below) if slash else 1.0)
    except (ValueError, ZeroDivisionError):
        value = math.nan
    if not math.isfinite(value):
        raise typer.BadParameter(f"must be a number like 0.5 or 1/16; received {text!r}")
    return value


def whole(text: str | int) -> int:
    """A whole number, such as 1000 or 1e6.

    >>> whole("1e6")
    1000000
    """
    with suppress(ValueError):
        return int(text)
    with suppress(typer.BadParameter):
        if (value := number(text)).is_integer():
            return int(value)
    raise typer.BadParameter(f"must be a whole number; received {text!r}")


def seed_number(text: str | int) -> int:
    """A whole number that a generator can start from."""
    value = whole(text)
    if value < 0:
        raise typer.BadParameter(f"must not be negative; received {value}")
    return value


def refuse_beside(option: str, others: Mapping[str, object]) -> None:
    """Refuse options (by the names of their variables) that would do nothing beside another."""
    for name, value in others.items():
        if value is not None:
            flag = "--" + name.replace("_", "-")
            raise InvalidParameter(option, f"cannot go with {flag}", "both")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"unpoison {__version__}")
        raise typer.Exit


@app.callback()
def about(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    plugin: Annotated[
        list[Path] | None,
        typer.Option(
            help="Python file with attacks, defences, datasets… of your own; may be repeated."
        ),
    ] = None,
) -> None:
    """Statistics under local differential privacy that survive colluding poisoners."""
    if plugin:
        from unpoison.plugins import load_plugins

        load_plugins(plugin)


PlanFile = Annotated[Path, typer.Option("--plan", "-p", help="Plan file (see `unpoison plan`).")]
Seed = Annotated[
    int | None,
    typer.Option(
        parser=seed_number,
        metavar="INTEGER",
        help="Seed, to repeat a run. For simulation only: seeded noise is not private.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
DropInvalid = Annotated[
    bool, typer.Option("--drop-invalid", help="Leave invalid reports out, and say how many.")
]
