"""Experiments: tables and figures as declared grids, run by one runner and drawn by one plotter."""

from unpoison.experiments.base import Experiment, experiments
from unpoison.experiments.cell import Cell
from unpoison.experiments.figure import Panel, draw, markdown
from unpoison.experiments.runner import run_cells

from unpoison.experiments import frequency, square_wave  # isort: skip

__all__ = [
    "Cell",
    "Experiment",
    "Panel",
    "draw",
    "experiments",
    "frequency",
    "markdown",
    "run_cells",
    "square_wave",
]
