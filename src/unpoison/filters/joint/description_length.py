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

    >>> broad, scattered = np.arange(8) < 4, np.arange(8) % 2 == 0
    >>> sizes = np.full((1, 8), 2.0)
    >>> prices = [support_price(buckets[None], sizes, True) for buckets in (broad, scattered)]
    >>> prices[0] < prices[1]
    True
    """
    return weight_price(deviations[support]) + place_price(support, ordered)


def weight_price(deviations: FloatArray) -> float:
    """The price of weights of these sizes, in standard deviations.

    >>> weight_price(np.zeros(2))
    2.0
    """
    return float((1 + np.log1p(deviations**2)).sum())


def place_price(support: BoolArray, ordered: bool) -> float:
    """The price of where poison is, by group and bucket.

    Where buckets are in an order, as numbers are, neighbours make a run: its first bucket costs
    twice the log of the number of places, and its length as much for the buckets of a group. One
    run in two is expected at an end of the domain, where poison moves the mean most: there are but
    two such places in a group. Categories have no neighbours: each is a run.

    >>> at_an_end, inside = np.arange(8) < 4, (np.arange(8) > 2) & (np.arange(8) < 7)
    >>> place_price(at_an_end[None], True) < place_price(inside[None], True)
    True
    """
    if not ordered:
        return 2 * math.log(support.size) * float(support.sum())
    return float(place_prices(support[None])[0])


def place_prices(supports: BoolArray) -> FloatArray:
    """The price of each of many supports, by support, group and bucket in order.

    >>> at_an_end, inside = np.arange(8) < 4, (np.arange(8) > 2) & (np.arange(8) < 7)
    >>> place_prices(np.array([[at_an_end], [inside]])).round(1).tolist()
    [6.9, 9.7]
    """
    _, groups, outputs = supports.shape
    padded = np.pad(supports, ((0, 0), (0, 0), (1, 1)))
    first = supports & ~padded[:, :, :-2]
    runs = first.sum(axis=(1, 2))
    longer = (first & padded[:, :, 2:]).sum(axis=(1, 2))
    # A run of all buckets is at both ends, and is one run.
    ends = supports[:, :, 0] | supports[:, :, -1]
    both = supports[:, :, 0] & supports[:, :, -1] & ~supports.all(axis=2)
    at_ends = ends.sum(axis=1) + both.sum(axis=1)
    kinds_of_place = 2 * math.log(2) * runs
    places = 2 * math.log(2 * groups) * at_ends
    places = places + 2 * math.log(groups * outputs) * (runs - at_ends)
    prices: FloatArray = kinds_of_place + places + 2 * math.log(outputs) * longer
    return prices


def set_price(attacked: BoolArray) -> float:
    """The price of which groups are attacked: nothing for all, or none.

    Of other sets, each is as likely as another: twice the log of their number.

    >>> set_price(np.array([True, True])), round(set_price(np.array([True, False])), 2)
    (0.0, 1.39)
    """
    if attacked.all() or not attacked.any():
        return 0.0
    return 2 * math.log(2 ** len(attacked) - 2)
