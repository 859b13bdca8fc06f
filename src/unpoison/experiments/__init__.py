"""Experiments: tables and figures as declared grids, run by one runner and drawn by one plotter.

They are found by name in `experiments`; every file of the folder is loaded.
"""

from unpoison.experiments.base import Experiment, experiments
from unpoison.experiments.cell import Cell
from unpoison.experiments.claims import Claim, claims_table
from unpoison.experiments.figure import draw
from unpoison.experiments.panel import Panel
from unpoison.experiments.report import Section, markdown, report
from unpoison.experiments.runner import run_cells
from unpoison.registry import load_modules

__all__ = [
    "Cell",
    "Claim",
    "Experiment",
    "Panel",
    "Section",
    "claims_table",
    "draw",
    "experiments",
    "markdown",
    "report",
    "run_cells",
]

load_modules(__name__)
