"""Fig. COVID: frequencies of age groups by k-RR, with one and with three poisoned groups."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from unpoison.experiments.base import Experiment, experiments
from unpoison.experiments.cell import Cell
from unpoison.experiments.claims import Claim
from unpoison.experiments.line_comparisons import better_rival
from unpoison.experiments.panel import Lines, Panel
from unpoison.experiments.paper_settings import GAMMA
from unpoison.protocols import SCHEMES

BUDGETS = (0.25, 0.5, 1.0, 2.0)
"""ε of Fig. COVID."""
ATTACKS = {
    "targets:45-54 years": "group 10",
    "targets:45-54 years,50-64 years,55-64 years": "groups 10, 11, 12",
}
METHODS = ("ostrich", *SCHEMES)
OWN_RECORDS, RESAMPLED = 51_678, 1_000_000
"""The records of the published table, and as many users as the paper's synthetic datasets have."""
MEASURE_NAMES = {"squared_error": "error", "gamma_error": "γ̂", "located": "found"}
GAMMAS = (0.01, 0.02, 0.05, 0.1, 0.25)
"""From the paper's share of attackers down to one at which they are no longer located."""


class Frequencies(Experiment):
    """Poisoned age groups of COVID-19, counted from 1 as the paper does.

    >>> OwnFrequencies().cells(quick=True)[0].users
    51678
    """

    users = RESAMPLED

    def cells(self, quick: bool) -> list[Cell]:
        """A cell for both attacks at every ε."""
        return [
            Cell(
                dataset="covid-19",
                users=self.users,
                mechanism="k-rr",
                epsilon=epsilon,
                attack=attack,
                gamma=GAMMA,
                methods=METHODS,
                trials=5 if quick else 100,
            )
            for attack in ATTACKS
            for epsilon in BUDGETS
        ]

    def panels(self, quick: bool) -> list[Panel]:
        """MSE, |γ̂ − γ|, and how often the poisoned groups were found exactly."""
        return [
            Panel(
                f"{MEASURE_NAMES[measure]}: {label}, {self.users:,} users",
                measure,
                {"attack": attack, "gamma": GAMMA},
                floor=measure == "squared_error",
                logarithmic=measure != "located",
            )
            for measure in ("squared_error", "gamma_error", "located")
            for attack, label in ATTACKS.items()
        ]

    def claims(self, table: pa.Table, quick: bool) -> list[Claim]:
        """Ostrich stays where it is; ours improve with ε, and are far better."""
        lines = [panel.lines(table) for panel in self.panels(quick)[: len(ATTACKS)]]
        falls = [_fall(panel, scheme) for panel in lines for scheme in SCHEMES]
        steady = [_fall(panel, "ostrich") for panel in lines]
        times = [
            rival / error
            for panel in lines
            for scheme in SCHEMES
            for error, rival in zip(
                panel[scheme].values(), better_rival(panel).values(), strict=True
            )
        ]
        return [
            Claim(
                "the MSE of Ostrich keeps steady regardless of ε, while that of our schemes "
                "decreases significantly",
                max(steady) < 2 and min(falls) > 2,
                f"from ε = 1/4 to 2 Ostrich's falls to 1/{max(steady):.3g}, and those of our "
                f"schemes to between 1/{min(falls):.3g} and 1/{max(falls):.3g}, on grouped reports",
            ),
            Claim(
                "Ostrich significantly underperforms our schemes",
                min(times) > 2,
                f"its error on an ungrouped collection is {min(times):.3g} to {max(times):.3g} "
                "times theirs",
            ),
        ]


def _fall(lines: Lines, method: str) -> float:
    """The factor by which the error falls from the smallest ε to the largest."""
    line = lines[method]
    return line[min(line)] / line[max(line)]


@experiments.register("fig-frequency", order=9)
class ManyFrequencies(Frequencies):
    """The records resampled to a million.

    >>> ManyFrequencies().cells(quick=False)[0].trials
    100
    """

    title = "Fig. COVID: frequencies of a million users resampled from COVID-19"


@experiments.register("fig-frequency-own", order=10)
class OwnFrequencies(Frequencies):
    """The 51,678 records themselves, and how few attackers can still be located there.

    >>> {cell.gamma for cell in OwnFrequencies().cells(quick=True)} == set(GAMMAS)
    True
    """

    title = "Frequencies of COVID-19's own 51,678 records"
    users = OWN_RECORDS

    def cells(self, quick: bool) -> list[Cell]:
        """The cells of the paper's figure, also with fewer attackers."""
        cells = super().cells(quick)
        return [replace(cell, gamma=gamma) for gamma in GAMMAS[::-1] for cell in cells]

    def panels(self, quick: bool) -> list[Panel]:
        """The panels of the paper's figure, and how often few attackers were located, at each ε."""
        few = [
            Panel(
                f"found: {label}, ε = {epsilon:g}",
                "located",
                {"attack": attack, "epsilon": epsilon},
                against="gamma",
                logarithmic=False,
            )
            for attack, label in ATTACKS.items()
            for epsilon in BUDGETS
        ]
        return super().panels(quick) + few
