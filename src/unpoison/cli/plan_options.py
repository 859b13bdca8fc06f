"""Options that a plan is made of, for every command that makes one."""

from __future__ import annotations

from typing import Annotated

from unpoison.cli.options import number_option, option

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
MinEpsilon = Annotated[
    float | None, number_option("Smallest group budget, ε0 (baseline: ε_α).", default="1/16")
]
