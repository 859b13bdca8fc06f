"""Input values of a distribution: even buckets over the range and single values, or a lattice."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from unpoison.filters.joint import JointCounts
from unpoison.filters.shape import constants
from unpoison.types import FloatArray

Band = tuple[FloatArray, FloatArray]


class InputGrid:
    """Even buckets of the mechanism's input range, and the single values of some counts.

    Single values (`atoms`) are the two ends of the range and those that the joint filter added. If
    the plan has a step, there is nothing but the values that users can have (`lattice`).

    >>> from unpoison import Plan, simulate
    >>> plan = Plan.new(epsilon=1.0, low=0, high=1)
    >>> run = simulate(plan, np.full(500, 0.3), rng=np.random.default_rng(1))
    >>> grid = InputGrid(JointCounts.of(run.summary, range(4)))
    >>> grid.transitions.shape[2], len(grid.atoms), grid.edges[[0, -1]].tolist()
    (64, 2, [-1.0, 1.0])
    >>> plan = Plan.new(epsilon=1.0, low=1, high=5, step=1)
    >>> run = simulate(plan, np.full(500, 4), rng=np.random.default_rng(1))
    >>> grid = InputGrid(JointCounts.of(run.summary, range(4)))
    >>> grid.middles.tolist(), grid.edges.tolist()
    ([-1.0, -0.5, 0.0, 0.5, 1.0], [-1.0, -0.75, -0.25, 0.25, 0.75, 1.0])
    """

    def __init__(self, counts: JointCounts) -> None:
        self._counts = counts
        self.lattice = counts.bucket_inputs == 0
        mechanism = counts.buckets[0].mechanism
        low, high = mechanism.input_low, mechanism.input_high
        self.edges = np.linspace(low, high, constants.INPUT_BUCKETS + 1)
        self.middles = (self.edges[1:] + self.edges[:-1]) / 2
        if self.lattice:
            between = (counts.values[1:] + counts.values[:-1]) / 2
            self.edges = np.concatenate([[low], between, [high]])
            self.middles = counts.values

    @property
    def atoms(self) -> FloatArray:
        """The single values beside the buckets; a lattice has none."""
        return self._counts.values[self._first_atom :]

    @property
    def atom_transitions(self) -> FloatArray:
        """Transitions from the single values."""
        return self._counts.transitions[:, :, self._first_atom :]

    @property
    def _first_atom(self) -> int:
        return self._counts.inputs if self.lattice else self._counts.bucket_inputs

    @property
    def atom_edges(self) -> FloatArray:
        """The narrow buckets that stand for the single values, one a line."""
        return self._narrow_buckets(self.atoms)

    def _narrow_buckets(self, values: FloatArray) -> FloatArray:
        low, high = self.edges[[0, -1]]
        half_width = (high - low) * constants.ATOM_WIDTH / 2
        middles = np.clip(values, low + half_width, high - half_width)
        left, right = np.maximum(middles - half_width, low), np.minimum(middles + half_width, high)
        return np.stack([left, right], axis=1)

    @cached_property
    def transitions(self) -> FloatArray:
        """Transitions from the buckets, or from the values of the lattice."""
        if self.lattice:
            return self._counts.transitions
        return np.stack(
            [
                of_group.mechanism.transition(self.edges, of_group.output_edges).dense()
                for of_group in self._counts.buckets
            ]
        )

    @property
    def histogram_edges(self) -> FloatArray:
        """Edges of the histogram: narrow buckets for the values of a lattice, with gaps between."""
        return self._narrow_buckets(self.middles).ravel() if self.lattice else self.edges

    def histogram(self, shares: FloatArray) -> FloatArray:
        """The share in each bucket of the histogram; nobody is between the values of a lattice."""
        if not self.lattice:
            return shares
        with_gaps = np.zeros(2 * len(shares) - 1)
        with_gaps[::2] = shares
        return with_gaps

    def histogram_band(self, low: FloatArray, high: FloatArray) -> Band:
        """The band of the CDF at the edges of the histogram, from that at `edges`.

        The CDF of a lattice is constant between its values. Users of a bucket are taken to be
        spread evenly, but may share a value at its edge: so the band at an edge is from the low end
        at the edge before to the high end at the edge after.
        """
        if self.lattice:
            return np.repeat(low, 2)[1:-1], np.repeat(high, 2)[1:-1]
        return np.append(low[0], low[:-1]), np.append(high[1:], high[-1])
