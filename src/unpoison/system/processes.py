"""Processes that share the cores: started afresh, with one thread of linear algebra each."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context

from unpoison.plugins import load_plugins, loaded_plugins

BLAS_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
"""Variables by which the builds of BLAS are told how many threads to start."""


@contextmanager
def process_pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    """Processes that know the same plugins as this one, and do not fight over the cores.

    >>> with process_pool(1) as pool:
    ...     pool.submit(abs, -2).result()
    2
    """
    # Spawned, not forked: a fork copies locks of threads that it does not copy, and may hang.
    spawn = get_context("spawn")
    with (
        _single_threaded(),
        ProcessPoolExecutor(workers, spawn, load_plugins, (loaded_plugins(),)) as pool,
    ):
        yield pool


@contextmanager
def _single_threaded() -> Iterator[None]:
    """Have processes that start meanwhile use one thread each, so that they share the cores."""
    before = {name: os.environ.get(name) for name in BLAS_THREADS}
    os.environ.update(dict.fromkeys(BLAS_THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
