"""Uneven attack: more attackers in some groups than in others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unpoison.attacks.base import Attack, attacks
from unpoison.attacks.by_groups import OUTER_QUARTER, PlacedAttack
from unpoison.attacks.placement import Placement
from unpoison.errors import InvalidParameter
from unpoison.plan import Plan


@attacks.register("uneven")
@dataclass(frozen=True)
class Uneven(PlacedAttack):
    """`attack` in all groups, with shares of attackers that are to each other as the `weights`.

    There is a weight for each group. Groups are as large as the plan says, so that their sizes do
    not give the attackers away.

    >>> plan = Plan.new(epsilon=1.0, min_epsilon=0.5, low=0, high=1)
    >>> honest, attackers = Uneven((1, 3)).placement(plan).divide(plan, users=100, attackers=20)
    >>> honest.tolist(), attackers.tolist()
    ([45, 35], [5, 15])
    """

    weights: tuple[float, ...] = (2.0, 1.0)
    """One a group; the default is for two groups, with twice the share in the first."""
    attack: Attack = OUTER_QUARTER

    def __post_init__(self) -> None:
        super().__post_init__()
        finite = np.isfinite(self.weights).all() and min(self.weights, default=-1) >= 0
        if not finite or not any(self.weights):
            rule = "must be numbers from 0, not all of them 0"
            raise InvalidParameter("weights", rule, self.weights)

    def placement(self, plan: Plan) -> Placement:
        """Divide attackers by the groups' weights and sizes."""
        groups = len(plan.groups)
        if groups == 1:
            return Placement((1.0,), on_top=False)
        if len(self.weights) != groups:
            rule = f"must be one for each of the {groups} groups of this plan"
            raise InvalidParameter("weights", rule, self.weights)
        return Placement(tuple(map(float, self.weights)), on_top=False)
