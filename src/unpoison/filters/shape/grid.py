"""Input values of a distribution: even buckets over the range, and single values."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from unpoison.filters.joint import JointCounts
from unpoison.types import FloatArray

INPUT_BUCKETS = 64
"""Buckets of a distribution, and so its resolution: with twice as many, it takes three times as
long, and intervals become narrower only where ε and the number of users are large."""

ATOM_WIDTH = 1e-6
"""Width of the bucket that stands for a single value, as a part of the range: far below what any
interval resolves."""


class InputGrid:
    """Even buckets of the mechanism's input range, and the single values of some counts.

    Single values (`atoms`) are the two ends of the range and those that the joint filter added.

    >>> from unpoison import Plan, simulate
    >>> run = simulate(Plan.new(epsilon=1.0, low=0, high=1), np.full(500, 0.3))
    >>> grid = InputGrid(JointCounts.of(run.summary, range(5)))
    >>> grid.transitions.shape[2], len(grid.atoms), grid.edges[[0, -1]].tolist()
    (64, 2, [-1.0, 1.0])
    """

    def __init__(self, counts: JointCounts) -> None:
        self._counts = counts
        mechanism = counts.buckets[0].mechanism
        self.edges = np.linspace(mechanism.input_low, mechanism.input_high, INPUT_BUCKETS + 1)
        self.middles = (self.edges[1:] + self.edges[:-1]) / 2

    @property
    def atoms(self) -> FloatArray:
        """The single values."""
        return self._counts.values[self._counts.buckets[0].inputs :]

    @property
    def atom_transitions(self) -> FloatArray:
        """Transitions from the single values."""
        return self._counts.transitions[:, :, self._counts.buckets[0].inputs :]

    @property
    def atom_edges(self) -> FloatArray:
        """The narrow buckets that stand for the single values, one a line."""
        low, high = self.edges[[0, -1]]
        half_width = (high - low) * ATOM_WIDTH / 2
        middles = np.clip(self.atoms, low + half_width, high - half_width)
        left, right = np.maximum(middles - half_width, low), np.minimum(middles + half_width, high)
        return np.stack([left, right], axis=1)

    @cached_property
    def transitions(self) -> FloatArray:
        """Transitions from the buckets."""
        return np.stack(
            [
                of_group.mechanism.transition(self.edges, of_group.output_edges).dense()
                for of_group in self._counts.buckets
            ]
        )
