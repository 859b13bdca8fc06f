"""Faults of clients, one file each, by name in `faults`; every file of the folder is loaded."""

from unpoison.registry import load_modules
from unpoison.simulation.faults.base import BrokenClients, Fault, faults, parse_fault
from unpoison.simulation.faults.clipped_reports import ClippedReports
from unpoison.simulation.faults.clipping import Clipping
from unpoison.simulation.faults.dropout import Dropout
from unpoison.simulation.faults.legacy import Legacy
from unpoison.simulation.faults.rounding import Rounding

__all__ = [
    "BrokenClients",
    "ClippedReports",
    "Clipping",
    "Dropout",
    "Fault",
    "Legacy",
    "Rounding",
    "faults",
    "parse_fault",
]

load_modules(__name__)
