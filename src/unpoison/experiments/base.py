"""An experiment: a declared grid of cells, and the panels that show it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from unpoison.experiments.cell import Cell
from unpoison.experiments.figure import Panel
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

    @abstractmethod
    def cells(self, quick: bool) -> list[Cell]:
        """The grid; `quick` has fewer users and trials."""

    @abstractmethod
    def panels(self, quick: bool) -> list[Panel]:
        """What is drawn and tabled."""


experiments: Registry[type[Experiment]] = Registry("experiment")
