"""EM runs that wait for one another, side by side with those of other work.

Work that needs several runs in turn (probe a side, then filter, then smooth) is a generator: it
yields the problems that it needs next, and is sent their solutions. Many such works go on together,
so that one batch serves them all at every turn.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from itertools import islice
from typing import TypeVar

from unpoison.filters.em.loop import MAX_ITERATIONS, Problem, Solution, maximise

Result = TypeVar("Result")
Stages = Generator[Sequence[Problem], list[Solution], Result]


def run_stages(
    works: Sequence[Stages[Result]], max_iterations: int = MAX_ITERATIONS
) -> list[Result]:
    """What each work returns; what it is does not depend on its company.

    >>> import numpy as np
    >>> from unpoison.filters.em import Free
    >>> from unpoison.mechanisms import DiagonalTransition
    >>> response, start = DiagonalTransition(2, kept=0.75, other=0.25), np.full(2, 0.5)
    >>> def share_of_first(counts):
    ...     problem = Problem(response, np.array(counts), start, np.zeros(2), Free(), 1e-9)
    ...     (solution,) = yield [problem]
    ...     return round(float(solution.honest[0]), 3)
    >>> run_stages([share_of_first([60.0, 40.0]), share_of_first([50.0, 50.0])])
    [0.7, 0.5]
    """
    results: dict[int, Result] = {}
    answers: dict[int, list[Solution] | None] = dict.fromkeys(range(len(works)))
    while answers:
        asked = _asked(works, answers, results)
        solved = iter(maximise([each for part in asked.values() for each in part], max_iterations))
        answers = {work: list(islice(solved, len(part))) for work, part in asked.items()}
    return [results[work] for work in range(len(works))]


def _asked(
    works: Sequence[Stages[Result]],
    answers: dict[int, list[Solution] | None],
    results: dict[int, Result],
) -> dict[int, Sequence[Problem]]:
    """What every work asks for next, given its answers; those that are done give their result."""
    asked: dict[int, Sequence[Problem]] = {}
    for work, answer in answers.items():
        try:
            asked[work] = next(works[work]) if answer is None else works[work].send(answer)
        except StopIteration as done:
            results[work] = done.value
    return asked
