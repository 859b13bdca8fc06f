"""Fig. k-means: the k-means defence beside ours, and both together under input manipulation."""

from __future__ import annotations

import pyarrow as pa

from unpoison.experiments.base import Claim, Experiment, experiments
from unpoison.experiments.cell import Cell
from unpoison.experiments.common import GAMMA, SCHEMES, users_of
from unpoison.experiments.figure import Panel

RATES = (0.1, 0.3, 0.5, 0.7, 0.9)
INPUTS = {"input:-1": "g = −1", "input:0": "g = 0", "input:1": "g = 1"}
POISON = "uniform:C/2,C"
ALONE = tuple(f"k-means:rate={rate:g}" for rate in RATES)
TOGETHER = tuple(f"emf-k-means:rate={rate:g}" for rate in RATES)
LABELS = {
    **{f"k-means:rate={rate:g}": f"β = {rate:g}" for rate in RATES},
    **{f"emf-k-means:rate={rate:g}": f"EMF, β = {rate:g}" for rate in RATES},
    "emf": "EMF",
    "emf-star": "EMF*",
    "cemf-star": "CEMF*",
}


@experiments.register("fig-kmeans")
class KMeansFigure(Experiment):
    """Taxi at ε = 1, a quarter of attackers: on [C/2, C], and with a false input g perturbed.

    >>> len(KMeansFigure().cells(quick=True))
    4
    """

    title = "Fig. k-means: the k-means defence, alone and with EMF (Taxi, ε = 1)"

    def cells(self, quick: bool) -> list[Cell]:
        """(a) poison on [C/2, C]; (b) input manipulation."""
        return [
            Cell(
                dataset="taxi",
                users=users_of("taxi", quick),
                mechanism="piecewise",
                epsilon=1.0,
                attack=attack,
                gamma=GAMMA,
                methods=(*SCHEMES, *ALONE) if attack == POISON else (*ALONE, *TOGETHER),
                trials=2 if quick else 10,
            )
            for attack in (POISON, *INPUTS)
        ]

    def panels(self, quick: bool) -> list[Panel]:
        """The k-means defence on ungrouped collections, as it was meant, and on grouped ones."""
        one_line = {POISON: "error"}
        return [
            Panel(
                "(a) poison on [C/2, C]",
                "squared_error",
                {"attack": POISON},
                against="method",
                by="attack",
                labels={**LABELS, **one_line},
            ),
            Panel(
                "(b) input manipulation",
                "squared_error",
                {"attack": tuple(INPUTS)},
                against="method",
                by="attack",
                labels={**LABELS, **INPUTS},
            ),
        ]

    def claims(self, table: pa.Table, quick: bool) -> list[Claim]:
        """Ours wins under poison; together they gain under input manipulation."""
        poison, inputs = (panel.lines(table) for panel in self.panels(quick))
        best = min(poison["error (ungrouped)"][method] for method in ALONE)
        gains = {
            name: 1 - min(line[m] for m in TOGETHER) / min(line[m] for m in ALONE)
            for name, line in inputs.items()
            if name.endswith("(ungrouped)")
        }
        shown = ", ".join(f"{name.split(' (')[0]}: {gain:+.0%}" for name, gain in gains.items())
        star = poison["error"]["emf-star"]
        return [
            Claim(
                "our scheme outperforms the k-means defence when poison is on [C/2, C]",
                star < best,
                f"EMF* {star:.3g}, the best k-means {best:.3g}",
            ),
            Claim(
                "with EMF, k-means improves by 28 to 30 per cent under input manipulation",
                all(gain >= 0.28 for gain in gains.values()),
                f"gain of the best rate: {shown}",
            ),
        ]
