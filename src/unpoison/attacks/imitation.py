"""Reports as of other honest users: the poison that turns the honest users' reports into these.

Honest users with histogram h send M_t·h in group t, a share 1 − γ of its reports. Attackers look
for another histogram b with as much of what they want as can be, such that in no bucket of any
group M_t·b is less than (1 − γ)·M_t·h, and send the rest. That is a linear program. With a decoy,
a share of the reports is to be visible poison s, and (1 − share)·M_t·b + share·s_t takes the place
of M_t·b.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy

from unpoison.attacks.base import Attack
from unpoison.attacks.target import Collection
from unpoison.errors import InvalidParameter
from unpoison.mechanisms import Mechanism
from unpoison.types import FloatArray, IntArray

REPORT_BUCKETS = 256
"""Report buckets of each group in the program: four times as many as the joint filter looks at.
Within a bucket poison is spread evenly."""
INPUT_BUCKETS = 64
"""Buckets of the inputs that imitated users may have, as many as the oracle floor has."""
MOST_INPUTS = 2**12
"""Different inputs of honest users that are kept as they are, as in directly drawn collections."""
DECOY_DRAWS = 2**23
"""Reports by which a decoy's distribution is found: far more than a collection has in a bucket."""
Gain = Callable[[FloatArray], FloatArray]
"""The gain of imitating users with each of some inputs; linear where inputs are numbers."""


@dataclass(frozen=True, eq=False)
class Imitated:
    """The gain of attackers, averaged over the users that they imitate, and the poison for it.

    `poison` has for every group how likely its poison is in each cell.

    >>> Imitated(gain=0.5, poison=[np.array([0.0, 1.0])]).poison[0].sum()
    np.float64(1.0)
    """

    gain: float
    poison: list[FloatArray]


