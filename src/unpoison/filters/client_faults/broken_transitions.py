"""Transitions of groups in which clients are broken, and the best that a mixture could explain."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy

from unpoison.filters.client_faults.broken_mechanism import BrokenMechanism, Users
from unpoison.filters.client_faults.hypotheses import Hypothesis
from unpoison.filters.joint import JointCounts
from unpoison.mechanisms import Mechanism
from unpoison.types import FloatArray


@dataclass(frozen=True, eq=False)
class BrokenTransitions:
    """Transitions if all clients that can have a fault have it, and what is accepted of them.

    >>> from unpoison import Plan, simulate
    >>> from unpoison.filters.client_faults.hypotheses import other_budgets
    >>> plan = Plan.new(epsilon=1.0, min_epsilon=0.5, low=0, high=1)
    >>> run = simulate(plan, np.full(2000, 0.3), rng=np.random.default_rng(1))
    >>> counts = JointCounts.of(run.summary, [0, 1])
    >>> broken = BrokenTransitions.of(counts, other_budgets(plan, {1: 1.0}))
    >>> broken.shares(0.25).tolist(), broken.mixed(counts, 0.0) is counts
    ([0.0, 0.25], False)
    """

    matrices: FloatArray
    """Chances by group, bucket and input, as in `JointCounts.transitions`."""
    acceptance: FloatArray
    """The share of reports of broken clients that is accepted; 0 where no client can be broken."""

    @classmethod
    def of(
        cls, counts: JointCounts, hypothesis: Hypothesis, users: Users | None = None
    ) -> BrokenTransitions:
        """The transitions of a hypothesis, near the values that users are thought to have."""
        matrices, acceptance = counts.transitions.copy(), np.zeros(len(counts.groups))
        for index, group in enumerate(counts.groups):
            if group in hypothesis.clients:
                healthy, client = counts.buckets[index].mechanism, hypothesis.clients[group]
                broken = BrokenMechanism(healthy, client, 1.0, users)
                matrices[index] = transition_of(counts, broken, index)
                acceptance[index] = broken.acceptance
        return cls(matrices, acceptance)

    def shares(self, share: float) -> FloatArray:
        """The share of broken clients' reports in each group, if that share of clients is."""
        accepted = share * self.acceptance
        held: FloatArray = np.where(self.acceptance > 0, accepted / (1 - share + accepted), 0.0)
        return held

    def mixed(self, counts: JointCounts, share: float) -> JointCounts:
        """The counts, with transitions of that share of broken clients."""
        shares = self.shares(share)[:, None, None]
        transitions = (1 - shares) * counts.transitions + shares * self.matrices
        return replace(counts, transitions=transitions)


def transition_of(counts: JointCounts, mechanism: Mechanism, index: int) -> FloatArray:
    """The transition of a group by another mechanism: from buckets, then from single values of x.

    >>> from unpoison import Plan, simulate
    >>> plan = Plan.new(epsilon=1.0, min_epsilon=0.5, low=0, high=1)
    >>> run = simulate(plan, np.full(2000, 0.3), rng=np.random.default_rng(1))
    >>> counts = JointCounts.of(run.summary, [0, 1])
    >>> same = transition_of(counts, plan.group_mechanisms[1], 1)
    >>> bool(np.allclose(same, counts.transitions[1]))
    True
    """
    buckets = counts.buckets[index]
    of_buckets = mechanism.transition(buckets.input_edges, buckets.output_edges).dense()
    if mechanism.categorical:
        return of_buckets
    values = counts.values[counts.bucket_inputs :]
    of_values = mechanism.cell_probabilities(values, buckets.output_edges).T
    return np.concatenate([of_buckets[:, : counts.bucket_inputs], of_values], axis=1)


def least_deviance(counts: JointCounts, broken: FloatArray) -> float:
    """The deviance of the best mixture of healthy and broken clients with values of their own.

    By one problem of least squares, with the variances of the observed counts.

    >>> from unpoison import Plan, simulate
    >>> plan, rng = Plan.new(epsilon=1.0, min_epsilon=0.5, low=0, high=1), np.random.default_rng(1)
    >>> counts = JointCounts.of(simulate(plan, rng.random(20_000), rng=rng).summary, [0, 1])
    >>> least_deviance(counts, counts.transitions) < 150
    True
    """
    both = np.concatenate([counts.transitions, broken], axis=2)
    matrix = both.reshape(-1, both.shape[2])
    weights = (1 / counts.noise).ravel()
    basis, triangle = np.linalg.qr(weights[:, None] * matrix)
    solution = scipy.optimize.nnls(triangle, basis.T @ (weights * counts.observed.ravel()))[0]
    expected = (matrix @ (solution / solution.sum())).reshape(counts.counts.shape)
    with np.errstate(divide="ignore"):
        return counts.deviance(expected)
