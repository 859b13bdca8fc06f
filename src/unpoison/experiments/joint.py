"""The joint filter beside the paper's schemes: under every kind of attack, and under none."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from unpoison.experiments.base import Experiment, experiments
from unpoison.experiments.cell import Cell
from unpoison.experiments.claims import Claim
from unpoison.experiments.joint_cells import joint_cell
from unpoison.experiments.joint_claims import (
    accuracy_claims,
    column,
    coverage_claim,
    fraction_claim,
    mse_over_floor,
    rows_where,
    schemes_claim,
)
from unpoison.experiments.panel import Panel
from unpoison.experiments.paper_settings import DATASET_NAMES
from unpoison.protocols import SCHEMES
from unpoison.protocols.joint import JOINT

USERS, QUICK_USERS = 1_000_000, 200_000
"""As many as the paper's synthetic datasets have; a fifth of them for a quick run."""
BUDGETS = (0.5, 2.0)
"""A small and the largest of the paper's budgets: the grid has 13 attacks and 4 datasets
already."""
GAMMAS = (0.1, 0.3)
"""A share of attackers below the paper's, and one above it."""
ATTACKS = {
    "uniform:3C/4,C": "[3C/4, C]",
    "uniform:C/2,C": "[C/2, C]",
    "uniform:O,C/2": "[O, C/2]",
    "uniform:O,C": "[O, C]",
    "point:C": "point at C",
    "gaussian:C/2,C": "Gaussian",
    "evasion:0.1": "evasion 0.1",
    "evasion:0.3": "evasion 0.3",
    "evasion:0.5": "evasion 0.5",
    "adaptive": "two largest ε",
    "opposite": "opposite sides",
    "uniform:-C,-C/2": "left side",
    "noise": "whole domain",
}
LABELS = {**ATTACKS, "none": "nobody"}
NOISE = "noise"
"""Attackers who look like honest users: γ̂ cannot tell how many they are."""


def _cell(
    dataset: str,
    epsilon: float,
    attack: str,
    gamma: float,
    methods: tuple[str, ...],
    trials: int,
    quick: bool,
) -> Cell:
    """A cell of a million users."""
    return joint_cell(
        Cell,
        dataset=dataset,
        users=QUICK_USERS if quick else USERS,
        epsilon=epsilon,
        attack=attack,
        gamma=gamma,
        methods=methods,
        trials=trials,
    )


@experiments.register("joint", order=11)
class JointFigure(Experiment):
    """Four datasets at two ε with two shares of attackers; counts are drawn directly.

    >>> len(JointFigure().cells(quick=False))
    216
    """

    title = "The joint filter beside the paper's schemes (ε0 = 1/16)"
    of_the_paper = False

    def cells(self, quick: bool) -> list[Cell]:
        """Every attack, and nobody."""
        attacked = [(attack, gamma) for attack in ATTACKS for gamma in GAMMAS]
        methods, trials = (JOINT, *SCHEMES), 1 if quick else 10
        return [
            _cell(dataset, epsilon, attack, gamma, methods, trials, quick)
            for attack, gamma in [*attacked, ("none", 0.0)]
            for dataset in (list(DATASET_NAMES)[:2] if quick else DATASET_NAMES)
            for epsilon in BUDGETS
        ]

    def panels(self, quick: bool) -> list[Panel]:
        """Errors, γ̂ and coverage against the attack, over all datasets."""
        errors = [
            Panel(
                f"ε = {epsilon:g}, γ = {gamma:g} and nobody",
                "over_floor",
                {"epsilon": epsilon, "gamma": (gamma, 0.0)},
                against="attack",
                labels=LABELS,
            )
            for epsilon in BUDGETS
            for gamma in GAMMAS
        ]
        others = [
            Panel("share of attackers", "gamma_error", against="attack", labels=LABELS),
            Panel("95 % intervals", "covered", against="attack", labels=LABELS, logarithmic=False),
        ]
        return errors + others

    def claims(self, table: pa.Table, quick: bool) -> list[Claim]:
        """Aims of accuracy, against the paper's schemes, of γ̂ and of intervals."""
        return [
            *accuracy_claims(table),
            schemes_claim(table, LABELS),
            fraction_claim(table, [attack for attack in ATTACKS if attack != NOISE]),
            coverage_claim(table, LABELS),
        ]


@experiments.register("joint-nobody", order=12)
class NobodyFigure(Experiment):
    """Nobody attacks, in a thousand collections: how often the p-value is small.

    >>> sum(cell.trials for cell in NobodyFigure().cells(quick=False))
    1000
    """

    title = "The joint filter when nobody attacks: false alarms"
    of_the_paper = False

    def cells(self, quick: bool) -> list[Cell]:
        """A cell for every dataset at both ε."""
        trials = 5 if quick else 125
        return [
            _cell(dataset, epsilon, "none", 0.0, (JOINT,), trials, quick)
            for dataset in DATASET_NAMES
            for epsilon in BUDGETS
        ]

    def panels(self, quick: bool) -> list[Panel]:
        """False alarms, errors and coverage."""
        return [
            Panel(title, measure, by="dataset", labels=DATASET_NAMES, logarithmic=False)
            for title, measure in (
                ("p < 0.05", "suspicious"),
                ("error", "over_floor"),
                ("95 % intervals", "covered"),
            )
        ]

    def claims(self, table: pa.Table, quick: bool) -> list[Claim]:
        """Claims about how often the p-value raises a false alarm, and the error then."""
        rows = rows_where(table)
        alarms, error = float(np.mean(column(rows, "suspicious"))), mse_over_floor(rows)
        return [
            Claim(
                "p < 0.05 in 3 to 7 per cent of collections without attackers",
                0.03 <= alarms <= 0.07,
                f"{alarms:.1%} of {rows.num_rows}",
            ),
            Claim(
                "mse/floor is at most 1.3 when nobody attacks",
                error <= 1.3,
                f"{error:.2f}",
            ),
        ]
