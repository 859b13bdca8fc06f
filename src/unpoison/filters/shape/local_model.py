"""The joint likelihood near a fit, as least squares in x, in the γ_t and in the weights of poison.

p_t = (1 − γ_t) M_t x + y_t is linear in each of x, γ and y. With γ_t·(M_t x) and γ_t·s taken at
first order about the fit, and counts as normal with the variance that the fit expects, the deviance
is a quadratic form. Counts tell M_t x and the poison to within noise, so this is accurate also for
an x that is far from x̂ but explains the counts as well.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unpoison.filters.joint import Fit, JointCounts
from unpoison.filters.joint.model import ALIKE, OWN
from unpoison.filters.shape import constants
from unpoison.filters.shape.program import QuadraticProgram
from unpoison.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class LocalModel:
    """Least squares |A·(x, γ, w) − b|² near a fit, with x on any input values.

    `transitions` are those from the input values to the buckets of the counts.

    >>> from unpoison import Plan, simulate
    >>> from unpoison.filters.joint import PoisonModel, fit
    >>> plan = Plan.new(epsilon=0.5, min_epsilon=0.25, low=0, high=1)
    >>> run = simulate(plan, np.full(20_000, 0.3), rng=np.random.default_rng(1))
    >>> counts = JointCounts.of(run.summary, [0, 1])
    >>> honest_fit = fit(counts, PoisonModel.nobody(2, 64))
    >>> program = LocalModel(counts, honest_fit, counts.transitions).program()
    >>> bool(np.abs(program.minimum() - honest_fit.honest).max() < 0.01)
    True
    """

    counts: JointCounts
    fit: Fit
    transitions: FloatArray

    @property
    def inputs(self) -> int:
        """The number of honest unknowns, the length of x."""
        return int(self.transitions.shape[2])

    @property
    def attacked(self) -> IntArray:
        """Groups with attackers according to the fit: γ_t is an unknown of these alone."""
        return np.flatnonzero(self.fit.model.attacked & (self.fit.attacker_shares > 0))

    def program(self) -> QuadraticProgram:
        """The deviance as a quadratic program over (x, γ, w) ≥ 0 with all sums that are fixed.

        Weights that are far from 0 do not need that bound, and are eliminated; and so are the
        largest of very many, which can only make intervals wider.
        """
        matrix, right = self._least_squares()
        information = matrix.T @ matrix
        np.fill_diagonal(information, np.diag(information) * (1 + constants.RIDGE))
        sums, totals = self._fixed_sums()
        program = QuadraticProgram(information, -matrix.T @ right, sums, totals)
        first = self.inputs + len(self.attacked)
        distances = self._weights * np.sqrt(np.diag(information)[first:])
        near = np.argsort(distances)[
            : min(constants.MOST_BOUNDED, int((distances <= constants.FAR_FROM_ZERO).sum()))
        ]
        far = np.setdiff1d(np.arange(len(distances)), near)
        return program.without(first + far) if len(far) else program

    @property
    def _weights(self) -> FloatArray:
        """ŵ of the fit."""
        if self.fit.model.kind == ALIKE and len(self.attacked):
            group = self.attacked[0]
            poison = self.fit.poison[group] / self.fit.attacker_shares[group]
            shared: FloatArray = poison[self.fit.model.shared_buckets]
            return shared
        own: FloatArray = self.fit.poison[self._own_support]
        return own

    def _least_squares(self) -> tuple[FloatArray, FloatArray]:
        fit = self.fit
        by_honest = (1 - fit.attacker_shares)[:, None, None] * self.transitions
        by_share, weights = self._share_slopes(), self._weight_slopes()
        matrix = np.concatenate([by_honest, by_share, weights], axis=2)
        # First order in γ: what the fit's own γ̂ contribute is no part of the change.
        constant = -by_share @ fit.attacker_shares[self.attacked]
        if fit.model.flat:
            constant += fit.poison
        deviation = np.sqrt(self.counts.precision(fit.expected))
        matrix = (matrix * deviation[:, :, None]).reshape(-1, matrix.shape[2])
        right = ((self.counts.observed - constant) * deviation).ravel()
        scatter = self._scatter_of_shares(matrix.shape[1])
        return np.concatenate([matrix, scatter]), np.append(right, np.zeros(len(scatter)))

    def _share_slopes(self) -> FloatArray:
        """∂p/∂γ_t: s − M_t x where poison is shared, else −M_t x, in the rows of group t."""
        fit = self.fit
        slopes = np.zeros((*self.counts.counts.shape, len(self.attacked)))
        honest = (fit.expected - fit.poison) / (1 - fit.attacker_shares)[:, None]
        for place, group in enumerate(self.attacked):
            slopes[group, :, place] = -honest[group]
            if fit.model.shared:
                slopes[group, :, place] += fit.poison[group] / fit.attacker_shares[group]
        return slopes

    def _weight_slopes(self) -> FloatArray:
        """∂p/∂w: γ̂_t for a weight that all groups share, 1 in its own bucket for one's own."""
        fit, (groups, outputs) = self.fit, self.counts.counts.shape
        if fit.model.kind == ALIKE and len(self.attacked):
            buckets = fit.model.shared_buckets
            slopes = np.zeros((groups, outputs, len(buckets)))
            slopes[:, buckets, np.arange(len(buckets))] = fit.attacker_shares[:, None]
            return slopes
        rows = np.flatnonzero(self._own_support)
        own = np.zeros((groups * outputs, len(rows)))
        own[rows, np.arange(len(rows))] = 1
        return own.reshape(groups, outputs, -1)

    @property
    def _own_support(self) -> BoolArray:
        """The buckets in which groups with attackers may have poison of their own, by group."""
        support = np.zeros(self.counts.counts.shape, dtype=bool)
        if self.fit.model.kind == OWN:
            support[self.attacked] = self.fit.model.support[self.attacked]
        return support

    def _scatter_of_shares(self, width: int) -> FloatArray:
        """Rows for the γ_t about their average: random groups make its variance γ(1 − γ)/n_t."""
        number = len(self.attacked) if self.fit.model.tied_shares else 0
        rows = np.zeros((number, width))
        if number:
            users = self.counts.users[self.attacked]
            average = users @ self.fit.attacker_shares[self.attacked] / users.sum()
            variance = max(average * (1 - average), 1 / self.counts.users.sum()) / users
            centring = np.eye(number) - users / users.sum()
            rows[:, self.inputs : self.inputs + number] = centring / np.sqrt(variance)[:, None]
        return rows

    def _fixed_sums(self) -> tuple[FloatArray, FloatArray]:
        """Σx = 1; Σs = 1 of shared weights; Σw = γ_t of a group's own."""
        shares, weights = len(self.attacked), self._weight_slopes().shape[2]
        width = self.inputs + shares + weights
        sums, totals = [np.arange(width) < self.inputs], [1.0]
        if self.fit.model.kind == ALIKE and shares:
            sums.append(np.arange(width) >= self.inputs + shares)
            totals.append(1.0)
        rows = [row.astype(np.float64) for row in sums]
        if self.fit.model.kind == OWN:
            owners = np.nonzero(self._own_support)[0]
            for place, group in enumerate(self.attacked):
                row = np.zeros(width)
                row[self.inputs + place] = -1
                row[self.inputs + shares :] = owners == group
                rows.append(row)
                totals.append(0.0)
        return np.array(rows), np.array(totals)
