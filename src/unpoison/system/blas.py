"""One thread for linear algebra on small matrices, where several would wait for one another."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from typing import ParamSpec, TypeVar

from threadpoolctl import ThreadpoolController

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def single_threaded(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Decorate a function whose matrices are too small to be worth more than one thread.

    On a busy machine, threads that share a matrix of a hundred rows can take a hundred times as
    long as one of them alone.

    >>> @single_threaded
    ... def twice(number):
    ...     return 2 * number
    >>> twice(2)
    4
    """

    @wraps(function)
    def alone(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        with _controller().limit(limits=1, user_api="blas"):
            return function(*args, **kwargs)

    return alone


@cache
def _controller() -> ThreadpoolController:
    """The loaded BLAS libraries; found once, since the search takes longer than most calls here."""
    return ThreadpoolController()
