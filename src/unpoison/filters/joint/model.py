"""Models of the poison: `nobody`, `even`, `alike` and `own` (docs/method.md, The model)."""

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
class PoisonModel:
    """Which buckets poison may be in, and how it may differ between groups.

    `nobody`: there is none. `even`: it is spread evenly over the report domain, in all groups.
    `alike`: attackers send the same distribution in all groups, relative to the report domain.
    `own`: every group has its own. `support` is by group and bucket.

    The share γ_t of attackers is a number for each group that has a support. These shares scatter
    about one γ, as random groups make them. What attackers send is described by weights w ≥ 0.

    >>> model = PoisonModel.own(np.array([[False, True], [False, False]]))
    >>> model.weight_count, model.attacked.tolist(), model.parameter_count
    (1, [True, False], 1)
    """

    kind: str
    support: BoolArray

    @classmethod
    def nobody(cls, groups: int, outputs: int) -> PoisonModel:
        """No poison at all."""
        return cls(NOBODY, np.zeros((groups, outputs), dtype=bool))

    @classmethod
    def even(cls, groups: int, outputs: int) -> PoisonModel:
        """Noise over the whole domain."""
        return cls(EVEN, np.ones((groups, outputs), dtype=bool))

    @classmethod
    def alike(cls, buckets: BoolArray, groups: int) -> PoisonModel:
        """The same poison in these buckets of every group."""
        return cls(ALIKE, np.broadcast_to(buckets, (groups, len(buckets))).copy())

    @classmethod
    def own(cls, support: BoolArray) -> PoisonModel:
        """Poison of each group's own."""
        return cls(OWN, support)

    @cached_property
    def attacked(self) -> BoolArray:
        """Whether each group may have attackers."""
        attacked: BoolArray = np.any(self.support, axis=1)
        return attacked

    @property
    def shared(self) -> bool:
        """Whether all groups have the same poison."""
        return self.kind in (EVEN, ALIKE)

    @cached_property
    def shared_buckets(self) -> IntArray:
        """The buckets in which shared poison may be."""
        return np.flatnonzero(self.support.any(axis=0))

    @cached_property
    def weight_count(self) -> int:
        """Length of w: numbers that describe what attackers send."""
        if self.kind == ALIKE:
            return len(self.shared_buckets)
        return int(self.support.sum()) if self.kind == OWN else 0

    @property
    def parameter_count(self) -> int:
        """Free numbers beyond those of honest users, for BIC: the weights and one γ.

        The weights are bound to sum to γ_t in each group with poison of its own, or to 1 if shared.
        """
        if self.kind == NOBODY:
            return 0
        if self.kind == OWN:
            return self.weight_count - int(self.attacked.sum()) + 1
        return max(self.weight_count, 1)

    def initial_weights(self, share: float) -> FloatArray:
        """Weights to start from: spread evenly over the support."""
        if self.kind == ALIKE:
            return np.full(self.weight_count, 1 / self.weight_count)
        if self.kind == OWN:
            sizes = self.support.sum(axis=1)
            return np.repeat(share / np.maximum(sizes, 1), sizes)
        return np.empty(0)

    def poison(self, weights: FloatArray, attacker_shares: FloatArray) -> FloatArray:
        """y_t: the poison in every bucket, as a fraction of the group's reports.

        >>> PoisonModel.even(1, 4).poison(np.empty(0), np.array([0.5])).tolist()
        [[0.125, 0.125, 0.125, 0.125]]
        """
        poison = np.zeros(self.support.shape)
        if self.kind == EVEN:
            poison[:] = attacker_shares[:, None] / self.support.shape[1]
        elif self.kind == ALIKE:
            poison[:, self.shared_buckets] = attacker_shares[:, None] * weights
        elif self.kind == OWN:
            poison[self.support] = weights
        return poison
