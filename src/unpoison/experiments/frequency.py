"""Fig. COVID: frequencies of age groups by k-RR, with one and with three poisoned groups."""

from __future__ import annotations

from dataclasses import replace

from unpoison.experiments.base import Experiment, experiments
from unpoison.experiments.cell import Cell
from unpoison.experiments.figure import Panel

BUDGETS = (0.25, 0.5, 1.0, 2.0)
ATTACKS = {
    "targets:45-54 years": "group 10",
    "targets:45-54 years,50-64 years,55-64 years": "groups 10, 11, 12",
}
METHODS = ("ostrich", "emf", "emf-star", "cemf-star")
OWN, MANY = 51_678, 1_000_000
GAMMA = 0.25
NAMES = {"squared_error": "error", "gamma_error": "γ̂", "located": "found"}
FEW_GAMMAS = (0.01, 0.02, 0.05, 0.1, 0.25)


class Frequencies(Experiment):
    """Poisoned age groups of COVID-19, counted from 1 as the paper does.

    >>> OwnFrequencies().cells(quick=True)[0].users
    51678
    """

    users = MANY

    def cells(self, quick: bool) -> list[Cell]:
        """Both attacks at every ε."""
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
                f"{NAMES[measure]}: {label}, {self.users:,} users",
                measure,
                {"attack": attack, "gamma": GAMMA},
                floor=measure == "squared_error",
                logarithmic=measure != "located",
            )
            for measure in ("squared_error", "gamma_error", "located")
            for attack, label in ATTACKS.items()
        ]


@experiments.register("fig-frequency")
class ManyFrequencies(Frequencies):
    """The records resampled to a million.

    >>> ManyFrequencies().cells(quick=False)[0].trials
    100
    """

    title = "Fig. COVID: frequencies of a million users resampled from COVID-19"


@experiments.register("fig-frequency-own")
class OwnFrequencies(Frequencies):
    """The 51,678 records themselves, and how few attackers can still be located there.

    >>> {cell.gamma for cell in OwnFrequencies().cells(quick=True)} == set(FEW_GAMMAS)
    True
    """

    title = "Frequencies of COVID-19's own 51,678 records"
    users = OWN

    def cells(self, quick: bool) -> list[Cell]:
        """Also with fewer attackers."""
        cells = super().cells(quick)
        return [replace(cell, gamma=gamma) for gamma in FEW_GAMMAS[::-1] for cell in cells]

    def panels(self, quick: bool) -> list[Panel]:
        """Also how often few attackers were located, at each ε."""
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
