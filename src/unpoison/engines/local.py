"""The local engine: all cores of this machine, in constant memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, nullcontext

from unpoison.engines.base import Engine, engines
from unpoison.engines.work import Counted, Job, Part, count
from unpoison.system.cores import usable_cores

QUEUED_PARTS = 2
"""Parts that each thread has waiting: one to go on with at once, one more for uneven sizes."""


@engines.register("local", order=1)
class LocalEngine(Engine):
    """Counts parts in threads; decoding and counting release the GIL.

    >>> LocalEngine(workers=2).workers
    2
    """

    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers or usable_cores()

    @classmethod
    def example(cls) -> AbstractContextManager[LocalEngine]:
        """Three threads, on however many cores."""
        return nullcontext(cls(workers=3))

    def run(self, job: Job, parts: Sequence[Part]) -> Iterator[Counted]:
        """Count all parts; only a few are under way, so that results do not pile up."""
        waiting: set[Future[Counted]] = set()
        with ThreadPoolExecutor(self.workers) as pool:
            try:
                for part in parts:
                    if len(waiting) >= QUEUED_PARTS * self.workers:
                        done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                        yield from (future.result() for future in done)
                    waiting.add(pool.submit(count, job, part))
                yield from (future.result() for future in waiting)
            finally:
                # Whoever stops reading (Ctrl-C, an error) must not wait for parts not yet begun.
                pool.shutdown(wait=False, cancel_futures=True)
