"""Benchmarks: each prints ratios measured in one run, beside the target they are held to.

They are found by name in `benchmarks`; every file of the folder is loaded. Those that need an extra
are registered to run first, so that a missing extra is known before anything is measured.
"""

from unpoison.bench.result import Benchmark, Result, Row, benchmarks, default_benchmarks
from unpoison.registry import load_modules

__all__ = ["Benchmark", "Result", "Row", "benchmarks", "default_benchmarks"]

load_modules(__name__)
