"""Benchmarks: each prints ratios measured in one run, beside the target they are held to.

They run in the order in which they are imported: those that need an extra come first, so that
a missing one is known before anything is measured.
"""

from unpoison.bench.result import Benchmark, Result, benchmarks

from unpoison.bench import k_rr, engines, collector, dap, em, ems, joint, perturb, scaling  # isort: skip

__all__ = [
    "Benchmark",
    "Result",
    "benchmarks",
    "collector",
    "dap",
    "em",
    "ems",
    "engines",
    "joint",
    "k_rr",
    "perturb",
    "scaling",
]
