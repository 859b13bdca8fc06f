"""The one EM loop: it owns convergence, the likelihood trace and the bound on iterations.

Independent problems run side by side. Their arrays lie end to end, so that one sparse product and
one call of each elementwise function serve them all; a problem leaves when it has converged. What a
problem's answer is does not depend on its company.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.sparse import csr_array

from unpoison.errors import ConvergenceWarning, InvalidParameter
from unpoison.filters.em.product import Product
from unpoison.filters.em.steps import Free, Step
from unpoison.mechanisms import Transition
from unpoison.types import FloatArray

MAX_ITERATIONS = 100_000
NEGLIGIBLE = 1e-150
FLUSH_EVERY = 32


@dataclass(frozen=True)
class Problem:
    """One histogram pair to find: counts, the transition, where both start, and the M-step.

    Poison can only be where `poison` starts above zero: EM never revives a bucket.

    >>> from unpoison.mechanisms import DiagonalTransition
    >>> counts, third = np.array([60.0, 40.0]), np.full(2, 1 / 3)
    >>> response = DiagonalTransition(2, kept=0.75, other=0.25)
    >>> problem = Problem(response, counts, third, third * [0, 1], Free(), tolerance=0.01)
    >>> float(maximise([problem])[0].poison[0])
    0.0
    """

    transition: Transition
    counts: FloatArray
    honest: FloatArray
    poison: FloatArray
    step: Step
    tolerance: float


@dataclass(frozen=True)
class Solution:
    """Where EM stopped: x̂, ŷ, and how it got there.

    >>> histograms = np.array([0.5, 0.25]), np.array([0.0, 0.25])
    >>> stopped = Solution(*histograms, likelihoods=np.array([-9.5, -8.5, -8.5]), converged=True)
    >>> stopped.byzantine_fraction, stopped.iterations, stopped.likelihood
    (0.25, 2, -8.5)
    """

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

    def mean_of(self, values: FloatArray) -> float:
        """The mean of x̂, given the value of each bucket."""
        return float(self.honest @ values / self.honest.sum())


def maximise(problems: Sequence[Problem], max_iterations: int = MAX_ITERATIONS) -> list[Solution]:
    """Run EM on every problem until |l^t − l^{t+1}| < τ, or to the bound with a warning.

    >>> from unpoison.mechanisms import DiagonalTransition
    >>> response = DiagonalTransition(2, kept=0.75, other=0.25)
    >>> counts, start, nowhere = np.array([60.0, 40.0]), np.full(2, 0.5), np.zeros(2)
    >>> (solution,) = maximise([Problem(response, counts, start, nowhere, Free(), 1e-9)])
    >>> solution.honest.round(3).tolist()
    [0.7, 0.3]
    """
    if max_iterations < 1:
        raise InvalidParameter("max_iterations", "must be at least 1", max_iterations)
    if not problems:
        return []
    batch, waiting = _Batch(problems), list(range(len(problems)))
    traces = [[likelihood] for likelihood in batch.expect()]
    solutions: dict[int, Solution] = {}
    for iteration in range(1, max_iterations + 1):
        batch.advance()
        likelihoods = batch.expect()
        met = []
        for place, each in enumerate(waiting):
            trace = traces[each]
            trace.append(likelihoods[place])
            met.append(abs(trace[-1] - trace[-2]) < problems[each].tolerance)
        last = iteration == max_iterations
        if iteration % FLUSH_EVERY == 0:
            batch.flush()
        if last or any(met):
            stopped = [place for place in range(len(waiting)) if last or met[place]]
            for place in stopped:
                each = waiting[place]
                solutions[each] = batch.solution(place, traces[each], met[place])
            waiting = [each for each in waiting if each not in solutions]
            if not waiting:
                break
            batch = batch.without(stopped)
            batch.expect()
    return [_warned(solutions[each]) for each in range(len(problems))]


def _warned(solution: Solution) -> Solution:
    if not solution.converged:
        warnings.warn(
            f"EM stopped at its bound of {solution.iterations} iterations before it converged",
            ConvergenceWarning,
            stacklevel=3,
        )
    return solution


class _Batch:
    """Problems laid end to end in common arrays, with views for each."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = list(problems)
        transitions = [problem.transition for problem in problems]
        totals = [float(problem.counts.sum()) for problem in problems]
        self.shares = np.concatenate([p.counts / n for p, n in zip(problems, totals, strict=True)])
        self.poison = np.concatenate([problem.poison for problem in problems])
        self.honest = np.concatenate([problem.honest for problem in problems])
        self.gathered = np.empty_like(self.honest)
        self.features = np.empty(sum(t.features for t in transitions))
        self.mixture = np.empty_like(self.shares)
        self.scratch = np.empty_like(self.shares)
        self.gathered_features = np.empty_like(self.features)
        self.forward = Product(_block_diagonal([t.sparse for t in transitions]))
        self.adjoint = Product(_block_diagonal([t.transposed for t in transitions]))

        self.inputs = _slices([t.inputs for t in transitions])
        self.outputs = _slices([t.outputs for t in transitions])
        self.feature_slices = _slices([t.features for t in transitions])
        self.writers = [
            (t.write_features, self.honest[self.inputs[i]], self.features[self.feature_slices[i]])
            for i, t in enumerate(transitions)
        ]
        self.gatherers = [
            (
                t.gather_features,
                self.gathered_features[self.feature_slices[i]],
                self.gathered[self.inputs[i]],
            )
            for i, t in enumerate(transitions)
        ]
        self.totals = totals
        self.starts = np.array([place.start for place in self.outputs])
        self.steps = [
            (problem.step, self.honest[self.inputs[i]], self.poison[self.outputs[i]])
            for i, problem in enumerate(problems)
            if not isinstance(problem.step, Free)
        ]

    def expect(self) -> list[float]:
        """The mixture Σ_k M_ik x_k + y_i of every bucket; returns each problem's likelihood."""
        for write, honest, features in self.writers:
            write(honest, features)
        self.mixture[:] = self.poison
        self.forward.add(self.features, self.mixture)
        np.log(self.mixture, out=self.scratch)
        self.scratch *= self.shares
        means = np.add.reduceat(self.scratch, self.starts).tolist()
        return [total * mean for total, mean in zip(self.totals, means, strict=True)]

    def advance(self) -> None:
        """Weights P_x, P_y (Alg. 2, lines 3-9, with the bucket's own denominator), then M-steps."""
        ratio = np.divide(self.shares, self.mixture, out=self.scratch)
        self.poison *= ratio
        self.gathered_features.fill(0.0)
        self.adjoint.add(ratio, self.gathered_features)
        for gather, features, gathered in self.gatherers:
            gather(features, gathered)
        self.honest *= self.gathered
        for step, honest, poison in self.steps:
            step(honest, poison)

    def flush(self) -> None:
        """Set what has faded to nothing to zero, before it becomes denormal: that is slow."""
        self.poison[self.poison < NEGLIGIBLE] = 0.0
        self.honest[self.honest < NEGLIGIBLE] = 0.0

    def solution(self, place: int, trace: list[float], converged: bool) -> Solution:
        """The present state of one problem."""
        honest = self.honest[self.inputs[place]].copy()
        poison = self.poison[self.outputs[place]].copy()
        return Solution(honest, poison, np.array(trace), converged)

    def without(self, places: list[int]) -> _Batch:
        """The batch that goes on when some problems have stopped."""
        going = [
            replace(
                problem,
                honest=self.honest[self.inputs[place]],
                poison=self.poison[self.outputs[place]],
            )
            for place, problem in enumerate(self.problems)
            if place not in places
        ]
        return _Batch(going)


def _slices(lengths: list[int]) -> list[slice]:
    ends = np.cumsum(lengths).tolist()
    return [slice(end - length, end) for end, length in zip(ends, lengths, strict=True)]


def _block_diagonal(blocks: list[csr_array]) -> csr_array:
    """Blocks down the diagonal; row by row they need no more than their columns shifted."""
    columns = _slices([block.shape[1] for block in blocks])
    entries = _slices([block.nnz for block in blocks])
    starts = [b.indptr[:-1] + e.start for b, e in zip(blocks, entries, strict=True)]
    indices = [b.indices + c.start for b, c in zip(blocks, columns, strict=True)]
    pointers = np.concatenate([*starts, [entries[-1].stop]])
    data = np.concatenate([block.data for block in blocks])
    shape = (sum(block.shape[0] for block in blocks), columns[-1].stop)
    return csr_array((data, np.concatenate(indices), pointers), shape=shape)


def tolerance(epsilon: float) -> float:
    """τ = 0.01·e^ε, the paper's stopping threshold.

    >>> round(tolerance(1.0), 4)
    0.0272
    """
    return 0.01 * math.exp(epsilon)
