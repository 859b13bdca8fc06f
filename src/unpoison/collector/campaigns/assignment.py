"""Assignment of devices to groups: random, balanced, and not predictable by devices.

The groups of each block of devices are put into an order that a secret of the campaign determines.
A device's group then follows from the number of devices that came before it, and no order has to
be stored. The order is secret because whoever knew it could enrol attackers at the moments that
put them all into one group.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache

import numpy as np

from unpoison.collector.campaigns.campaign import CACHED_PLANS, parsed_plan
from unpoison.mechanisms.randomness import Words
from unpoison.plan.assignment import BlockAssignment, assigned_groups


@lru_cache(maxsize=CACHED_PLANS)
def block_assignment(plan: str, tier: int) -> BlockAssignment:
    """The block assignment of a plan's tier, by the plan's JSON.

    >>> from unpoison import Plan
    >>> plan = Plan.new(epsilon=0.25, min_epsilon=1 / 16, low=0, high=1)
    >>> block_assignment(plan.to_json(), 0).users
    3
    """
    return BlockAssignment(parsed_plan(plan), tier)


@lru_cache(maxsize=CACHED_PLANS)
def groups_to_assign(plan: str, tier: int) -> tuple[int, ...]:
    """The groups that devices of a tier are divided among: one of the two in the baseline.

    >>> from unpoison import Plan
    >>> groups_to_assign(Plan.new(epsilon=0.25, min_epsilon=1 / 16, low=0, high=1).to_json(), 0)
    (0, 1, 2)
    """
    return tuple(assigned_groups(parsed_plan(plan), tier))


def group_of(plan: str, tier: int, arrival: int, secret: bytes) -> int:
    """The group of the device that enrolled in a tier as number `arrival`, counted from 0.

    >>> from unpoison import Plan
    >>> plan = Plan.new(epsilon=0.25, min_epsilon=1 / 16, low=0, high=1).to_json()
    >>> groups = [group_of(plan, 0, arrival, b"secret") for arrival in range(6)]
    >>> sorted(groups[:3]), sorted(groups[3:])
    ([0, 1, 2], [0, 1, 2])
    """
    blocks = block_assignment(plan, tier)
    block, position = divmod(arrival, blocks.users)
    words = keyed_words(secret, f"{tier}:{block}", blocks.users)
    return int(blocks.groups(words.reshape(1, -1))[position])


def keyed_words(secret: bytes, label: str, count: int) -> Words:
    """64-bit words that look random to whoever lacks the secret: SHAKE256, keyed by a prefix.

    >>> keyed_words(b"secret", "0:0", 2).tolist() == keyed_words(b"secret", "0:1", 2).tolist()
    False
    """
    # A prefix of fixed length is a safe key for SHAKE256: a sponge cannot be extended.
    key = hashlib.sha256(secret).digest()
    digest = hashlib.shake_256(key + label.encode()).digest(8 * count)
    return np.frombuffer(digest, dtype="<u8").astype(np.uint64)
