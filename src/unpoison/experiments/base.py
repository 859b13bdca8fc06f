"""The base class of experiments: a grid of cells, panels that show it, claims that it checks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import pyarrow as pa

from unpoison.experiments.cell import Cell
from unpoison.experiments.claims import Claim
from unpoison.experiments.figure import draw
from unpoison.experiments.panel import Panel, panel_table
from unpoison.registry import Registry


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
    """The heading of its picture and of its section in the report."""
    of_the_paper: ClassVar[bool] = True
    """Whether `reproduce all` runs it, and its claims are the paper's."""

    @abstractmethod
    def cells(self, quick: bool) -> list[Cell]:
        """The grid; `quick` has fewer users and trials."""

    @abstractmethod
    def panels(self, quick: bool) -> list[Panel]:
        """The panels of its picture; each is a table too."""

    def claims(self, table: pa.Table, quick: bool) -> list[Claim]:
        """Statements of the paper or aims of ours, checked against the rows; none by default."""
        return []

    def draw(self, table: pa.Table, quick: bool) -> Any:
        """The picture, as a matplotlib figure."""
        return draw(self.title, self.panels(quick), table)

    def tables(self, table: pa.Table, quick: bool) -> dict[str, list[list[str]]]:
        """The table of every panel by its title: rows of text with the head first."""
        return {panel.title: panel_table(panel, table) for panel in self.panels(quick)}


experiments: Registry[type[Experiment]] = Registry("experiment")
