"""Sequences of EM runs that wait for one another, in batches with those of other sequences.

A computation that needs several runs in turn (probe a side, then filter, then smooth) is a
generator: it yields the problems that it needs next, and is sent their solutions. Many of them go
on together, so that one batch of the EM loop serves them all at every turn.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from itertools import islice
from typing import TypeVar

from unpoison.filters.em.loop import MAX_ITERATIONS, Problem, Solution, maximise

Result = TypeVar("Result")
Stages = Generator[Sequence[Problem], list[Solution], Result]


def run_stages(
    computations: Sequence[Stages[Result]], max_iterations: int = MAX_ITERATIONS
) -> list[Result]:
    """The results of all computations; none depends on which others run beside it.

    >>> import numpy as np
    >>> from unpoison.filters.em import FreePoison
    >>> from unpoison.mechanisms import DiagonalTransition
    >>> response, start = DiagonalTransition(2, kept=0.75, other=0.25), np.full(2, 0.5)
    >>> def share_of_first(counts):
    ...     problem = Problem(response, np.array(counts), start, np.zeros(2), FreePoison(), 1e-9)
    ...     (solution,) = yield [problem]
    ...     return round(float(solution.honest[0]), 3)
    >>> run_stages([share_of_first([60.0, 40.0]), share_of_first([50.0, 50.0])])
    [0.7, 0.5]
    """
    results: dict[int, Result] = {}
    answers: dict[int, list[Solution] | None] = dict.fromkeys(range(len(computations)))
    while answers:
        requests = _next_problems(computations, answers, results)
        batch = [problem for problems in requests.values() for problem in problems]
        solutions = iter(maximise(batch, max_iterations))
        answers = {
            index: list(islice(solutions, len(problems))) for index, problems in requests.items()
        }
    return [results[index] for index in range(len(computations))]


def _next_problems(
    computations: Sequence[Stages[Result]],
    answers: dict[int, list[Solution] | None],
    results: dict[int, Result],
) -> dict[int, Sequence[Problem]]:
    """The problems that each computation yields, given its answers; one that ends has a result."""
    requests: dict[int, Sequence[Problem]] = {}
    for index, answer in answers.items():
        computation = computations[index]
        try:
            requests[index] = next(computation) if answer is None else computation.send(answer)
        except StopIteration as end:
            results[index] = end.value
    return requests
