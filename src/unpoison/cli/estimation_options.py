"""Options of what is estimated and how, for every command that estimates."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from unpoison.cli.help_names import alternatives
from unpoison.cli.options import option, parse_number
from unpoison.errors import InvalidParameter

Weights = Annotated[
    str | None, option("How groups combine: optimal, or paper (Alg. 5).", default="optimal")
]
SideRule = Annotated[
    str | None,
    option(
        "How the poisoned side (of numbers, or of categories where the counts allow either) "
        "is chosen: variance (Alg. 3) or likelihood.",
        default="variance",
    ),
]
InitialMean = Annotated[
    str | None,
    option(
        "O': middle, pessimistic (Thm. 2), ems (Section V-D), or a value.",
        "--initial-mean",
        default="middle",
    ),
]
StatisticName = Annotated[
    str | None,
    option(
        "What to estimate: {statistics}.", "--statistic", default="mean; frequencies for categories"
    ),
]
PostProcessing = Annotated[
    str | None,
    option(
        "Frequencies: none (unbiased), clip (each into [0, 1]) or norm-sub (the nearest that "
        "add up to 1).",
        default="norm-sub",
    ),
]


def chosen_options(**options: str | float | None) -> dict[str, Any]:
    """The options that were given, as `FilterOptions` and defences take them.

    Others are left out rather than filled with defaults: a method refuses options that it does not
    take, and its own defaults are the library's.

    >>> chosen_options(weights=None, initial_mean="1/4")
    {'initial_mean': 0.25}
    """
    given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    if "initial_mean" in given:
        given["initial_mean"] = _parse_initial_mean(given["initial_mean"])
    return given


def _parse_initial_mean(text: str) -> str | float:
    """A rule for O' by its name, or a number in natural units."""
    from unpoison.estimate.options import INITIAL_MEANS

    if text in INITIAL_MEANS:
        return text
    try:
        return parse_number(text)
    except typer.BadParameter:
        rule = f"must be {alternatives([*INITIAL_MEANS, 'a number'])}"
        raise InvalidParameter("--initial-mean", rule, repr(text)) from None
