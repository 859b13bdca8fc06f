"""The joint filter when attackers act in some groups only, and report honestly in the others."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pyarrow as pa

from unpoison.experiments.base import Experiment, experiments
from unpoison.experiments.cell import Cell
from unpoison.experiments.claims import Claim
from unpoison.experiments.joint_cells import joint_cell
from unpoison.experiments.joint_claims import mse_over_floor, rows_where
from unpoison.experiments.panel import Panel
from unpoison.types import FloatArray

USERS, QUICK_USERS = 200_000, 50_000
"""Enough for a group to have tens of thousands; fewer in a quick run, which is to take minutes."""
GROUPS = 5
"""The number that EPSILON and MIN_EPSILON lead to."""
EPSILON, MIN_EPSILON, GAMMA = 1.0, 1 / 16, 0.2
"""The middle one of the paper's budgets, its ε0, and one of five users as attackers."""
POISON = {
    ("beta-2-5", "piecewise"): {
        "uniform:3C/4,C": "[3C/4, C]",
        "point:C": "point at C",
        "uniform:O,C": "[O, C]",
    },
    ("covid-19", "k-rr"): {
        "targets:45-54 years": "one category",
        "targets:45-54 years,50-64 years,55-64 years": "three categories",
        "maximal-gain": "the rarest category",
    },
}
"""Three shapes of poison on numbers, and three on categories."""


def attacked_sets(quick: bool) -> list[tuple[int, ...]]:
    """The sets of groups in which attackers act: every one, and every pair.

    >>> len(attacked_sets(quick=False)), attacked_sets(quick=True)[-1]
    (15, (4,))
    """
    singles, pairs = (list(combinations(range(GROUPS), size)) for size in (1, 2))
    return singles if quick else singles + pairs


def attack_on(groups: tuple[int, ...], poison: str) -> str:
    """The written form of an attack in these groups.

    >>> attack_on((0, 2), "point:C")
    'some-groups:0,2;point:C'
    """
    return f"some-groups:{','.join(map(str, groups))};{poison}"


@experiments.register("some-groups", order=13)
class SomeGroupsFigure(Experiment):
    """Every group and every pair of groups, on numbers and on categories.

    >>> len(SomeGroupsFigure().cells(quick=False))
    90
    """

    title = "The joint filter when attackers act in some of five groups only (γ = 0.2, ε = 1)"
    of_the_paper = False

    def cells(self, quick: bool) -> list[Cell]:
        """A cell for every set of groups with every shape of poison."""
        return [
            joint_cell(
                Cell,
                dataset=dataset,
                users=QUICK_USERS if quick else USERS,
                mechanism=mechanism,
                epsilon=EPSILON,
                min_epsilon=MIN_EPSILON,
                attack=attack_on(groups, poison),
                gamma=GAMMA,
                trials=1 if quick else 10,
            )
            for (dataset, mechanism), shapes in POISON.items()
            for poison in shapes
            for groups in attacked_sets(quick)
        ]

    def panels(self, quick: bool) -> list[Panel]:
        """The error against the set of groups, for each shape of poison."""
        panels = []
        for (dataset, mechanism), shapes in POISON.items():
            for poison, label in shapes.items():
                sets = {
                    attack_on(groups, poison): " and ".join(map(str, groups))
                    for groups in attacked_sets(quick)
                }
                panels.append(
                    Panel(
                        f"{dataset}, {mechanism}: {label}",
                        "over_floor",
                        {"dataset": dataset, "attack": tuple(sets)},
                        against="attack",
                        labels=sets,
                    )
                )
        return panels

    def claims(self, table: pa.Table, quick: bool) -> list[Claim]:
        """Aims of mse/floor: its median, and the largest."""
        ratios = {mechanism: _ratios(table, mechanism) for _, mechanism in POISON}
        together = np.concatenate(list(ratios.values()))
        median, largest = float(np.median(together)), float(together.max())
        medians = ", ".join(f"{np.median(of):.2f} {name}" for name, of in ratios.items())
        maxima = ", ".join(f"{of.max():.3g} {name}" for name, of in ratios.items())
        return [
            Claim(
                "the median of mse/floor over cells is at most 1.5",
                median <= 1.5,
                f"{median:.2f}; {medians}",
            ),
            Claim(
                "mse/floor is at most 10 in every cell",
                largest <= 10,
                f"{maxima}; above 10 in {np.mean(together > 10):.0%}",
            ),
        ]


def _ratios(table: pa.Table, mechanism: str) -> FloatArray:
    """mse/floor of every cell of a mechanism."""
    rows = rows_where(table, mechanism=mechanism)
    attacks = dict.fromkeys(rows["attack"].to_pylist())
    return np.array([mse_over_floor(rows_where(rows, attack=attack)) for attack in attacks])
