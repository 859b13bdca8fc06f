"""Ranges over which attackers may spread their reports evenly (docs/method.md, Faint poison).

An end of a range is either a place of the report domain, the same fraction of it in all groups
(3C/4, say), or a value, which is at another fraction of each group's domain (the honest mean O).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from unpoison.filters.joint import constants
from unpoison.filters.joint.counts import JointCounts
from unpoison.types import FloatArray


@dataclass(frozen=True)
class End:
    """One end of a range: a fraction of every group's report domain, or of the range of values.

    >>> End(0.5).moved(0.25), End(0.25, of_values=True).moved(0.5)
    (End(fraction=0.75, of_values=False), End(fraction=0.75, of_values=True))
    """

    fraction: float
    of_values: bool = False

    def moved(self, distance: float) -> End:
        """The same kind of end, farther on."""
        return replace(self, fraction=min(max(self.fraction + distance, 0.0), 1.0))

    def places(self, counts: JointCounts) -> FloatArray:
        """Where it is in each group, as a fraction of the report domain."""
        if not self.of_values:
            return np.full(len(counts.groups), self.fraction)
        places = []
        for buckets in counts.buckets:
            mechanism = buckets.mechanism
            width = mechanism.input_high - mechanism.input_low
            value = np.array(mechanism.input_low + self.fraction * width)
            low, high = mechanism.output_low, mechanism.output_high
            places.append((float(mechanism.place(value)) - low) / (high - low))
        return np.array(places)


@dataclass(frozen=True)
class PoisonRange:
    """A range of the report domain from one end to the other.

    >>> upper_half = PoisonRange(End(0.5), End(1.0))
    >>> [(moved.low.fraction, moved.high.fraction) for moved in upper_half.moved([0.25])]
    [(0.25, 1.0), (0.75, 1.0)]
    """

    low: End
    high: End

    @property
    def at_an_end(self) -> bool:
        """Whether it goes to an end of the report domain."""
        return End(0.0) == self.low or End(1.0) == self.high

    def moved(self, distances: Sequence[float]) -> list[PoisonRange]:
        """The same with one of its ends farther out or in, unless that is the domain's."""
        steps = [sign * distance for distance in distances for sign in (-1, 1)]
        lower = [replace(self, low=self.low.moved(step)) for step in steps]
        higher = [replace(self, high=self.high.moved(step)) for step in steps]
        return (lower if self.low != End(0.0) else []) + (higher if self.high != End(1.0) else [])


def range_shapes(ranges: Sequence[PoisonRange], counts: JointCounts) -> FloatArray:
    """How evenly spread poison falls into the buckets, by range, group and bucket.

    Each line sums to 1, or to 0 where a range is empty.

    >>> from unpoison import Plan, simulate
    >>> plan = Plan.new(epsilon=0.5, low=0, high=1)
    >>> run = simulate(plan, np.full(50_000, 0.3), rng=np.random.default_rng(1))
    >>> counts = JointCounts.of(run.summary, range(4))
    >>> shapes = range_shapes([PoisonRange(End(0.5), End(1.0))], counts)
    >>> shapes.shape, shapes[0, 0, 30:34].tolist()
    ((1, 4, 64), [0.0, 0.0, 0.03125, 0.03125])
    """
    edges = np.array([buckets.output_edges for buckets in counts.buckets])
    edges = (edges - edges[:, :1]) / (edges[:, -1:] - edges[:, :1])
    distinct = {end for chosen in ranges for end in (chosen.low, chosen.high)}
    ends = {end: end.places(counts) for end in distinct}
    low = np.array([ends[chosen.low] for chosen in ranges])[:, :, None]
    high = np.array([ends[chosen.high] for chosen in ranges])[:, :, None]
    overlap = np.minimum(edges[:, 1:], high) - np.maximum(edges[:, :-1], low)
    overlap = overlap.clip(min=0.0)
    totals = overlap.sum(axis=2, keepdims=True)
    shapes: FloatArray = np.divide(overlap, totals, out=np.zeros_like(overlap), where=totals > 0)
    # A range that is empty in one group is none.
    return np.where(np.all(totals > 0, axis=1, keepdims=True), shapes, 0.0)


def coarse_ranges(outputs: int) -> list[PoisonRange]:
    """Ranges of 1, 2, 4, … buckets that begin at every half of their length; some from a value on.

    Any range is nearly one of these, or two. That of all buckets, noise, is not among them.

    >>> [round(8 * chosen.low.fraction) for chosen in coarse_ranges(8)][:18]
    [0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 0, 2, 4]
    """
    ranges, length = [], 1
    while length < outputs:
        firsts = {*range(0, outputs - length + 1, max(length // 2, 1)), outputs - length}
        ranges += [_of_buckets(first, first + length, outputs) for first in sorted(firsts)]
        length *= 2
    return [*ranges, *_from_values(constants.COARSE_VALUES)]


def fine_ranges(outputs: int) -> list[PoisonRange]:
    """Every range of neighbouring buckets but that of all, and ranges from many values on.

    >>> len(fine_ranges(8)) > 35
    True
    """
    ends = [(first, end) for first in range(outputs) for end in range(first + 1, outputs + 1)]
    ranges = [_of_buckets(*end, outputs) for end in ends if end[1] - end[0] < outputs]
    return [*ranges, *_from_values(constants.FINE_VALUES)]


def _of_buckets(first: int, end: int, outputs: int) -> PoisonRange:
    return PoisonRange(End(first / outputs), End(end / outputs))


def _from_values(number: int) -> Iterator[PoisonRange]:
    """From each of so many values to either end of the domain, and half way there."""
    for step in range(1, number):
        value = End(step / number, of_values=True)
        for far in constants.FAR_ENDS:
            yield PoisonRange(value, End(far))
            yield PoisonRange(End(1 - far), value)
