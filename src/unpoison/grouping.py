"""Stage 1 of DAP: who goes into which group, at random, with sizes as the plan says."""

from __future__ import annotations

import math

import numpy as np

from unpoison.budgets import Group
from unpoison.plan import Plan
from unpoison.randomness import Generator, word_source
from unpoison.types import IntArray

ROUNDING = 1e-6


def group_sizes(groups: tuple[Group, ...], users: int) -> IntArray:
    """How many of `users` go into each group: shares of them, each rounded by less than 1.

    >>> group_sizes(Plan.new(epsilon=0.25, low=0, high=1).groups, 10).tolist()
    [3, 3, 4]
    """
    ends = _ends(groups, np.array([users]))[0]
    sizes: IntArray = np.diff(ends, prepend=0)
    return sizes


def _ends(groups: tuple[Group, ...], users: IntArray) -> IntArray:
    """Running totals of the group sizes, for each number of users."""
    shares = np.cumsum([group.share for group in groups])
    ends: IntArray = np.floor(shares * users[:, None] + ROUNDING).astype(np.int64)
    ends[:, -1] = users
    return ends


class GroupAssigner:
    """Assigns users of one tier as they come, in shuffled blocks.

    A block is as small as gives every group a place: with equal shares, as many users as groups. So
    groups are balanced at all times, and the order within each block is drawn anew. The answer for
    a user does not depend on how many users are asked for at once.

    >>> plan = Plan.new(epsilon=0.25, low=0, high=1)
    >>> groups = GroupAssigner(plan, 0, np.random.default_rng(1)).assign(300)
    >>> np.bincount(groups).tolist()
    [100, 100, 100]
    """

    def __init__(self, plan: Plan, tier: int, rng: Generator) -> None:
        self.draw = word_source(rng)
        self.groups = plan.all_tiers[tier].groups
        self.first = plan.tier_groups(tier).start
        smallest = min(group.share for group in self.groups)
        self.block = math.ceil(1 / smallest - ROUNDING)
        self.given = 0
        self.waiting = np.empty(0, dtype=np.int64)

    def assign(self, users: int) -> IntArray:
        """Groups for the next `users` users."""
        missing = max(0, users - len(self.waiting))
        blocks = self._blocks(math.ceil(missing / self.block))
        groups = np.concatenate([self.waiting, blocks])
        self.waiting = groups[users:]
        return groups[:users]

    def _blocks(self, count: int) -> IntArray:
        """Places from the plan's running totals, so that rounding never adds up; then shuffled."""
        users = self.given + np.arange(count + 1) * self.block
        self.given = int(users[-1])
        places = np.diff(np.diff(_ends(self.groups, users), prepend=0, axis=1), axis=0)
        numbers = np.tile(np.arange(len(self.groups)) + self.first, count)
        ordered = np.repeat(numbers, places.ravel()).reshape(count, self.block)
        shuffle = np.argsort(self.draw(count * self.block).reshape(count, self.block), axis=1)
        return np.take_along_axis(ordered, shuffle, axis=1).ravel()
