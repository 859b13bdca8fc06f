"""Options that a plan is made of, for every command that makes one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from unpoison.cli.options import number_option, option, parse_number

MechanismName = Annotated[
    str | None,
    option(
        "{simulation_mechanisms} (simulation, as in the paper); {device_mechanisms} for real "
        "devices.",
        "--mechanism",
        "-m",
        default="piecewise",
    ),
]
Epsilon = Annotated[
    float | None, number_option("A user's whole budget.", "--epsilon", "-e", default="1")
]
PAPER = "paper"
"""The name of the paper's ε0 in `plan.form`, which is not imported for a quick --help."""


if TYPE_CHECKING:
    MinEpsilonValue = float | str | None
else:
    # Typer knows no union of types; the parser alone says what the option takes.
    MinEpsilonValue = Any


def parse_min_epsilon(text: str) -> float | str:
    """A number or a fraction; or the name of the paper's setting, which the plan understands.

    >>> parse_min_epsilon("1/4"), parse_min_epsilon("paper")
    (0.25, 'paper')
    """
    return text if text == PAPER else parse_number(text)


MinEpsilon = Annotated[
    MinEpsilonValue,
    option(
        "Smallest group budget, ε0 (baseline: ε_α), with equal groups; paper is 1/16.",
        default="epsilon/8, and half of all users in the first group",
        metavar="NUMBER",
        parser=parse_min_epsilon,
    ),
]
