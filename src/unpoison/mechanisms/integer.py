"""The integer window family: for real devices, ε holds bit for bit.

A report is a cell number drawn with integer arithmetic only. A cell inside the window has weight
`inside_weight` = ⌊2^24·e^ε⌋ (certified), outside 2^24, so no ratio of probabilities exceeds e^ε and
no floating-point grid leaks the input. The input is snapped to an offset of the window by unbiased
randomised rounding, which makes the report's distribution exactly that of the continuous window
mechanism binned to unit cells: decoding and transition are inherited, not approximated.
"""

from __future__ import annotations

import numpy as np

from unpoison.errors import InvalidParameter
from unpoison.mechanisms.base import mechanisms
from unpoison.mechanisms.exact import exact, floor_times_exp
from unpoison.mechanisms.k_rr import CategoricalMechanism
from unpoison.mechanisms.piecewise import PiecewiseMechanism
from unpoison.mechanisms.randomness import Generator, Words, WordSource, word_source
from unpoison.mechanisms.square_wave import SquareWaveMechanism
from unpoison.mechanisms.window import WindowMechanism
from unpoison.types import FloatArray, IntArray

OUTSIDE_WEIGHT = 2**24
"""Weight of a cell outside the window: e^ε is met to 6·10^-8, and 2^20 cells stay under 2^53."""
FRACTION_BITS = 32
"""Bits after the point of a window's offset, as many as the half word that rounds it."""


def _below(total: int, candidates: Words, draw: WordSource) -> tuple[Words, Words]:
    """Accepted pairs (rounding word, number below `total`) from a stream of candidate words.

    Each value takes one word to round with, then words until one is under the largest multiple of
    `total`. A rejected word is taken out of the stream, so that later values move up: the result
    depends on the stream alone and not on how values were split into calls.
    """
    limit = 2**64 // total * total
    while limit < 2**64:
        refused = np.flatnonzero(candidates[1::2] >= np.uint64(limit))
        if not len(refused):
            break
        place = 2 * int(refused[0]) + 1
        candidates = np.concatenate([candidates[:place], candidates[place + 1 :], draw(1)])
    return candidates[::2], candidates[1::2] % np.uint64(total)


