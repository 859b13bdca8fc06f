"""Table I and Fig. EMF: the side, and γ̂ that EMF finds in one group of all users."""

from __future__ import annotations

import pyarrow as pa

from unpoison.experiments.base import Experiment, experiments
from unpoison.experiments.cell import Cell
from unpoison.experiments.claims import Claim
from unpoison.experiments.panel import Panel
from unpoison.experiments.paper_settings import DATASET_NAMES, GAMMA, POISON_RANGES, users_of

TABLE_BUDGETS = (2.0, 0.5, 0.25, 0.125, 0.0625)
"""ε of Table I."""
FIGURE_BUDGETS = (2.0, 1.0, 0.5, 0.25, 0.125, 0.0625)
"""ε of Fig. EMF."""
SMALLEST_BUDGET = 0.0625
"""The paper's ε0, about which its claims are."""


def probing_cell(dataset: str, epsilon: float, attack: str, gamma: float, quick: bool) -> Cell:
    """EMF alone, in one group with all users.

    >>> probing_cell("taxi", 0.5, "none", 0.0, quick=True).min_epsilon
    0.5
    """
    return Cell(
        dataset=dataset,
        users=users_of(dataset, quick),
        mechanism="piecewise",
        epsilon=epsilon,
        min_epsilon=epsilon,
        attack=attack,
        gamma=gamma,
        methods=("emf",),
        trials=3 if quick else 10,
    )


@experiments.register("table-1", order=1)
class SideTable(Experiment):
    """The variance of x̂ with poison on either side, for Taxi: the right side has the smaller one.

    >>> len(SideTable().cells(quick=True))
    20
    """

    title = "Table I: variance of x̂ with poison on either side (Taxi)"

    def cells(self, quick: bool) -> list[Cell]:
        """Every range at every ε."""
        return [
            probing_cell("taxi", epsilon, attack, GAMMA, quick)
            for attack in POISON_RANGES
            for epsilon in TABLE_BUDGETS
        ]

    def panels(self, quick: bool) -> list[Panel]:
        """One for each side that EMF is told."""
        return [
            Panel(f"poison on the {side}", f"variance_{side}", by="attack", labels=POISON_RANGES)
            for side in ("left", "right")
        ]

    def claims(self, table: pa.Table, quick: bool) -> list[Claim]:
        """The right side always has the smaller variance."""
        left, right = (panel.lines(table) for panel in self.panels(quick))
        wrong = [
            f"{name} at ε = {epsilon:g}"
            for name, line in right.items()
            for epsilon, variance in line.items()
            if not variance < left[name][epsilon]
        ]
        cells = sum(len(line) for line in right.values())
        count = f"in {cells - len(wrong)} of {cells} cells"
        evidence = count + (f"; not for {', '.join(wrong)}" if wrong else "")
        text = "EMF on the right side always has a smaller variance of x̂"
        return [Claim(text, not wrong, evidence)]


@experiments.register("fig-gamma", order=2)
class FractionFigure(Experiment):
    """γ̂ of EMF against ε: with few and many attackers, with none, and under input manipulation.

    >>> {cell.gamma for cell in FractionFigure().cells(quick=True)} == {0.0, 0.1, 0.25, 0.4}
    True
    """

    title = "Fig. EMF: the proportion of Byzantine users that EMF finds"

    def cells(self, quick: bool) -> list[Cell]:
        """(a), (b) every range on Taxi; (c), (d) every dataset."""
        ranged = [
            probing_cell("taxi", epsilon, attack, gamma, quick)
            for gamma in (0.1, 0.4)
            for attack in POISON_RANGES
            for epsilon in FIGURE_BUDGETS
        ]
        others = [
            probing_cell(dataset, epsilon, attack, gamma, quick)
            for attack, gamma in (("none", 0.0), ("input:1", GAMMA))
            for dataset in DATASET_NAMES
            for epsilon in FIGURE_BUDGETS
        ]
        return ranged + others

    def panels(self, quick: bool) -> list[Panel]:
        """The panels of the paper's figure."""
        ranges = tuple(POISON_RANGES)
        return [
            *(
                Panel(
                    f"({letter}) Taxi, γ = {gamma:g}",
                    "gamma_error",
                    {"gamma": gamma, "attack": ranges},
                    by="attack",
                    labels=POISON_RANGES,
                )
                for letter, gamma in (("a", 0.1), ("b", 0.4))
            ),
            Panel(
                "(c) nobody attacks",
                "byzantine_fraction",
                {"attack": "none"},
                by="dataset",
                labels=DATASET_NAMES,
                logarithmic=False,
            ),
            Panel(
                "(d) input manipulation, γ = 0.25",
                "byzantine_fraction",
                {"attack": "input:1"},
                by="dataset",
                labels=DATASET_NAMES,
                logarithmic=False,
            ),
        ]

    def claims(self, table: pa.Table, quick: bool) -> list[Claim]:
        """γ̂ tends to γ; few false positives; input manipulation is not seen."""
        few, many, nobody, manipulated = (panel.lines(table) for panel in self.panels(quick))
        ranged = [*few.values(), *many.values()]
        falls = sum(line[SMALLEST_BUDGET] <= line[max(line)] for line in ranged)
        false_alarms = [line[SMALLEST_BUDGET] for line in nobody.values()]
        seen = [line[SMALLEST_BUDGET] for line in manipulated.values()]
        return [
            Claim(
                "γ̂ tends to γ as ε tends to 0",
                falls == len(ranged),
                f"the error at ε = 1/16 is below that at ε = 2 in {falls} of {len(ranged)} lines; "
                f"it is at most {max(line[SMALLEST_BUDGET] for line in ranged):.3f} there",
            ),
            Claim(
                "with nobody attacking, γ̂ is 0.02 to 0.04 at ε0 = 1/16 for all datasets",
                min(false_alarms) >= 0.02 and max(false_alarms) <= 0.04,
                f"{min(false_alarms):.3f} to {max(false_alarms):.3f}",
            ),
            Claim(
                "under input manipulation γ̂ is 0.03 to 0.04: EMF does not see it",
                max(seen) < GAMMA / 2,
                f"{min(seen):.3f} to {max(seen):.3f} at ε = 1/16, with a quarter attacking",
            ),
        ]
