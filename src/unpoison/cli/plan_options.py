"""Options that a plan is made of, for every command that makes one."""

from __future__ import annotations

from typing import Annotated

import typer

from unpoison.cli.app import number

Mechanism = Annotated[
    str | None,
    typer.Option(
        "--mechanism",
        "-m",
        show_default="piecewise",
        help="piecewise, square-wave or k-rr (simulation, as in the paper); the same with "
        "-integer for real devices.",
    ),
]
Epsilon = Annotated[
    float | None,
    typer.Option(
        "--epsilon",
        "-e",
        parser=number,
        metavar="NUMBER",
        show_default="1",
        help="A user's whole budget.",
    ),
]
MinEpsilon = Annotated[
    float | None,
    typer.Option(
        parser=number,
        metavar="NUMBER",
        show_default="1/16",
        help="Smallest group budget, ε0 (baseline: ε_α).",
    ),
]
