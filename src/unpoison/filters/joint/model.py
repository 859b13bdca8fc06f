"""Models of the poison: `nobody`, `even`, `range`, `alike`, `own` (docs/method.md, The model)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from unpoison.filters.joint.poison_ranges import PoisonRange
from unpoison.types import BoolArray, FloatArray, IntArray

NOBODY = "nobody"
EVEN = "even"
RANGE = "range"
ALIKE = "alike"
OWN = "own"


@dataclass(frozen=True, eq=False)
class PoisonModel:
    """Which buckets poison may be in, and how it may differ between groups.

    `nobody`: there is none. `even`: it is spread evenly over the report domain, in all groups.
    `range`: it is spread evenly over a range of reports. `alike`: attackers send the same
    distribution in all groups, relative to the report domain. `own`: every group has its own.
    `support` is by group and bucket.

    Groups without a support are not attacked. The share γ_t of attackers is a number for each group
    that is. These shares scatter about one γ, as random groups make them; with `free_shares` any
    share is as likely as any other. What attackers send is described by weights w ≥ 0.

    >>> model = PoisonModel.own(np.array([[False, True], [False, False]]))
    >>> model.weight_count, model.attacked.tolist(), model.parameter_count
    (1, [True, False], 1)
    """

    kind: str
    support: BoolArray
    free_shares: bool = False
    reports_range: PoisonRange | None = None
    shape: FloatArray | None = None
    """Of `range`: the fractions of the poison by group and bucket."""

    @classmethod
    def nobody(cls, groups: int, outputs: int) -> PoisonModel:
        """No poison at all."""
        return cls(NOBODY, np.zeros((groups, outputs), dtype=bool))

    @classmethod
    def even(cls, groups: int, outputs: int) -> PoisonModel:
        """Noise over the whole domain."""
        return cls(EVEN, np.ones((groups, outputs), dtype=bool))

    @classmethod
    def on_range(
        cls, reports_range: PoisonRange, shape: FloatArray, attacked: BoolArray
    ) -> PoisonModel:
        """Poison spread over a range, of a shape by group and bucket, in the attacked groups."""
        shape = np.where(attacked[:, None], shape, 0.0)
        return cls(RANGE, shape > 0, reports_range=reports_range, shape=shape)

    @classmethod
    def alike(
        cls, buckets: BoolArray, groups: int, attacked: BoolArray | None = None
    ) -> PoisonModel:
        """The same poison in these buckets of every group, or of every attacked one."""
        attacked = np.ones(groups, dtype=bool) if attacked is None else attacked
        return cls(ALIKE, attacked[:, None] & buckets)

    @classmethod
    def own(cls, support: BoolArray) -> PoisonModel:
        """Poison of each group's own."""
        return cls(OWN, support)

    def with_support(self, support: BoolArray) -> PoisonModel:
        """The same kind of model on another support; shared poison takes the buckets of any group.

        >>> alike = PoisonModel.alike(np.array([True, False]), 2)
        >>> alike.with_support(np.array([[False, True], [True, False]])).support.tolist()
        [[True, True], [True, True]]
        """
        if self.kind == OWN:
            return replace(self, support=support)
        return replace(self, support=self.attacked[:, None] & np.any(support, axis=0))

    def with_free_shares(self) -> PoisonModel:
        """The same with a share of attackers for each group that random groups do not tie."""
        return replace(self, free_shares=True)

    @cached_property
    def attacked(self) -> BoolArray:
        """Whether each group may have attackers."""
        attacked: BoolArray = np.any(self.support, axis=1)
        return attacked

    @cached_property
    def attacked_count(self) -> int:
        """Number of groups that may have attackers."""
        return int(self.attacked.sum())

    @property
    def tied_shares(self) -> bool:
        """Whether there are several γ_t, which scatter about one γ."""
        return self.attacked_count > 1 and not self.free_shares

    @property
    def shared(self) -> bool:
        """Whether all attacked groups have the same poison."""
        return self.kind in (EVEN, RANGE, ALIKE)

    @property
    def flat(self) -> bool:
        """Whether poison is spread evenly over its buckets, so that its share says all."""
        return self.kind in (EVEN, RANGE)

    @cached_property
    def shared_buckets(self) -> IntArray:
        """The buckets in which shared poison may be."""
        return np.flatnonzero(self.support.any(axis=0))

    @property
    def first_attacked(self) -> BoolArray:
        """The buckets of poison in the first attacked group, as the one line of a support."""
        return self.support[np.flatnonzero(self.attacked)[:1]]

    @cached_property
    def weight_count(self) -> int:
        """Length of w: numbers that describe what attackers send."""
        if self.kind == ALIKE:
            return len(self.shared_buckets)
        return int(self.support.sum()) if self.kind == OWN else 0

    @property
    def parameter_count(self) -> int:
        """Free numbers beyond those of honest users, for BIC: the weights, and one γ or the γ_t.

        The weights are bound to sum to γ_t in each group with poison of its own, or to 1 if shared.
        """
        if self.kind == NOBODY:
            return 0
        shares = self.attacked_count if self.free_shares else 1
        bound_sums = self.attacked_count if self.kind == OWN else 1
        return max(self.weight_count - bound_sums, 0) + shares

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
        if self.shape is not None:
            poison[:] = attacker_shares[:, None] * self.shape
        elif self.kind == EVEN:
            poison[:] = (self.attacked * attacker_shares)[:, None] / self.support.shape[1]
        elif self.kind == ALIKE:
            poison[:, self.shared_buckets] = (self.attacked * attacker_shares)[:, None] * weights
        elif self.kind == OWN:
            poison[self.support] = weights
        return poison
