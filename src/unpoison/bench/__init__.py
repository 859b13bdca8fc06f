"""Benchmarks: each prints ratios measured in one run, beside the target they are held to."""

from unpoison.bench.result import Benchmark, Result, benchmarks

from unpoison.bench import dap, em, perturb, scaling, summarise  # isort: skip

__all__ = ["Benchmark", "Result", "benchmarks", "dap", "em", "perturb", "scaling", "summarise"]
