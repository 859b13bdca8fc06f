"""Engines: report files to summaries; each only schedules the one binning kernel."""

from unpoison.engines.base import Engine, engines
from unpoison.engines.counting import Counting, count_files, summarise_files
from unpoison.engines.dask import DaskEngine
from unpoison.engines.local import LocalEngine
from unpoison.engines.work import Counted, Job, Part, count, parts_of

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
