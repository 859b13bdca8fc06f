"""The unknowns of a fit at one step of the solver: x, a, w, and the multipliers of their bounds.

In rows (a row is a bucket of a group) the expected fractions are p = a_t (M_t x)_i + y_ti, with
a_t = 1 − γ_t the honest share of group t and y the poison that the weights w describe.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import scipy

from unpoison.filters.joint import constants
from unpoison.filters.joint.counts import JointCounts
from unpoison.filters.joint.model import ALIKE, OWN, PoisonModel
from unpoison.types import FloatArray, IntArray


class Point:
    """x, a and w, each with the multipliers of its bounds, at one value of the barrier μ.

    >>> from unpoison import Plan, simulate
    >>> plan = Plan.new(epsilon=0.5, min_epsilon=0.25, low=0, high=1)
    >>> run = simulate(plan, np.full(20_000, 0.3), rng=np.random.default_rng(1))
    >>> point = Point(JointCounts.of(run.summary, [0, 1]), PoisonModel.nobody(2, 64))
    >>> float(point.expected().sum().round(6)), point.bound_count
    (2.0, 66)
    """

    def __init__(self, counts: JointCounts, model: PoisonModel) -> None:
        self.counts, self.model = counts, model
        groups, inputs = len(counts.reports), counts.inputs
        self.attacked = np.flatnonzero(model.attacked)
        self.honest = np.full(inputs, 1 / inputs)
        share = constants.FIRST_FLAT_SHARE if model.flat else constants.FIRST_ATTACKER_SHARE
        self.honest_shares = np.where(model.attacked, 1 - share, 1.0)
        self.weights = model.initial_weights(share)
        self.barrier = constants.FIRST_BARRIER
        self.honest_multipliers = self.barrier / self.honest
        self.weight_multipliers = self.barrier / self.weights
        # Own weights sum to γ_t, so w ≥ 0 keeps a_t ≤ 1. Shared weights sum to 1 and do not.
        self.bounded = self.attacked if model.shared else self.attacked[:0]
        self.share_multipliers = self.barrier / (1 - self.honest_shares[self.bounded])
        self.row_reports = np.repeat(counts.reports, counts.counts.shape[1])
        self.row_groups = np.repeat(np.arange(groups), counts.counts.shape[1])
        self.in_attacked_group = self.row_groups[:, None] == self.attacked
        self.transitions = counts.stacked_transitions

    @cached_property
    def weight_rows(self) -> IntArray:
        """The rows that each weight enters: one line a weight, a column for each of its groups."""
        outputs = self.model.support.shape[1]
        if self.model.kind == ALIKE:
            rows: IntArray = self.model.shared_buckets[:, None] + outputs * self.attacked
            return rows
        return np.flatnonzero(self.model.support)[:, None]

    def weight_slopes(self) -> FloatArray:
        """∂p/∂w in the rows of each weight: γ_t where it is shared, else 1."""
        if self.model.kind == ALIKE:
            return np.broadcast_to(self.attacker_shares, self.weight_rows.shape)
        return np.ones(self.weight_rows.shape)

    @property
    def attacker_shares(self) -> FloatArray:
        """γ_t of the attacked groups."""
        shares: FloatArray = 1 - self.honest_shares[self.attacked]
        return shares

    @property
    def shared_poison(self) -> FloatArray:
        """s in rows: shared poison as fractions of all poison; 0 where each group has its own."""
        groups, outputs = self.model.support.shape
        if not self.model.shared:
            return np.zeros(groups * outputs)
        return self.model.poison(self.weights, np.ones(groups)).ravel()

    def honest_expected(self) -> FloatArray:
        """M x in rows: the fractions if all users were honest."""
        rows: FloatArray = self.transitions @ self.honest
        return rows

    def poison(self) -> FloatArray:
        """y_t by group and bucket."""
        return self.model.poison(self.weights, 1 - self.honest_shares)

    def expected(self, honest_expected: FloatArray | None = None) -> FloatArray:
        """p in rows; M x need not be computed again if it is at hand."""
        honest = self.honest_expected() if honest_expected is None else honest_expected
        mixture: FloatArray = self.honest_shares[self.row_groups] * honest + self.poison().ravel()
        return mixture

    def derivatives(self, honest_expected: FloatArray) -> FloatArray:
        """∂p by x, and by the a_t of attacked groups: M x − s, in the rows of group t alone."""
        by_honest = self.honest_shares[self.row_groups][:, None] * self.transitions
        difference = honest_expected - self.shared_poison
        by_share = np.where(self.in_attacked_group, difference[:, None], 0.0)
        return np.concatenate([by_honest, by_share], axis=1)

    @cached_property
    def fixed_sums(self) -> tuple[FloatArray, FloatArray]:
        """Sums that must be 1: that of x; of shared weights; of a_t and own weights in each group.

        Two matrices with a row for each sum: one for x and a, one for w.
        """
        inputs, groups, weights = len(self.honest), len(self.attacked), len(self.weights)
        of_x_and_a = [np.concatenate([np.ones(inputs), np.zeros(groups)])]
        of_w = [np.zeros(weights)]
        if self.model.kind == ALIKE:
            of_x_and_a.append(np.zeros(inputs + groups))
            of_w.append(np.ones(weights))
        if self.model.kind == OWN:
            owner = np.nonzero(self.model.support)[0]
            of_x_and_a.extend(np.eye(inputs + groups)[inputs:])
            of_w.extend((owner == group).astype(np.float64) for group in self.attacked)
        return np.array(of_x_and_a), np.array(of_w)

    @property
    def bound_count(self) -> int:
        """Number of bounds that have a multiplier: x ≥ 0, w ≥ 0, and a ≤ 1 of shared poison."""
        return len(self.honest) + len(self.weights) + len(self.bounded)

    @property
    def duality_gap(self) -> float:
        """Sum of all variables times their multipliers.

        With a given the problem is convex, and the log-likelihood can rise by no more than this.
        """
        gap = self.honest @ self.honest_multipliers + self.weights @ self.weight_multipliers
        return float(gap + (1 - self.honest_shares[self.bounded]) @ self.share_multipliers)

    def deviance(self) -> float:
        """Twice what the log-likelihood falls short of its most: by the counts, and by the γ_t."""
        expected = self.expected().reshape(self.counts.counts.shape)
        return self.counts.deviance(expected) + 2 * self.share_scatter

    @property
    def share_scatter(self) -> float:
        """Log-likelihood that the γ_t lose by their scatter about one γ.

        Attackers are in random groups: n_t γ_t of n_t users, binomial with one γ. What is lost is
        n_t times the relative entropy of γ_t to γ, which is largest likely at the average.
        """
        if not self.model.tied_shares:
            return 0.0
        users, shares = self.counts.users[self.attacked], self.attacker_shares
        average = users @ shares / users.sum()
        lost = scipy.special.rel_entr(shares, average) + scipy.special.rel_entr(
            1 - shares, 1 - average
        )
        return float(users @ lost)
