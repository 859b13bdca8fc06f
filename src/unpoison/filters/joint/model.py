"""What attackers may send, as a model: nothing, anything evenly, the same everywhere, or freely."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from unpoison.types import BoolArray, FloatArray, IntArray

NOBODY = "nobody"
EVEN = "even"
ALIKE = "alike"
OWN = "own"


@dataclass(frozen=True, eq=False)
class Poison:
    """Where poison may be (`places`, by group and bucket), and how it may differ between groups.

    `nobody`: there is none. `even`: it is spread evenly over its places, alike in all groups.
    `alike`: attackers send the same in all groups, whatever that is, as a place in the report
    domain. `own`: every group has its own.

    The share of attackers is one number for each group that has places. These shares scatter as
    random groups make them.

    >>> model = Poison.own(np.array([[False, True], [False, False]]))
    >>> model.variables, model.attacked.tolist(), model.parameters
    (1, [True, False], 1)
    """

    kind: str
    places: BoolArray

    @classmethod
    def nobody(cls, groups: int, outputs: int) -> Poison:
        """No poison at all."""
        return cls(NOBODY, np.zeros((groups, outputs), dtype=bool))

    @classmethod
    def even(cls, groups: int, outputs: int) -> Poison:
        """Noise over the whole domain."""
        return cls(EVEN, np.ones((groups, outputs), dtype=bool))

    @classmethod
    def alike(cls, buckets: BoolArray, groups: int) -> Poison:
        """The same poison in these buckets of every group."""
        return cls(ALIKE, np.broadcast_to(buckets, (groups, len(buckets))).copy())

    @classmethod
    def own(cls, places: BoolArray) -> Poison:
        """Poison of each group's own."""
        return cls(OWN, places)

    @cached_property
    def attacked(self) -> BoolArray:
        """The groups that have attackers."""
        found: BoolArray = np.any(self.places, axis=1)
        return found

    @property
    def shared(self) -> bool:
        """Whether all groups have the same poison."""
        return self.kind in (EVEN, ALIKE)

    @cached_property
    def columns(self) -> IntArray:
        """The buckets in which shared poison may be."""
        return np.flatnonzero(self.places.any(axis=0))

    @cached_property
    def variables(self) -> int:
        """How many numbers describe what attackers send."""
        if self.kind == ALIKE:
            return len(self.columns)
        return int(self.places.sum()) if self.kind == OWN else 0

    @property
    def parameters(self) -> int:
        """What the model has beyond honest users: these numbers, and one share of attackers.

        Given the share, the numbers are bound to sum to it, in each group with poison of its own.
        """
        if self.kind == NOBODY:
            return 0
        if self.kind == OWN:
            return self.variables - int(self.attacked.sum()) + 1
        return max(self.variables, 1)

    def start(self, share: float) -> FloatArray:
        """The numbers to begin with: spread evenly."""
        if self.kind == ALIKE:
            return np.full(self.variables, 1 / self.variables)
        if self.kind == OWN:
            sizes = self.places.sum(axis=1)
            return np.repeat(share / np.maximum(sizes, 1), sizes)
        return np.empty(0)

    def spread(self, numbers: FloatArray, shares: FloatArray) -> FloatArray:
        """The poison in every bucket, as a fraction of the group's reports.

        >>> Poison.even(1, 4).spread(np.empty(0), np.array([0.5])).tolist()
        [[0.125, 0.125, 0.125, 0.125]]
        """
        poison = np.zeros(self.places.shape)
        if self.kind == EVEN:
            poison[:] = shares[:, None] / self.places.shape[1]
        elif self.kind == ALIKE:
            poison[:, self.columns] = shares[:, None] * numbers
        elif self.kind == OWN:
            poison[self.places] = numbers
        return poison
