"""The base class of engines: a way to have many parts counted, and nothing else."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext

from unpoison.engines.work import Counted, Job, Part
from unpoison.registry import Registry


class Engine(ABC):
    """Schedules the counting of parts of files: each once, in any order.

    An engine only schedules `work.count`. If a worker is lost, it has the part counted again; what
    comes back is added up elsewhere, once for each part.

    >>> from unpoison.engines.work import count
    >>> class InTurn(Engine):
    ...     def run(self, job, parts):
    ...         yield from (count(job, part) for part in parts)
    >>> list(InTurn().run(None, []))
    []
    """

    @classmethod
    def example(cls) -> AbstractContextManager[Engine]:
        """A small engine for the length of a `with` statement, with which every class is tested.

        Override it where an engine needs parameters, or something that must be started first.
        """
        return nullcontext(cls())

    @abstractmethod
    def run(self, job: Job, parts: Sequence[Part]) -> Iterator[Counted]:
        """Count all parts, yielding each result as soon as it is ready."""


engines: Registry[type[Engine]] = Registry("engine")
