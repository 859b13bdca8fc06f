"""Stage 1 of DAP: who goes into which group, at random, with sizes as the plan says."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from unpoison.mechanisms.exact import exact
from unpoison.mechanisms.randomness import Generator, Words, word_source
from unpoison.plan.budgets import Group
from unpoison.plan.plan import Plan
from unpoison.types import FloatArray, IntArray

ROUNDING = 1e-6
"""Users: a sum of shares that floats put just under a whole number must not lose a user."""


def group_sizes(groups: tuple[Group, ...], users: int) -> IntArray:
    """The sizes of the groups of `users`: shares of them, each rounded by less than 1.

    >>> group_sizes(Plan.new(epsilon=0.25, min_epsilon=1 / 16, low=0, high=1).groups, 10).tolist()
    [3, 3, 4]
    """
    return divide(np.array([group.share for group in groups]), users)


def divide(shares: FloatArray, users: int) -> IntArray:
    """Users divided by shares that add up to 1, each rounded by less than 1.

    >>> divide(np.array([0.5, 0.25, 0.25]), 10).tolist()
    [5, 2, 3]
    """
    ends = np.floor(np.cumsum(shares) * users + ROUNDING)
    ends[-1] = users
    return np.diff(ends, prepend=0).astype(np.int64)


def partition(plan: Plan, tiers: IntArray, rng: np.random.Generator) -> list[IntArray]:
    """Divide all users at once, as a simulation does: the users of each group of the plan.

    Each tier's users are shuffled and cut into groups of the planned sizes; in the baseline every
    user is in both groups.

    >>> plan = Plan.new(epsilon=0.25, min_epsilon=1 / 16, low=0, high=1)
    >>> [len(members) for members in partition(plan, np.zeros(9), np.random.default_rng(1))]
    [3, 3, 3]
    """
    members_by_group: list[IntArray] = []
    for tier in range(len(plan.all_tiers)):
        users = rng.permutation(np.flatnonzero(tiers == tier))
        groups = assigned_groups(plan, tier)
        sizes = group_sizes(tuple(plan.all_groups[group] for group in groups), len(users))
        for group, members in zip(groups, np.split(users, np.cumsum(sizes)[:-1]), strict=True):
            members_by_group += [members] * len(plan.groups_of_user(group))
    return members_by_group


def assigned_groups(plan: Plan, tier: int) -> list[int]:
    """The groups of a tier among which its users are divided; others follow from these.

    >>> baseline = Plan.new(epsilon=1.0, min_epsilon=0.25, low=0, high=1, protocol="baseline")
    >>> assigned_groups(baseline, 0)
    [0]
    """
    return [group for group in plan.tier_groups(tier) if group in plan.groups_that_count_users]


class BlockAssignment:
    """Turns random words into the groups of one tier's users, block by block.

    With equal shares a block is as many users as there are groups, in an order that the words
    give, so that groups are balanced at all times. With unequal shares a block is one user.

    >>> blocks = BlockAssignment(Plan.new(epsilon=0.25, min_epsilon=1 / 16, low=0, high=1), 0)
    >>> blocks.users, blocks.groups(np.array([[30, 10, 20]], dtype=np.uint64)).tolist()
    (3, [1, 2, 0])
    """

    def __init__(self, plan: Plan, tier: int) -> None:
        groups = assigned_groups(plan, tier)
        self.first = groups[0]
        shares = [plan.all_groups[group].share for group in groups]
        self.equal = len(set(shares)) == 1
        self.users = len(shares) if self.equal else 1
        self.bounds = _word_bounds(shares)

    def groups(self, words: Words) -> IntArray:
        """The groups of blocks of users, end to end: one row of words a block."""
        if self.equal:
            # The order of random words is a random permutation; equal words (2^-64) do not matter.
            return self.first + np.argsort(words, axis=1).ravel()
        return self.first + np.searchsorted(self.bounds, words.ravel(), side="right")


class GroupAssigner:
    """Assigns users of one tier as they come, as a table of values does.

    Every user, the first one too, is in a group with the probability of its share, and the answer
    does not depend on how many users are asked for at once.

    >>> plan = Plan.new(epsilon=0.25, min_epsilon=1 / 16, low=0, high=1)
    >>> groups = GroupAssigner(plan, 0, np.random.default_rng(1)).assign(300)
    >>> np.bincount(groups).tolist()
    [100, 100, 100]
    """

    def __init__(self, plan: Plan, tier: int, rng: Generator) -> None:
        self.draw = word_source(rng)
        self.blocks = BlockAssignment(plan, tier)
        # Groups of a block whose first users were assigned: the next users get the rest of them.
        self.unused = np.empty(0, dtype=np.int64)

    def assign(self, users: int) -> IntArray:
        """Groups for the next `users` users."""
        missing = max(0, users - len(self.unused))
        block_size = self.blocks.users
        blocks = math.ceil(missing / block_size)
        words = self.draw(blocks * block_size).reshape(blocks, block_size)
        groups = np.concatenate([self.unused, self.blocks.groups(words)])
        self.unused = groups[users:]
        return groups[:users]


def _word_bounds(shares: list[float]) -> np.ndarray:
    """The uniform 64-bit words at which one group ends and the next begins, from exact shares."""
    total = sum((exact(share) for share in shares), Fraction(0))
    running = Fraction(0)
    bounds = []
    for share in shares[:-1]:
        running += exact(share)
        bounds.append(math.floor(running / total * 2**64))
    return np.array(bounds, dtype=np.uint64)
