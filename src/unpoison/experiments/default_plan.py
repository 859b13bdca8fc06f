"""Which plan suits the default method: ε0 and the groups' shares, over budgets and attacks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unpoison.estimate.options import FilterOptions
from unpoison.experiments.base import Experiment, experiments
from unpoison.experiments.cell import Cell
from unpoison.experiments.joint_cells import joint_cell
from unpoison.experiments.joint_claims import rows_where
from unpoison.experiments.panel import Panel
from unpoison.experiments.plan_designs import EQUAL, SHARES, DesignCell

EPSILONS, USERS = (0.5, 1.0, 2.0, 4.0), (10**4, 10**5, 10**6)
"""The budgets and sizes that a default must serve: from strong privacy to weak, few users to
many."""
QUICK_EPSILONS, QUICK_USERS = (1.0,), (10**4,)
"""One setting, for a quick run."""
GAMMA = 0.2
"""Attackers, where there are any."""
ASSUMED = 0.1
"""The share of attackers for which the worst case is asked."""
PARTS, PAPER = (2, 4, 8, 16), 1 / 16
"""ε over the ε0 that are compared, and the paper's ε0."""
PARTS_WITH_UNEQUAL_SHARES = (4, 8)
"""Unequal shares are tried with these alone, to bound the work."""
ATTACKS = {
    "none": "nobody",
    "point:C": "point at C",
    "uniform:3C/4,C": "[3C/4, C]",
    "uniform:C/2,C": "[C/2, C]",
    "uniform:O,C": "[O, C]",
    "evasion:0.3": "evasion",
    "adaptive:2": "two largest ε",
    "opposite": "opposite sides",
    "noise": "whole domain",
    "some-groups:0;uniform:3C/4,C": "one group",
}


@experiments.register("default-plan", order=17)
class DefaultPlanFigure(Experiment):
    """The joint filter with several ε0 and shares, under every kind of attack.

    >>> len(DefaultPlanFigure().cells(quick=False))
    1080
    """

    title = "The joint filter with several ε0 and shares of users (γ = 0.2)"
    of_the_paper = False

    def cells(self, quick: bool) -> list[Cell]:
        """A cell for every design, budget, number of users and attack."""
        return [
            joint_cell(
                DesignCell,
                dataset="beta-2-5",
                users=users,
                epsilon=epsilon,
                **design,
                attack=attack,
                gamma=0.0 if attack == "none" else GAMMA,
                trials=1 if quick else 2,
                options=FilterOptions(attackers_at_most=ASSUMED),
            )
            for epsilon in (QUICK_EPSILONS if quick else EPSILONS)
            for users in (QUICK_USERS if quick else USERS)
            for design in designs(epsilon)
            for attack in ATTACKS
        ]

    def panels(self, quick: bool) -> list[Panel]:
        """The price against the attack, for each ε."""
        return [
            Panel(
                f"ε = {epsilon:g}",
                "price",
                {"epsilon": epsilon},
                against="attack",
                by="design",
                labels=ATTACKS,
            )
            for epsilon in (QUICK_EPSILONS if quick else EPSILONS)
        ]

    def tables(self, table: pa.Table, quick: bool) -> dict[str, list[list[str]]]:
        """A table of the designs over all attacks; then the panels."""
        names = dict.fromkeys(table["design"].to_pylist())
        heads = ["ε0, shares", "price, median", "price, 90 %", "price, nobody", "interval"]
        rows = [_row(name, rows_where(table, design=name)) for name in names]
        summary = {"All attacks": [[*heads, "worst case", "cover or doubt"], *rows]}
        return {**summary, **super().tables(table, quick)}


def designs(epsilon: float) -> list[dict[str, Any]]:
    """ε0 with its name and the shares: halves of ε with equal and some unequal shares, the paper's.

    >>> len(designs(4.0)), designs(1.0)[0]
    (9, {'min_epsilon': 0.5, 'smallest': 'ε/2', 'shares': 'equal'})
    """
    of_parts = [
        {"min_epsilon": epsilon / part, "smallest": f"ε/{part}", "shares": shares}
        for shares in SHARES
        for part in (PARTS if shares == EQUAL else PARTS_WITH_UNEQUAL_SHARES)
    ]
    return [*of_parts, {"min_epsilon": PAPER, "smallest": "1/16", "shares": EQUAL}]


def _row(name: str, rows: pa.Table) -> list[str]:
    """Quantiles over settings and attacks of the mean price; averages of all else.

    The worst case is that of quiet collections: with more attackers than it assumes there is none.
    """
    grouped = rows.group_by(["epsilon", "users", "attack"]).aggregate([("price", "mean")])
    prices = grouped["price_mean"].to_numpy()
    quiet = rows_where(rows, attack="none")
    covered_or_doubted = pc.max_element_wise(rows["covered"], rows["doubt"]).to_numpy()
    widths = (rows["interval_width"].to_numpy(), quiet["worst_case_width"].to_numpy())
    return [
        name,
        f"{np.median(prices):.3g}",
        f"{np.quantile(prices, 0.9):.3g}",
        f"{quiet['price'].to_numpy().mean():.3g}",
        *(f"{np.exp(np.log(width).mean()):.3g}" for width in widths),
        f"{np.mean(covered_or_doubted):.1%}",
    ]
