"""Which group a device gets: random, balanced, and known to nobody before.

The groups of each block of devices are put into an order that a secret of the campaign gives. So
the place at which a device comes says its group, and no order has to be kept.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache

import numpy as np

from unpoison.collector.campaigns.campaigns import parsed_plan
from unpoison.mechanisms.randomness import Words
from unpoison.plan.assignment import BlockAssignment


@lru_cache(maxsize=256)
def seating(plan: str, tier: int) -> BlockAssignment:
    """The seating of a plan's tier, by the plan's JSON.

    >>> from unpoison import Plan
    >>> seating(Plan.new(epsilon=0.25, low=0, high=1).to_json(), 0).users
    3
    """
    return BlockAssignment(parsed_plan(plan), tier)


def group_of(plan: str, tier: int, place: int, secret: bytes) -> int:
    """The group of the device that came as number `place` (from 0) to a tier.

    >>> from unpoison import Plan
    >>> plan = Plan.new(epsilon=0.25, low=0, high=1).to_json()
    >>> groups = [group_of(plan, 0, place, b"secret") for place in range(6)]
    >>> sorted(groups[:3]), sorted(groups[3:])
    ([0, 1, 2], [0, 1, 2])
    """
    seats = seating(plan, tier)
    block, within = divmod(place, seats.users)
    words = keyed_words(secret, f"{tier}:{block}", seats.users)
    return int(seats.groups(words.reshape(1, -1))[within])


def keyed_words(secret: bytes, label: str, count: int) -> Words:
    """64-bit words that look random to whoever lacks the secret (SHAKE256, keyed by its prefix).

    >>> keyed_words(b"secret", "0:0", 2).tolist() == keyed_words(b"secret", "0:1", 2).tolist()
    False
    """
    key = hashlib.sha256(secret).digest()
    digest = hashlib.shake_256(key + label.encode()).digest(8 * count)
    return np.frombuffer(digest, dtype="<u8").astype(np.uint64)
