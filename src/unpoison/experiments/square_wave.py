"""Fig. SW: distributions (a), and the Square Wave's γ̂ (b) and MSE (c), (d) against ε."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from unpoison.experiments.base import Experiment, experiments
from unpoison.experiments.cell import Cell
from unpoison.experiments.claims import Claim
from unpoison.experiments.line_comparisons import wins_over_rivals
from unpoison.experiments.panel import Lines, Panel
from unpoison.experiments.paper_settings import BUDGETS, DATASET_NAMES, GAMMA, RIVALS
from unpoison.protocols import SCHEMES

PROBING_BUDGETS = (1 / 16, 1 / 8, 0.25, 0.5, 1.0, 2.0)
"""The budgets of one group alone, in which γ̂ is probed."""
DATASETS = {name: DATASET_NAMES[name] for name in ("beta-2-5", "beta-5-2")}
ATTACKS = {"piecewise": "uniform:3C/4,C", "square-wave": "uniform:1+b/2,1+b"}
METHODS = (*RIVALS, *SCHEMES)


@experiments.register("fig-sw", order=7)
class SquareWaveFigure(Experiment):
    """Poison on [1 + b/2, 1 + b] for SW, on [3C/4, C] for PM; a quarter of the users attack.

    >>> {cell.mechanism for cell in SquareWaveFigure().cells(quick=True)} == set(ATTACKS)
    True
    """

    title = "Fig. SW: distribution estimation, and the Square Wave"

    def cells(self, quick: bool) -> list[Cell]:
        """Every dataset and mechanism at every ε, with distributions; and one group alone."""
        users, trials = (100_000, 3) if quick else (1_000_000, 20)
        grouped = [
            Cell(
                dataset=dataset,
                users=users,
                mechanism=mechanism,
                epsilon=epsilon,
                attack=attack,
                gamma=GAMMA,
                methods=METHODS,
                trials=trials,
                statistic="distribution",
            )
            for mechanism, attack in ATTACKS.items()
            for dataset in DATASETS
            for epsilon in BUDGETS
        ]
        alone = [
            replace(cell, epsilon=epsilon, min_epsilon=epsilon, methods=("emf",), statistic="mean")
            for cell in grouped
            if cell.epsilon == BUDGETS[0] and cell.mechanism == "square-wave"
            for epsilon in PROBING_BUDGETS
        ]
        return grouped + alone

    def panels(self, quick: bool) -> list[Panel]:
        """(a) for both mechanisms, (b) by one group of all users, then (c) and (d)."""
        distances = [
            Panel(
                f"(a) {label}, {short}",
                "wasserstein",
                {"dataset": dataset, "mechanism": mechanism, "statistic": "distribution"},
            )
            for mechanism, short in (("piecewise", "PM"), ("square-wave", "SW"))
            for dataset, label in DATASETS.items()
        ]
        fractions = [
            Panel(f"(b) {label}, SW", "gamma_error", {"dataset": dataset, "statistic": "mean"})
            for dataset, label in DATASETS.items()
        ]
        errors = [
            Panel(
                f"({letter}) {label}, SW",
                "squared_error",
                {"dataset": dataset, "mechanism": "square-wave", "statistic": "distribution"},
                floor=True,
            )
            for letter, (dataset, label) in zip("cd", DATASETS.items(), strict=True)
        ]
        return distances + fractions + errors

    def claims(self, table: pa.Table, quick: bool) -> list[Claim]:
        """Better distributions than Ostrich's, γ̂ tends to γ, and better means in most cases."""
        panels = [panel.lines(table) for panel in self.panels(quick)]
        distances, fractions, errors = panels[:4], panels[4:6], panels[6:]
        gains = [
            1 - distance / lines["ostrich (ungrouped)"][epsilon]
            for lines in distances
            for scheme in SCHEMES
            for epsilon, distance in lines[scheme].items()
        ]
        return [
            Claim(
                "our schemes achieve at least 10 per cent higher utility than Ostrich "
                "(distributions)",
                min(gains) >= 0.1,
                f"{min(gains):.0%} to {max(gains):.1%} nearer in Wasserstein distance than "
                "Ostrich on an ungrouped collection",
            ),
            _fraction_claim(fractions),
            _error_claim(errors),
        ]


def _fraction_claim(fractions: list[Lines]) -> Claim:
    ends = [
        (lines["emf"][max(PROBING_BUDGETS)], lines["emf"][min(PROBING_BUDGETS)])
        for lines in fractions
    ]
    return Claim(
        "γ̂ becomes more accurate as ε decreases",
        all(last < first for first, last in ends),
        "; ".join(f"|γ̂ − γ| from {first:.3g} to {last:.3g}" for first, last in ends),
    )


def _error_claim(errors: list[Lines]) -> Claim:
    won = sum(wins_over_rivals(errors, scheme) for scheme in SCHEMES)
    cells = sum(len(lines[scheme]) for lines in errors for scheme in SCHEMES)
    return Claim(
        "our schemes outperform the others in most cases (MSE with SW)",
        2 * won > cells,
        f"in {won} of {cells} cells, against the better rival on an ungrouped collection",
    )
