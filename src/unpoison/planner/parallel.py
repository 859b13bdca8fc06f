"""Functions called on many tasks, here or in several processes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Protocol, TypeVar

from unpoison.system.processes import process_pool

Task = TypeVar("Task")
Result = TypeVar("Result")


class RunAll(Protocol):
    """Calls a function with every task, and gives the results in their order, like `map`.

    >>> run_all: RunAll = map
    >>> list(run_all(abs, [-1, 2]))
    [1, 2]
    """

    def __call__(
        self, function: Callable[[Task], Result], tasks: Iterable[Task], /
    ) -> Iterable[Result]:
        """Call `function` with every task; returns the results in the order of the tasks."""


@contextmanager
def runner(workers: int) -> Iterator[RunAll]:
    """`map`; with several workers in as many processes.

    >>> with runner(1) as run_all:
    ...     list(run_all(abs, [-1, 2]))
    [1, 2]
    """
    if workers <= 1:
        yield map
        return
    with process_pool(workers) as pool:
        yield pool.map
