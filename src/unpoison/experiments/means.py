"""Fig. MSE, Fig. Robustness and Fig. evasion: the error of the mean under DAP."""

from __future__ import annotations

import pyarrow as pa

from unpoison.experiments.base import Experiment, experiments
from unpoison.experiments.cell import Cell
from unpoison.experiments.claims import Claim
from unpoison.experiments.line_comparisons import wins, wins_over_rivals
from unpoison.experiments.panel import Panel
from unpoison.experiments.paper_settings import (
    BUDGETS,
    DATASET_NAMES,
    GAMMA,
    POISON_RANGES,
    RIVALS,
    users_of,
)
from unpoison.protocols import SCHEMES

GAMMAS = (0.05, 0.1, 0.2, 0.3, 0.4)
"""Shares of attackers in Fig. Robustness (a) and (b)."""
HALVES = {"O,C/2": "[O, C/2]", "C/2,C": "[C/2, C]"}
EVASIVE_SHARES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)
"""a, the share of evasive poison, over the axis of Fig. evasion."""


def mean_cell(dataset: str, epsilon: float, attack: str, gamma: float, quick: bool) -> Cell:
    """A cell of all schemes and rivals on one collection with ε0 = 1/16.

    >>> mean_cell("taxi", 1.0, "none", 0.0, quick=True).trials
    2
    """
    return Cell(
        dataset=dataset,
        users=users_of(dataset, quick),
        mechanism="piecewise",
        epsilon=epsilon,
        attack=attack,
        gamma=gamma,
        methods=(*RIVALS, *SCHEMES),
        trials=2 if quick else 10,
    )


@experiments.register("fig-mse", order=4)
class MeanFigure(Experiment):
    """Sixteen panels: four ranges of poison by four datasets.

    >>> len(MeanFigure().panels(quick=True))
    16
    """

    title = "Fig. MSE: the error of the mean against ε"

    def cells(self, quick: bool) -> list[Cell]:
        """Every dataset and range at every ε."""
        return [
            mean_cell(dataset, epsilon, attack, GAMMA, quick)
            for attack in POISON_RANGES
            for dataset in DATASET_NAMES
            for epsilon in BUDGETS
        ]

    def panels(self, quick: bool) -> list[Panel]:
        """(a) to (p), as in the paper."""
        pairs = [(attack, dataset) for attack in POISON_RANGES for dataset in DATASET_NAMES]
        return [
            Panel(
                f"({letter}) {DATASET_NAMES[dataset]}, {POISON_RANGES[attack]}",
                "squared_error",
                {"dataset": dataset, "attack": attack},
                floor=True,
            )
            for letter, (attack, dataset) in zip("abcdefghijklmnop", pairs, strict=True)
        ]

    def claims(self, table: pa.Table, quick: bool) -> list[Claim]:
        """The schemes win; EMF* is better than EMF, CEMF* better than EMF*, in most cells."""
        panels = [panel.lines(table) for panel in self.panels(quick)]
        cells = sum(len(lines["emf"]) for lines in panels)
        beaten = {scheme: wins_over_rivals(panels, scheme) for scheme in SCHEMES}
        star = wins(panels, "emf-star", "emf")
        concentrated = wins(panels, "cemf-star", "emf-star")
        shown = ", ".join(f"{name} in {number}" for name, number in beaten.items())
        return [
            Claim(
                "all proposed schemes outperform Ostrich and Trimming",
                all(number == cells for number in beaten.values()),
                f"{shown} of {cells} cells, against the better rival on an ungrouped collection",
            ),
            Claim(
                "EMF* is better than EMF in most cases",
                star > cells / 2,
                f"in {star} of {cells} cells",
            ),
            Claim(
                "CEMF* is better than EMF* in most cases",
                concentrated > cells / 2,
                f"in {concentrated} of {cells} cells",
            ),
        ]


