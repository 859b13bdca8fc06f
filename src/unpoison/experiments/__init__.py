"""Experiments: tables and figures as declared grids, run by one runner and drawn by one plotter."""

from unpoison.experiments.base import Claim, Experiment, claims_table, experiments
from unpoison.experiments.cell import Cell
from unpoison.experiments.figure import Panel, draw, markdown
from unpoison.experiments.report import Section, report
from unpoison.experiments.runner import run_cells

from unpoison.experiments import probing, populations, means, square_wave, k_means, frequency, joint  # isort: skip

__all__ = [
    "Cell",
    "Claim",
    "Experiment",
    "Panel",
    "Section",
    "claims_table",
    "draw",
    "experiments",
    "frequency",
    "joint",
    "k_means",
    "markdown",
    "means",
    "populations",
    "probing",
    "report",
    "run_cells",
    "square_wave",
]