@dataclass(frozen=True, eq=False)
class Imitation:
    """Attackers who make reports those of other honest users, and of a decoy.

    They want as much `gain` as can be, averaged over the users that they imitate. `decoy_share` of
    all reports are to look like those of the attack `decoy`; if that is none, like the poison at
    the same places in all groups by which they gain most.

    >>> from unpoison.attacks.none import NoAttack
    >>> from unpoison.attacks.target import Target
    >>> from unpoison.mechanisms import make
    >>> groups = tuple(Target(make("k-rr", 1.0, 3), np.nan, group=n, groups=2) for n in (0, 1))
    >>> collection = Collection(groups, np.arange(3.0), np.array([6, 3, 1]), 0.25)
    >>> imitation = Imitation(collection, lambda inputs: inputs == 2, 0.0, NoAttack())
    >>> imitated = imitation.solve()
    >>> round(imitated.gain, 2), imitated.poison[0].round(2).tolist()
    (0.62, [0.0, 0.0, 1.0])
    """

    collection: Collection
    gain: Gain
    decoy_share: float
    decoy: Attack

    def solve(self) -> Imitated:
        """The users to imitate, by the linear program, and the poison that is missing for them."""
        honest = _HonestUsers.of(self.collection)
        groups = [
            _GroupReports.of(target.mechanism, honest, self._decoys(number))
            for number, target in enumerate(self.collection.groups)
        ]
        gains = honest.gains(self.gain)
        imitated, decoys = self._shares(groups, gains)
        poison = [group.poison(imitated, decoys, self._honest_share) for group in groups]
        return Imitated(float(gains @ imitated / imitated.sum()), poison)

    @property
    def _honest_share(self) -> float:
        return 1 - self.collection.byzantine_fraction

    def _shares(
        self, groups: list[_GroupReports], gains: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """The shares of all reports that are of each kind of users, and of each decoy."""
        reports = np.vstack([np.hstack([group.kinds, group.decoys]) for group in groups])
        honest = np.concatenate([group.honest for group in groups])
        decoys = reports.shape[1] - len(gains)
        total = np.zeros((2, reports.shape[1]))
        total[0, : len(gains)] = total[1, len(gains) :] = 1.0
        solution = scipy.optimize.linprog(
            np.concatenate([-gains, np.zeros(decoys)]),
            # In units of an even share of a bucket, which the solver's tolerances are made for.
            A_ub=-REPORT_BUCKETS * reports,
            b_ub=-REPORT_BUCKETS * self._honest_share * honest,
            A_eq=total[: 2 if decoys else 1],
            b_eq=[1 - self.decoy_share, self.decoy_share][: 2 if decoys else 1],
            method="highs",
        )
        if not solution.success:
            rule = "must leave reports that other honest users could have sent"
            raise InvalidParameter("decoy", rule, f"{self.decoy_share:g} of all reports")
        shares = np.asarray(solution.x)
        return shares[: len(gains)], shares[len(gains) :]

    def _decoys(self, group: int) -> FloatArray:
        """The chance of each bucket of the group, for the decoys to choose from (a column each)."""
        target = self.collection.target(group)
        first = _first_cells(target.mechanism.cells)[:-1]
        if not self.decoy_share:
            return np.empty((len(first), 0))
        if not self.decoy.active:
            return np.eye(len(first))
        # The same seed for every group, so that a decoy that is alike in all is so exactly.
        counts = self.decoy.poison_counts(target, DECOY_DRAWS, np.random.default_rng(0))
        return np.add.reduceat(counts, first)[:, None] / DECOY_DRAWS


@dataclass(frozen=True, eq=False)
class _HonestUsers:
    """The honest users by their different inputs, in rising order, and the kinds to imitate.

    Of categories every one is a kind. Of numbers a kind are users who are spread evenly over a
    bucket of inputs, and another one the honest users of that bucket, where there are some. So the
    honest users themselves can be imitated, however uneven they are.
    """

    inputs: FloatArray
    shares: FloatArray
    edges: FloatArray | None

    @classmethod
    def of(cls, collection: Collection) -> _HonestUsers:
        mechanism = collection.groups[0].mechanism
        if mechanism.categorical:
            numbers = collection.inputs.astype(np.int64)
            shares = _added(numbers, collection.shares, mechanism.cells)
            return cls(np.arange(mechanism.cells, dtype=np.float64), shares, edges=None)
        inputs, shares = _few_inputs(collection)
        # Values that none of the honest users has would make averages of nothing.
        inputs, shares = inputs[shares > 0], shares[shares > 0]
        edges = np.linspace(mechanism.input_low, mechanism.input_high, INPUT_BUCKETS + 1)
        return cls(inputs, shares, edges)

    def averages(self, of_inputs: FloatArray) -> FloatArray:
        """Averages over the honest users of each bucket of something that inputs have, by row."""
        if self.edges is None:
            return of_inputs
        buckets = np.searchsorted(self.edges[1:-1], self.inputs, side="right")
        first = np.flatnonzero(np.diff(buckets, prepend=-1))
        weighted = (of_inputs.T * self.shares).T
        totals = np.add.reduceat(self.shares, first)
        averages: FloatArray = (np.add.reduceat(weighted, first).T / totals).T
        return averages

    def gains(self, gain: Gain) -> FloatArray:
        """The gain of each kind."""
        of_honest = self.averages(np.asarray(gain(self.inputs), dtype=np.float64))
        if self.edges is None:
            return of_honest
        return np.concatenate([gain((self.edges[1:] + self.edges[:-1]) / 2), of_honest])


@dataclass(frozen=True, eq=False)
class _GroupReports:
    """One group's report buckets: how likely each is for the honest users, and (a column each) for
    every kind of users and every decoy; and how many cells it has."""

    honest: FloatArray
    kinds: FloatArray
    decoys: FloatArray
    cells: IntArray

    @classmethod
    def of(cls, mechanism: Mechanism, users: _HonestUsers, decoys: FloatArray) -> _GroupReports:
        first = _first_cells(mechanism.cells)
        edges = mechanism.grid()[first]
        single = mechanism.cell_probabilities(users.inputs, edges)
        kinds = users.averages(single).T
        if users.edges is not None:
            kinds = np.hstack([mechanism.transition(users.edges, edges).dense(), kinds])
        return cls(users.shares @ single, kinds, decoys, np.diff(first))

    def poison(self, imitated: FloatArray, decoys: FloatArray, honest_share: float) -> FloatArray:
        """The chance of each cell: all that is to be reported, less what honest users report."""
        reported = self.kinds @ imitated + self.decoys @ decoys
        # The solver leaves tiny violations.
        poison = np.maximum(reported - honest_share * self.honest, 0.0)
        return np.repeat(poison / poison.sum() / self.cells, self.cells)


def _first_cells(cells: int) -> IntArray:
    """The first cell of each report bucket, and the number of cells."""
    buckets = min(REPORT_BUCKETS, cells)
    return np.round(np.linspace(0, cells, buckets + 1)).astype(np.int64)


def _few_inputs(collection: Collection) -> tuple[FloatArray, FloatArray]:
    """Different inputs, in rising order, with the share of the honest users who have each."""
    inputs, numbers = np.unique(collection.inputs, return_inverse=True)
    shares = _added(numbers, collection.shares, len(inputs))
    if len(inputs) <= MOST_INPUTS:
        return inputs, shares
    low, high = inputs[0], inputs[-1]
    places = np.minimum((inputs - low) * (MOST_INPUTS / (high - low)), MOST_INPUTS - 1)
    buckets = places.astype(np.int64)
    totals = _added(buckets, shares, MOST_INPUTS)
    sums = _added(buckets, shares * inputs, MOST_INPUTS)
    present = totals > 0
    return np.clip(sums[present] / totals[present], low, high), totals[present]


def _added(numbers: IntArray, amounts: FloatArray, size: int) -> FloatArray:
    """The sum of the amounts that have each number, of which there are `size`."""
    return np.asarray(np.bincount(numbers, amounts, minlength=size), dtype=np.float64)