@experiments.register("fig-robustness", order=5)
class RobustnessFigure(Experiment):
    """Taxi at ε = 1: more and more attackers, and other distributions of poison.

    >>> RobustnessFigure().panels(quick=True)[0].against
    'gamma'
    """

    title = "Fig. Robustness: the error against γ, and for other poison (Taxi, ε = 1)"

    def cells(self, quick: bool) -> list[Cell]:
        """(a), (b) by γ; (c), (d) by the shape of the poison."""
        growing = [
            mean_cell("taxi", 1.0, f"uniform:{ends}", gamma, quick)
            for ends in HALVES
            for gamma in GAMMAS
        ]
        shaped = [
            mean_cell("taxi", 1.0, attack, GAMMA, quick)
            for ends in HALVES
            for attack in _shapes(ends)
        ]
        return growing + shaped

    def panels(self, quick: bool) -> list[Panel]:
        """The panels of the paper's figure."""
        growing = [
            Panel(
                f"({letter}) Taxi, {label}",
                "squared_error",
                {"attack": f"uniform:{ends}", "gamma": GAMMAS},
                against="gamma",
                floor=True,
            )
            for letter, (ends, label) in zip("ab", HALVES.items(), strict=True)
        ]
        shaped = [
            Panel(
                f"({letter}) Taxi, {label}",
                "squared_error",
                {"attack": tuple(_shapes(ends)), "gamma": GAMMA},
                against="attack",
                labels=_shapes(ends),
                floor=True,
            )
            for letter, (ends, label) in zip("cd", HALVES.items(), strict=True)
        ]
        return growing + shaped

    def claims(self, table: pa.Table, quick: bool) -> list[Claim]:
        """Low errors for many attackers, and for all shapes."""
        panels = [panel.lines(table) for panel in self.panels(quick)]
        cells = sum(len(lines["emf-star"]) for lines in panels)
        won = wins_over_rivals(panels, "emf-star")
        return [
            Claim(
                "the proposed schemes consistently outperform others for other proportions and "
                "distributions of poison",
                won == cells,
                f"EMF* does in {won} of {cells} cells",
            )
        ]


def _shapes(ends: str) -> dict[str, str]:
    """Attacks on a range by the distribution of their poison, with their names."""
    return {
        f"uniform:{ends}": "uniform",
        f"gaussian:{ends}": "Gaussian",
        f"beta:{ends},1,6": "Beta(1,6)",
        f"beta:{ends},6,1": "Beta(6,1)",
        f"triangular:{ends}": "triangular",
    }


@experiments.register("fig-evasion", order=6)
class EvasionFigure(Experiment):
    """A share a of the poison at −C/2, the rest on [C/2, C], at ε = 1.

    >>> len(EvasionFigure().panels(quick=True))
    4
    """

    title = "Fig. evasion: the error against the share of evasive poison (ε = 1)"

    def cells(self, quick: bool) -> list[Cell]:
        """Every dataset and share."""
        return [
            mean_cell(dataset, 1.0, f"evasion:{share:g}", GAMMA, quick)
            for dataset in DATASET_NAMES
            for share in EVASIVE_SHARES
        ]

    def panels(self, quick: bool) -> list[Panel]:
        """One for each dataset; the paper's captions of the first two are swapped."""
        labels = {f"evasion:{share:g}": f"{share:g}" for share in EVASIVE_SHARES}
        return [
            Panel(
                f"({letter}) {DATASET_NAMES[dataset]}",
                "squared_error",
                {"dataset": dataset},
                against="attack",
                labels=labels,
                floor=True,
            )
            for letter, dataset in zip("abcd", DATASET_NAMES, strict=True)
        ]

    def claims(self, table: pa.Table, quick: bool) -> list[Claim]:
        """Evasion has a threshold, above which the wrong side is chosen."""
        thresholds: dict[str, float | None] = {}
        for panel in self.panels(quick):
            line = panel.lines(table)["emf-star"]
            start = line["evasion:0"]
            worse = [share for share in EVASIVE_SHARES if line[f"evasion:{share:g}"] > 10 * start]
            thresholds[DATASET_NAMES[panel.where["dataset"]]] = worse[0] if worse else None
        within = all(share is not None and 0.2 <= share <= 0.4 for share in thresholds.values())
        shown = [
            f"{name} {'none' if share is None else share}" for name, share in thresholds.items()
        ]
        return [
            Claim(
                "evasion has a threshold at 20 to 30 per cent",
                within,
                "the share from which EMF*'s error is over 10 times that without evasion: "
                + ", ".join(shown),
            )
        ]
