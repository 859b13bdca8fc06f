"""Engines: report files to a Summary; each only schedules the one binning kernel."""

from unpoison.engines.local import summarise_files

__all__ = ["summarise_files"]
