"""The worst case under attackers who imitate honest users: whether it holds, and how wide it is."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from unpoison.estimate.options import FilterOptions
from unpoison.experiments.base import Experiment, experiments
from unpoison.experiments.cell import Cell
from unpoison.experiments.claims import Claim
from unpoison.experiments.joint_cells import joint_cell
from unpoison.experiments.joint_claims import rows_where
from unpoison.experiments.panel import Panel

USERS = 100_000
"""A size at which noise and attackers both widen the range."""
DATASETS = ("beta-2-5", "ends")
EPSILONS = (0.5, 1.0, 4.0)
"""Budgets from strong privacy to weak."""
GAMMAS = (0.01, 0.05, 0.1, 0.25)
"""From one in a hundred to the paper's quarter."""
ATTACKS = {
    "imitator:up": "hidden, upwards",
    "imitator:down": "hidden, downwards",
    "imitator:up,1": "with a decoy",
}
"""The linear program's own attacks: reports of other honest users, with visible poison or none."""


@experiments.register("worst-case", order=15)
class WorstCaseFigure(Experiment):
    """Imitators of several shares, each assumed as the largest share of attackers.

    >>> len(WorstCaseFigure().cells(quick=False))
    72
    """

    title = "The worst case under attackers who imitate honest users (100,000 users)"
    of_the_paper = False

    def cells(self, quick: bool) -> list[Cell]:
        """A cell for every attack, share and budget, on smooth values and on values at the ends."""
        return [
            joint_cell(
                Cell,
                dataset=dataset,
                users=USERS,
                epsilon=epsilon,
                attack=attack,
                gamma=gamma,
                trials=2 if quick else 10,
                options=FilterOptions(attackers_at_most=gamma),
            )
            for dataset in (DATASETS[:1] if quick else DATASETS)
            for epsilon in (EPSILONS[1:2] if quick else EPSILONS)
            for gamma in GAMMAS
            for attack in ATTACKS
        ]

    def panels(self, quick: bool) -> list[Panel]:
        """How often the worst case holds, and its width, against the share of attackers."""
        measures = {"worst_case_holds": "holds the truth", "worst_case_over_limit": "width"}
        return [
            Panel(
                f"{dataset}: {title}",
                measure,
                {"dataset": dataset},
                against="gamma",
                by="attack",
                labels=ATTACKS,
                logarithmic=False,
            )
            for measure, title in measures.items()
            for dataset in (DATASETS[:1] if quick else DATASETS)
        ]

    def claims(self, table: pa.Table, quick: bool) -> list[Claim]:
        """The aim: it holds in 95 per cent; the intervals beside it show why it is needed."""
        held = {attack: _mean(table, attack, "worst_case_holds") for attack in ATTACKS}
        covered = {attack: _mean(table, attack, "covered") for attack in ATTACKS}
        least, overall = min(held.values()), float(pc.mean(table["worst_case_holds"]).as_py())
        return [
            Claim(
                "the worst case holds the truth in at least 95 per cent",
                overall >= 0.95,
                f"{overall:.1%}; {least:.1%} under the attack where it is least; intervals cover "
                f"in {min(covered.values()):.0%} to {max(covered.values()):.0%}",
            ),
        ]


def _mean(table: pa.Table, attack: str, column: str) -> float:
    """The average of a column over all rows of an attack."""
    return float(pc.mean(rows_where(table, attack=attack)[column]).as_py())
