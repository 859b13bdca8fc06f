"""Options of the paper's schemes, for every command that runs them."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from unpoison.cli.app import number
from unpoison.errors import InvalidParameter

Weights = Annotated[
    str | None,
    typer.Option(show_default="optimal", help="How groups combine: optimal, or paper (Alg. 5)."),
]
SideRule = Annotated[
    str | None,
    typer.Option(
        show_default="variance",
        help="How the poisoned side (of numbers, or of categories where the counts allow either) "
        "is chosen: variance (Alg. 3) or likelihood.",
    ),
]
InitialMean = Annotated[
    str | None,
    typer.Option(
        "--initial-mean",
        show_default="middle",
        help="O': middle, pessimistic (Thm. 2), ems (Section V-D), or a value.",
    ),
]
StatisticName = Annotated[
    str | None,
    typer.Option(
        "--statistic",
        show_default="mean; frequencies for categories",
        help="What to estimate: mean, distribution, or frequencies.",
    ),
]
PostProcessing = Annotated[
    str | None,
    typer.Option(
        show_default="norm-sub",
        help="Frequencies: none (unbiased), clip (each into [0, 1]) or norm-sub (the nearest that "
        "add up to 1).",
    ),
]


def given_options(**options: Any) -> dict[str, Any]:
    """The options that were given, as `FilterOptions` takes them."""
    given = {name: value for name, value in options.items() if value is not None}
    if "initial_mean" in given:
        given["initial_mean"] = _initial_mean(given["initial_mean"])
    return given


def _initial_mean(text: str) -> str | float:
    """`middle`, `pessimistic`, `ems`, or a number in natural units."""
    if text in ("middle", "pessimistic", "ems"):
        return text
    try:
        return number(text)
    except typer.BadParameter:
        rule = "must be middle, pessimistic, ems or a number"
        raise InvalidParameter("--initial-mean", rule, repr(text)) from None
