"""What a support of the poison costs: twice the nats that describe its places and its weights.

docs/method.md, Which model. A weight costs 1 + ln(1 + z²), with z its size in standard deviations:
1 is what noise alone gains at most on average by a number that is free to be positive, and ½ ln z²
nats tell the number to its own accuracy. So strong poison costs about as much as by BIC, while
poison that is spread over many buckets, faint in each, costs a little for each of them.
"""

from __future__ import annotations

import math

import numpy as np

from unpoison.types import BoolArray, FloatArray


def support_price(support: BoolArray, deviations: FloatArray, ordered: bool) -> float:
    """The price of poison on a support, by group and bucket, of a size in standard deviations.

    Where buckets are in an order, as numbers are, neighbours make a run: its first bucket costs
    twice the log of the number of places, and its length as much for the buckets of a group.
    Categories have no neighbours: each is a run.

    >>> broad, scattered = np.arange(8) < 4, np.arange(8) % 2 == 0
    >>> sizes = np.full((1, 8), 2.0)
    >>> prices = [support_price(buckets[None], sizes, True) for buckets in (broad, scattered)]
    >>> prices[0] < prices[1]
    True
    """
    weights = float((1 + np.log1p(deviations[support] ** 2)).sum())
    place, length = 2 * math.log(support.size), 2 * math.log(support.shape[1])
    if not ordered:
        return weights + place * float(support.sum())
    padded = np.pad(support, ((0, 0), (1, 1)))
    first = support & ~padded[:, :-2]
    longer = first & padded[:, 2:]
    return weights + place * float(first.sum()) + length * float(longer.sum())


def set_price(attacked: BoolArray) -> float:
    """The price of which groups are attacked: nothing for all, or none.

    Of other sets, each is as likely as another: twice the log of their number.

    >>> set_price(np.array([True, True])), round(set_price(np.array([True, False])), 2)
    (0.0, 1.39)
    """
    if attacked.all() or not attacked.any():
        return 0.0
    return 2 * math.log(2 ** len(attacked) - 2)
