"""The Dask engine: on a running cluster, or on a temporary one on this machine."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from itertools import islice
from typing import Any

from unpoison.engines.base import Engine, engines
from unpoison.engines.work import Counted, Job, Part, count
from unpoison.errors import InvalidParameter, MissingExtra
from unpoison.system.cores import usable_cores

QUEUED_PARTS = 4
"""Parts that each thread of the cluster has waiting: more than locally, as each costs a trip."""
CONNECT_SECONDS = 10
"""Seconds to wait for a scheduler: one that is up answers within a second."""


@engines.register("dask", order=2)
class DaskEngine(Engine):
    """Parts as tasks. A lost worker's tasks are done again by Dask, and each counts once.

    Workers must see the report files under the same paths.

    >>> DaskEngine("tcp://10.0.0.1:8786").scheduler
    'tcp://10.0.0.1:8786'
    """

    def __init__(self, scheduler: str | None = None, workers: int | None = None) -> None:
        self.scheduler = scheduler
        self.workers = workers or usable_cores()

    @classmethod
    @contextmanager
    def example(cls) -> Iterator[DaskEngine]:
        """Two processes on this machine, which all runs share."""
        with local_cluster(2) as cluster:
            yield cls(cluster.scheduler_address)

    def run(self, job: Job, parts: Sequence[Part]) -> Iterator[Counted]:
        """Count all parts; only a few are under way, so that results do not pile up."""
        with self._client() as client:
            threads = max(sum(client.nthreads().values()), 1)
            unsubmitted = iter(parts)
            first = islice(unsubmitted, QUEUED_PARTS * threads)
            running = _distributed().as_completed(
                [self._submit(client, job, part) for part in first], with_results=True
            )
            for _, counted in running:
                yield counted
                for part in islice(unsubmitted, 1):
                    running.add(self._submit(client, job, part))

    @staticmethod
    def _submit(client: Any, job: Job, part: Part) -> Any:
        # Not pure: the same part of a file that has changed since must be counted again.
        return client.submit(count, job, part, pure=False)

    @contextmanager
    def _client(self) -> Iterator[Any]:
        distributed = _distributed()
        if self.scheduler is not None:
            with _connected(distributed, self.scheduler) as client:
                yield client
            return
        with local_cluster(self.workers) as cluster, distributed.Client(cluster) as client:
            yield client


def local_cluster(workers: int) -> Any:
    """Processes of one thread on this machine, to be used in a `with` statement.

    >>> callable(local_cluster)
    True
    """
    return _distributed().LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        dashboard_address="127.0.0.1:0",
        silence_logs=logging.CRITICAL,
    )


def _distributed() -> Any:
    try:
        return import_module("distributed")
    except ImportError:
        raise MissingExtra("the engine dask", "dask") from None


def _connected(distributed: Any, scheduler: str) -> Any:
    try:
        return distributed.Client(scheduler, timeout=CONNECT_SECONDS)
    except (OSError, ValueError) as fault:
        rule = "must be the address of a Dask scheduler that answers"
        raise InvalidParameter("scheduler", rule, scheduler) from fault
