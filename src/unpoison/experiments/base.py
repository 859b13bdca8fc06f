"""An experiment: a declared grid of cells, the panels that show it, and the claims it checks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa

from unpoison.experiments.cell import Cell
from unpoison.experiments.figure import Panel, cells_of, draw
from unpoison.registry import Registry


@dataclass(frozen=True)
class Claim:
    """What the paper says in words or what is to be reached, whether it holds here, and by what.

    >>> Claim("γ̂ tends to γ as ε tends to 0", confirmed=True, evidence="0.18 to 0.006").confirmed
    True
    """

    text: str
    confirmed: bool
    evidence: str


SAID, AIM = "the paper says", "the aim"


def claims_table(claims: Sequence[Claim], head: str = SAID) -> list[list[str]]:
    """Rows of text with the head first.

    >>> claims_table([Claim("γ̂ tends to γ", confirmed=False, evidence="0.2 at ε = 1/16")])[1]
    ['γ̂ tends to γ', 'not confirmed', '0.2 at ε = 1/16']
    """
    words = {True: "confirmed", False: "not confirmed"}
    rows = [[claim.text, words[claim.confirmed], claim.evidence] for claim in claims]
    return [[head, "this run", "by"], *rows]


class Experiment(ABC):
    """A table or figure of the paper, or one of ours.

    >>> class Small(Experiment):
    ...     title = "One cell"
    ...     def cells(self, quick):
    ...         return [Cell("taxi", 1000, "piecewise", 1.0, "point:C", 0.25, ("ostrich",))]
    ...     def panels(self, quick):
    ...         return [Panel("MSE", "squared_error")]
    >>> len(Small().cells(quick=True))
    1
    """

    title: ClassVar[str]
    of_the_paper: ClassVar[bool] = True
    """Whether `reproduce all` runs it, and its claims are the paper's."""

    @abstractmethod
    def cells(self, quick: bool) -> list[Cell]:
        """The grid; `quick` has fewer users and trials."""

    @abstractmethod
    def panels(self, quick: bool) -> list[Panel]:
        """What is drawn and tabled."""

    def claims(self, table: pa.Table, quick: bool) -> list[Claim]:
        """What the paper says about it, or what it is to reach, checked against the rows."""
        return []

    def draw(self, table: pa.Table, quick: bool) -> Any:
        """The picture."""
        return draw(self.title, self.panels(quick), table)

    def tables(self, table: pa.Table, quick: bool) -> dict[str, list[list[str]]]:
        """By title, rows of text with the head first."""
        return {panel.title: cells_of(panel, table) for panel in self.panels(quick)}


experiments: Registry[type[Experiment]] = Registry("experiment")
