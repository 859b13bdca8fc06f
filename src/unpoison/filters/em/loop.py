"""The EM loop of all filters: convergence, the likelihood trace and the bound on iterations.

Independent problems run side by side. Their arrays lie end to end, so that one sparse product and
one call of each elementwise function serve them all; a problem leaves when it has converged. The
solution of a problem does not depend on which others run beside it.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import scipy

from unpoison.errors import ConvergenceWarning, InvalidParameter
from unpoison.filters.em.m_steps import FreePoison, MStep
from unpoison.filters.em.sparse_product import SparseProduct, product_kernel
from unpoison.mechanisms import Transition
from unpoison.types import FloatArray

MAX_ITERATIONS = 100_000
"""Iterations of one problem, at most. Usual runs take up to some thousands; EM can crawl on counts
that an attacker chose, and the bound keeps its cost finite."""
NEGLIGIBLE = 1e-150
"""Frequencies below this are set to 0. Far above denormal numbers (1e-308), with which processors
are slow, so that few frequencies get there between two looks."""
FLUSH_EVERY = 32
"""Iterations between two looks for negligible frequencies, which cost a pass over all arrays."""


@dataclass(frozen=True)
class Problem:
    """A maximum-likelihood problem for EM: counts c, transition M, where x̂ and ŷ start, the M-step.

    Poison can only be where `poison` starts above zero: EM never revives a bucket.

    >>> from unpoison.mechanisms import DiagonalTransition
    >>> counts, third = np.array([60.0, 40.0]), np.full(2, 1 / 3)
    >>> response = DiagonalTransition(2, kept=0.75, other=0.25)
    >>> problem = Problem(response, counts, third, third * [0, 1], FreePoison(), tolerance=0.01)
    >>> float(maximise([problem])[0].poison[0])
    0.0
    """

    transition: Transition
    counts: FloatArray
    honest: FloatArray
    poison: FloatArray
    m_step: MStep
    tolerance: float


@dataclass(frozen=True)
class Solution:
    """The histograms x̂ and ŷ at which EM stopped, and the log-likelihood after every iteration.

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
        """The number of M-steps that were made."""
        return len(self.likelihoods) - 1

    @property
    def likelihood(self) -> float:
        """The log-likelihood l = Σ c_i ln p_i at the returned histograms."""
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
    >>> (solution,) = maximise([Problem(response, counts, start, nowhere, FreePoison(), 1e-9)])
    >>> solution.honest.round(3).tolist()
    [0.7, 0.3]
    """
    if max_iterations < 1:
        raise InvalidParameter("max_iterations", "must be at least 1", max_iterations)
    if not problems:
        return []
    # `running[i]` is the number, among all problems, of the i-th problem in the batch.
    batch, running = _Batch(problems), list(range(len(problems)))
    traces = [[likelihood] for likelihood in batch.expect()]
    solutions: dict[int, Solution] = {}
    for iteration in range(1, max_iterations + 1):
        batch.advance()
        likelihoods = batch.expect()
        converged = []
        for index, problem in enumerate(running):
            trace = traces[problem]
            trace.append(likelihoods[index])
            converged.append(abs(trace[-1] - trace[-2]) < problems[problem].tolerance)
        last = iteration == max_iterations
        if iteration % FLUSH_EVERY == 0:
            batch.flush()
        if last or any(converged):
            stopped = [index for index in range(len(running)) if last or converged[index]]
            for index in stopped:
                problem = running[index]
                solutions[problem] = batch.solution(index, traces[problem], converged[index])
            running = [problem for problem in running if problem not in solutions]
            if not running:
                break
            batch = batch.without(stopped)
            # The new batch has no mixture yet, which the next E-step divides by.
            batch.expect()
    return [_warned(solutions[problem]) for problem in range(len(problems))]


def _warned(solution: Solution) -> Solution:
    if not solution.converged:
        warnings.warn(
            f"EM stopped at its bound of {solution.iterations} iterations before it converged",
            ConvergenceWarning,
            stacklevel=3,
        )
    return solution


class _Batch:
    """Problems laid end to end in common arrays, with views for each.

    A transition is M = S·P (docs/architecture.md): `features` are P x, and S is the sparse part.
    """

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
        # One number a bucket, for `expect` and then `advance`: an array for each would be made anew
        # in every iteration.
        self.bucket_buffer = np.empty_like(self.shares)
        self.gathered_features = np.empty_like(self.features)
        kernel = product_kernel()
        self.forward = SparseProduct(_block_diagonal([t.sparse for t in transitions]), kernel)
        self.adjoint = SparseProduct(_block_diagonal([t.transposed for t in transitions]), kernel)

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
        self.starts = np.array([outputs.start for outputs in self.outputs])
        # The M-step of EMF does nothing, so it is not called.
        self.m_steps = [
            (problem.m_step, self.honest[self.inputs[i]], self.poison[self.outputs[i]])
            for i, problem in enumerate(problems)
            if not isinstance(problem.m_step, FreePoison)
        ]

    def expect(self) -> list[float]:
        """The mixture Σ_k M_ik x_k + y_i of every bucket; returns each problem's likelihood."""
        for write, honest, features in self.writers:
            write(honest, features)
        self.mixture[:] = self.poison
        self.forward.add(self.features, self.mixture)
        np.log(self.mixture, out=self.bucket_buffer)
        self.bucket_buffer *= self.shares
        means = np.add.reduceat(self.bucket_buffer, self.starts).tolist()
        return [total * mean for total, mean in zip(self.totals, means, strict=True)]

    def advance(self) -> None:
        """Weights P_x, P_y (Alg. 2, lines 3-8, with bucket i's own denominator), then M-steps.

        The paper prints one denominator for the lower half of x and another for the upper; what
        is meant is Σ_t M_it x_t, plus y_i where bucket i may hold poison.
        """
        ratio = np.divide(self.shares, self.mixture, out=self.bucket_buffer)
        self.poison *= ratio
        self.gathered_features.fill(0.0)
        self.adjoint.add(ratio, self.gathered_features)
        for gather, features, gathered in self.gatherers:
            gather(features, gathered)
        self.honest *= self.gathered
        for m_step, honest, poison in self.m_steps:
            m_step(honest, poison)

    def flush(self) -> None:
        """Set negligible frequencies to 0, before they become denormal numbers, which are slow."""
        self.poison[self.poison < NEGLIGIBLE] = 0.0
        self.honest[self.honest < NEGLIGIBLE] = 0.0

    def solution(self, index: int, trace: list[float], converged: bool) -> Solution:
        """The present state of one problem."""
        honest = self.honest[self.inputs[index]].copy()
        poison = self.poison[self.outputs[index]].copy()
        return Solution(honest, poison, np.array(trace), converged)

    def without(self, stopped: list[int]) -> _Batch:
        """A batch of the problems that go on, from where they are."""
        remaining = [
            replace(
                problem,
                honest=self.honest[self.inputs[index]],
                poison=self.poison[self.outputs[index]],
            )
            for index, problem in enumerate(self.problems)
            if index not in stopped
        ]
        return _Batch(remaining)


def _slices(lengths: list[int]) -> list[slice]:
    ends = np.cumsum(lengths).tolist()
    return [slice(end - length, end) for end, length in zip(ends, lengths, strict=True)]


def _block_diagonal(blocks: list[scipy.sparse.csr_array]) -> scipy.sparse.csr_array:
    """Blocks down the diagonal, in less time than SciPy's general builder takes for small ones."""
    columns = _slices([block.shape[1] for block in blocks])
    entries = _slices([block.nnz for block in blocks])
    starts = [b.indptr[:-1] + e.start for b, e in zip(blocks, entries, strict=True)]
    indices = [b.indices + c.start for b, c in zip(blocks, columns, strict=True)]
    pointers = np.concatenate([*starts, [entries[-1].stop]])
    data = np.concatenate([block.data for block in blocks])
    shape = (sum(block.shape[0] for block in blocks), columns[-1].stop)
    return scipy.sparse.csr_array((data, np.concatenate(indices), pointers), shape=shape)


def tolerance(epsilon: float) -> float:
    """τ = 0.01·e^ε, the paper's stopping threshold for the log-likelihood (Section VI).

    >>> round(tolerance(1.0), 4)
    0.0272
    """
    return 0.01 * math.exp(epsilon)
