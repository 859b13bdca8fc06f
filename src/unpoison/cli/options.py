"""Options that several commands share, and how numbers on the command line are read."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer
from typer.models import OptionInfo

from unpoison.errors import InvalidParameter


def parse_number(text: str | float) -> float:
    """A number or a fraction, such as 0.5 or 1/16.

    >>> parse_number("1/16")
    0.0625
    """
    numerator, slash, denominator = str(text).partition("/")
    try:
        value = float(numerator) / (float(denominator) if slash else 1.0)
    except (ValueError, ZeroDivisionError):
        value = math.nan
    if not math.isfinite(value):
        raise typer.BadParameter(f"must be a number like 0.5 or 1/16; received {text!r}")
    return value


def parse_whole_number(text: str | int) -> int:
    """A whole number, such as 1000 or 1e6.

    >>> parse_whole_number("1e6")
    1000000
    """
    # By int first: a float would round whole numbers beyond 2**53.
    with suppress(ValueError):
        return int(text)
    with suppress(typer.BadParameter):
        if (value := parse_number(text)).is_integer():
            return int(value)
    raise typer.BadParameter(f"must be a whole number; received {text!r}")


def parse_seed(text: str | int) -> int:
    """A whole number that NumPy's generators take as a seed: not a negative one.

    >>> parse_seed("7")
    7
    """
    value = parse_whole_number(text)
    if value < 0:
        raise typer.BadParameter(f"must not be negative; received {value}")
    return value


def option(
    description: str,
    *flags: str,
    default: bool | str = True,
    metavar: str | None = None,
    parser: Callable[[str], float | str] | None = None,
) -> OptionInfo:
    """An option, by default with the flag of its variable; the help shows `default` as such.

    >>> option("Where to write the plan.", "--output", "-o").help
    'Where to write the plan.'
    """
    made: OptionInfo = typer.Option(
        *flags, parser=parser, metavar=metavar, show_default=default, help=description
    )
    return made


def number_option(description: str, *flags: str, default: bool | str = True) -> OptionInfo:
    """An option that is a number or a fraction.

    >>> number_option("Share of attackers.", "--share", default="1/4").metavar
    'NUMBER'
    """
    return option(description, *flags, default=default, metavar="NUMBER", parser=parse_number)


def whole_number_option(description: str, *flags: str, default: bool | str = True) -> OptionInfo:
    """An option that is a whole number.

    >>> whole_number_option("Users.", "--users", "-n").metavar
    'INTEGER'
    """
    parser = parse_whole_number
    return option(description, *flags, default=default, metavar="INTEGER", parser=parser)


def workers_option(description: str) -> OptionInfo:
    """`--workers`: how many threads or processes; a command says which, and checks it.

    >>> workers_option("Processes at once.").show_default
    'all cores'
    """
    return whole_number_option(description, default="all cores")


def check_at_least_one(flag: str, value: int | None) -> None:
    """Refuse a count below 1; None is an option that was not given.

    >>> check_at_least_one("--workers", 0)
    Traceback (most recent call last):
        ...
    unpoison.errors.InvalidParameter: --workers must be at least 1; received 0
    """
    if value is not None and value < 1:
        raise InvalidParameter(flag, "must be at least 1", value)


def flag_of(name: str) -> str:
    """The flag of an option, from the name of its variable.

    >>> flag_of("min_epsilon")
    '--min-epsilon'
    """
    return "--" + name.replace("_", "-")


def refuse_together(flag: str, others: Mapping[str, object]) -> None:
    """Refuse options (by the names of their variables) that would have no effect beside another.

    >>> refuse_together("--plan", {"epsilon": None, "min_epsilon": 0.5})
    Traceback (most recent call last):
        ...
    unpoison.errors.InvalidParameter: --plan cannot go with --min-epsilon; received both
    """
    for name, value in others.items():
        if value is not None:
            raise InvalidParameter(flag, f"cannot go with {flag_of(name)}", "both")


def refuse_same_file(*outputs: Path | None) -> None:
    """Refuse outputs of one command that are one file; None is an option that was not given.

    >>> refuse_same_file(Path("plan.json"), None, Path("./plan.json"))
    Traceback (most recent call last):
        ...
    unpoison.errors.InvalidParameter: outputs must be different files; received plan.json
    """
    paths = [path.resolve() for path in outputs if path is not None]
    if len(set(paths)) < len(paths):
        raise InvalidParameter("outputs", "must be different files", paths[-1].name)


PlanFile = Annotated[Path, option("Plan file (see `unpoison plan`).", "--plan", "-p")]
Seed = Annotated[
    int | None,
    option(
        "Seed, to repeat a run. For simulation only: seeded noise is not private.",
        metavar="INTEGER",
        parser=parse_seed,
    ),
]
Json = Annotated[bool, option("Print one JSON object instead of text.", "--json")]
DropInvalid = Annotated[
    bool, option("Leave invalid reports out, and say how many.", "--drop-invalid")
]
