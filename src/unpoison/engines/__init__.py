"""Engines: report files to summaries; each only schedules the one binning kernel.

They are found by name in `engines`; every file of the folder is loaded.
"""

from unpoison.engines.base import Engine, engines
from unpoison.engines.counting import Counting, count_files, summarise_files
from unpoison.engines.dask import DaskEngine
from unpoison.engines.local import LocalEngine
from unpoison.engines.work import Counted, Job, Part, count, parts_of
from unpoison.registry import load_modules

__all__ = [
    "Counted",
    "Counting",
    "DaskEngine",
    "Engine",
    "Job",
    "LocalEngine",
    "Part",
    "count",
    "count_files",
    "engines",
    "parts_of",
    "summarise_files",
]

load_modules(__name__)