class IntegerWindow:
    """The draw that all three mechanisms of the family share.

    >>> import math
    >>> window = IntegerWindow(epsilon=1.0, cells=8, window=3)
    >>> window.offsets, window.inside_weight / window.outside_weight <= math.e
    (6, True)
    """

    def __init__(self, epsilon: float, cells: int, window: int) -> None:
        self.cells, self.window = cells, window
        self.offsets = cells - window + 1
        self.outside_weight = OUTSIDE_WEIGHT
        self.inside_weight = floor_times_exp(OUTSIDE_WEIGHT, exact(epsilon))
        # The same total for every input: only then is the ratio of probabilities that of weights.
        self.total = window * self.inside_weight + (cells - window) * self.outside_weight
        if self.inside_weight == self.outside_weight:
            raise InvalidParameter("epsilon", "must be at least 6e-8 for integer weights", epsilon)
        # Browsers and NumPy both carry the total through float64 somewhere.
        if self.total >= 2**53:
            raise InvalidParameter("epsilon", "must leave total weight under 2^53", epsilon)

    def cells_from_words(self, fixed: IntArray, words: Words, draw: WordSource) -> IntArray:
        """Report cells for offsets in fixed point (32 fractional bits), two words a value.

        The high half of the first word rounds; the second picks a cell below the total weight.
        """
        rounding, weights = _below(self.total, words, draw)
        fraction = fixed & (2**FRACTION_BITS - 1)
        up = (rounding >> np.uint64(32)).astype(np.int64) < fraction
        return self._pick((fixed >> FRACTION_BITS) + up, weights.astype(np.int64))

    def _pick(self, offset: IntArray, weight: IntArray) -> IntArray:
        """The cell that `weight` falls in: the window's cells first, then the others in order."""
        inside = weight < self.window * self.inside_weight
        beyond = (weight - self.window * self.inside_weight) // self.outside_weight
        beyond += np.where(beyond >= offset, self.window, 0)
        return np.where(inside, offset + weight // self.inside_weight, beyond)

    def draw(self, fixed: IntArray, rng: Generator) -> IntArray:
        """One report cell for each offset."""
        draw = word_source(rng)
        return self.cells_from_words(fixed, draw(2 * len(fixed)), draw)


class IntegerWindowMechanism(WindowMechanism):
    """A numerical window mechanism on integer cells; `twin` is the continuous one it follows.

    >>> device = IntegerPiecewise(epsilon=1.0, cells=64)
    >>> device.output_high, device.twin
    (64.0, PiecewiseMechanism(epsilon=1, cells=16384))
    >>> device.fixed_offsets(np.array([-1.0, 1.0])).tolist() == [0, (64 - device.width) * 2**32]
    True
    """

    discrete = True
    for_devices = True
    # Finer than √N buckets of 1.6·10^7 reports. Fewer than of a continuous mechanism, for real
    # collections are smaller than simulated ones, and a database holds their counts.
    default_cells = 2**12
    twin: WindowMechanism

    def _set_cells(self, twin: WindowMechanism) -> None:
        self.twin = twin
        self.input_low, self.input_high = twin.input_low, twin.input_high
        self.unbiased, self.outer_range = twin.unbiased, twin.outer_range
        span = twin.output_high - twin.output_low
        # A window of all cells would be no signal, one of none no mechanism.
        window = min(max(1, round(self.cells * twin.width / span)), self.cells - 1)
        self.integer = IntegerWindow(self.epsilon, self.cells, window)
        self._set_window(0.0, float(self.cells), float(window))
        self.outside = self.integer.outside_weight / self.integer.total
        self.inside = self.integer.inside_weight / self.integer.total
        self._set_bias()

    def _set_bias(self) -> None:
        """E[cell | v] = offset + slope·v for the integer weights; cells are counted from 0."""
        integer = self.integer
        excess = (integer.inside_weight - integer.outside_weight) / integer.total * integer.window
        self.slope = excess * (integer.offsets - 1) / (self.input_high - self.input_low)
        everywhere = self.outside * self.cells * (self.cells - 1) / 2
        at_lowest = everywhere + excess * (integer.window - 1) / 2
        self.offset = at_lowest - self.slope * self.input_low

    def fixed_offsets(self, values: FloatArray) -> IntArray:
        """The window's offset for each value, with 32 fractional bits."""
        share = (values - self.input_low) / (self.input_high - self.input_low)
        scale = (self.integer.offsets - 1) << FRACTION_BITS
        return np.rint(share * scale).astype(np.int64)

    def _perturb_block(self, values: FloatArray, rng: Generator, out: FloatArray) -> None:
        """Cell numbers, drawn in integer arithmetic."""
        out[:] = self.integer.draw(self.fixed_offsets(values), rng)

    def variance(self, values: FloatArray) -> FloatArray:
        """Exact for cells: the mixture over the two offsets that the input is rounded to."""
        values = np.asarray(values, dtype=np.float64)
        position = self.window_start(values)
        lower = np.minimum(np.floor(position), self.integer.offsets - 2.0)
        share = position - lower
        second = (1 - share) * self._second_moment(lower) + share * self._second_moment(lower + 1)
        mean = self.offset + self.slope * values
        result: FloatArray = (second - mean**2) / self.slope**2
        return result

    def _second_moment(self, offset: FloatArray) -> FloatArray:
        """E[cell² | offset], by the closed form of Σ i²."""
        window, cells = self.integer.window, self.cells
        everywhere = (cells - 1) * cells * (2 * cells - 1) / 6
        steps = window * (window - 1)
        squares = window * offset**2 + offset * steps + steps * (2 * window - 1) / 6
        return self.outside * everywhere + (self.inside - self.outside) * squares

    @property
    def worst_variance(self) -> float:
        """The largest over all inputs: between two offsets the variance is V + f·ΔV + δ²·f(1 − f).

        V is that of the lower offset, ΔV its growth to the next, δ their distance in the input and
        f the input's place between them, so the top of each parabola is known.
        """
        at_offsets = np.linspace(self.input_low, self.input_high, self.integer.offsets)
        spread = (at_offsets[1] - at_offsets[0]) ** 2
        variance = self.variance(at_offsets)
        growth = np.diff(variance)
        place = np.clip(0.5 + growth / (2 * spread), 0.0, 1.0)
        return float((variance[:-1] + place * growth + spread * place * (1 - place)).max())

    def landmarks(self) -> dict[str, float]:
        """The landmarks of the continuous twin: poison is named in the paper's units."""
        return self.twin.landmarks()

    def place(self, position: FloatArray) -> FloatArray:
        """The twin's report domain, stretched over the cells."""
        span = self.twin.output_high - self.twin.output_low
        return (position - self.twin.output_low) / span * self.cells

    def position(self, place: FloatArray) -> FloatArray:
        """Cells, stretched over the twin's report domain."""
        span = self.twin.output_high - self.twin.output_low
        return self.twin.output_low + place / self.cells * span

    def input_bucket_count(self, output_buckets: int) -> int:
        """The paper's d of the continuous twin."""
        return self.twin.input_bucket_count(output_buckets)


@mechanisms.register("piecewise-integer", order=4)
class IntegerPiecewise(IntegerWindowMechanism):
    """The Piecewise Mechanism for devices: reports are cells 0 … cells − 1.

    >>> import numpy as np
    >>> from unpoison.mechanisms.randomness import SystemGenerator
    >>> device = IntegerPiecewise(epsilon=1.0)
    >>> cell = device.perturb(np.array([0.5]), SystemGenerator())
    >>> bool(0 <= cell[0] < 4096 and cell[0] == int(cell[0]))
    True
    """

    def __init__(self, epsilon: float, cells: int | None = None) -> None:
        super().__init__(epsilon, cells)
        self._set_cells(PiecewiseMechanism(epsilon))


@mechanisms.register("square-wave-integer", order=5)
class IntegerSquareWave(IntegerWindowMechanism):
    """The Square Wave mechanism for devices.

    >>> IntegerSquareWave(epsilon=1.0).integer.window
    1387
    """

    def __init__(self, epsilon: float, cells: int | None = None) -> None:
        super().__init__(epsilon, cells)
        self._set_cells(SquareWaveMechanism(epsilon))


@mechanisms.register("k-rr-integer", order=6)
class IntegerRandomizedResponse(CategoricalMechanism):
    """k-RR for devices: a window of one cell, no order among cells.

    >>> import math
    >>> rr = IntegerRandomizedResponse(epsilon=1.0, cells=5)
    >>> rr.kept / rr.other <= math.e
    True
    """

    for_devices = True
    default_cells = 2  # the fewest categories

    def __init__(self, epsilon: float, cells: int | None = None) -> None:
        super().__init__(epsilon, cells)
        self.integer = IntegerWindow(epsilon, self.cells, 1)
        total = self.integer.total
        self._set_categories(self.integer.inside_weight / total, OUTSIDE_WEIGHT / total)

    def _perturb_block(self, values: FloatArray, rng: Generator, out: FloatArray) -> None:
        """Category indices, drawn in integer arithmetic."""
        out[:] = self.integer.draw(values.astype(np.int64) << FRACTION_BITS, rng)
