"""The one EM loop: it owns convergence, the likelihood trace and the bound on iterations.

Independent problems run side by side. Their arrays lie end to end, so that one sparse product and
one call of each elementwise function serve them all; a problem leaves when it has converged. What a
problem's answer is does not depend on its company.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from scipy import sparse

from unpoison.errors import ConvergenceWarning, InvalidParameter
from unpoison.mechanisms import Transition
from unpoison.types import FloatArray

MAX_ITERATIONS = 100_000


class Step(Protocol):
    """What a filter does in its M-step, in place, after E-step weights were normalised by N."""

    def __call__(self, honest: FloatArray, poison: FloatArray) -> None:
        """Turn the weights P_x / N and P_y / N into the next histograms."""


@dataclass(frozen=True)
class Problem:
    """One histogram pair to find: counts, the transition, where both start, and the M-step.

    Poison can only be where `poison` starts above zero: EM never revives a bucket.
    """

    transition: Transition
    counts: FloatArray
    honest: FloatArray
    poison: FloatArray
    step: Step
    tolerance: float


@dataclass(frozen=True)
class Solution:
    """Where EM stopped: x̂, ŷ, and how it got there."""

    honest: FloatArray
    poison: FloatArray
    likelihoods: FloatArray = field(repr=False)
    converged: bool

    @property
    def iterations(self) -> int:
        """How many M-steps were made."""
        return len(self.likelihoods) - 1

    @property
    def likelihood(self) -> float:
        """l at the returned histograms, over counts."""
        return float(self.likelihoods[-1])

    @property
    def byzantine_fraction(self) -> float:
        """γ̂ = Σ ŷ."""
        return float(self.poison.sum())


def maximise(problems: Sequence[Problem], max_iterations: int = MAX_ITERATIONS) -> list[Solution]:
    """Run EM on every problem until |l^t − l^{t+1}| < τ, or to the bound with a warning."""
    if max_iterations < 1:
        raise InvalidParameter("max_iterations", "must be at least 1", max_iterations)
    if not problems:
        return []
    solutions: list[Solution | None] = [None] * len(problems)
    waiting = list(range(len(problems)))
    batch = _Batch([problems[each] for each in waiting])
    traces: list[list[float]] = [[] for _ in problems]
    for iteration in range(max_iterations + 1):
        likelihoods = batch.expect()
        stopped = []
        for place, each in enumerate(waiting):
            trace = traces[each]
            trace.append(likelihoods[place])
            met = len(trace) > 1 and abs(trace[-1] - trace[-2]) < problems[each].tolerance
            if met or iteration == max_iterations:
                solutions[each] = batch.solution(place, trace, met)
                stopped.append(place)
        if stopped:
            waiting = [each for place, each in enumerate(waiting) if place not in stopped]
            if not waiting:
                break
            batch = batch.without(stopped)
            batch.expect()
        batch.advance()
    return [_warned(solution) for solution in solutions if solution is not None]


def _warned(solution: Solution) -> Solution:
    if not solution.converged:
        warnings.warn(
            f"EM stopped at its bound of {solution.iterations} iterations before it converged",
            ConvergenceWarning,
            stacklevel=3,
        )
    return solution


class _Batch:
    """Problems laid end to end, with views into the common arrays for each."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = list(problems)
        transitions = [problem.transition for problem in problems]
        self.totals = [float(problem.counts.sum()) for problem in problems]
        scaled = [p.counts / total for p, total in zip(problems, self.totals, strict=True)]
        self.shares = np.concatenate(scaled)
        self.poison = np.concatenate([problem.poison for problem in problems])
        self.honest = [problem.honest.copy() for problem in problems]
        self.features = np.empty(sum(t.features for t in transitions))
        self.output_slices = _slices([t.outputs for t in transitions])
        self.feature_slices = _slices([t.features for t in transitions])
        self.starts = np.array([each.start for each in self.output_slices])
        self.matrix = _block_diagonal([t.sparse for t in transitions])
        self.transposed = _block_diagonal([t.transposed for t in transitions])
        self.mixture = np.empty_like(self.shares)
        self.scratch = np.empty_like(self.shares)

    def expect(self) -> list[float]:
        """The mixture Σ_k M_ik x_k + y_i of every bucket; returns each problem's likelihood."""
        for problem, honest, place in zip(
            self.problems, self.honest, self.feature_slices, strict=True
        ):
            problem.transition.write_features(honest, self.features[place])
        self.mixture = self.matrix @ self.features
        self.mixture += self.poison
        np.log(self.mixture, out=self.scratch)
        self.scratch *= self.shares
        sums = np.add.reduceat(self.scratch, self.starts).tolist()
        return [total * mean for total, mean in zip(self.totals, sums, strict=True)]

    def advance(self) -> None:
        """Weights P_x, P_y (Alg. 2, lines 3-9, with the bucket's own denominator), then M-steps."""
        ratio = np.divide(self.shares, self.mixture, out=self.scratch)
        self.poison *= ratio
        gathered = self.transposed @ ratio
        for each, problem in enumerate(self.problems):
            features = gathered[self.feature_slices[each]]
            honest = self.honest[each]
            honest *= problem.transition.gather_features(features)
            problem.step(honest, self.poison[self.output_slices[each]])

    def solution(self, place: int, trace: list[float], converged: bool) -> Solution:
        """The present state of one problem."""
        poison = self.poison[self.output_slices[place]].copy()
        return Solution(self.honest[place].copy(), poison, np.array(trace), converged)

    def without(self, places: list[int]) -> _Batch:
        """The batch that goes on when some problems have stopped."""
        going = [
            Problem(
                problem.transition,
                problem.counts,
                self.honest[place],
                self.poison[self.output_slices[place]],
                problem.step,
                problem.tolerance,
            )
            for place, problem in enumerate(self.problems)
            if place not in places
        ]
        return _Batch(going)


def _slices(lengths: list[int]) -> list[slice]:
    ends = np.cumsum(lengths).tolist()
    return [slice(end - length, end) for end, length in zip(ends, lengths, strict=True)]


def _block_diagonal(blocks: list[sparse.csr_array]) -> sparse.csr_array:
    if len(blocks) == 1:
        return blocks[0]
    return sparse.csr_array(sparse.block_diag(blocks, format="csr"))


def tolerance(epsilon: float) -> float:
    """τ = 0.01·e^ε, the paper's stopping threshold."""
    return 0.01 * math.exp(epsilon)
