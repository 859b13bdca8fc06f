"""The window family: one density inside a window that follows the input, another outside."""

from __future__ import annotations

import math

import numpy as np

from unpoison.mechanisms.base import Mechanism
from unpoison.mechanisms.direct_counts import draw_evenly, draw_windows
from unpoison.mechanisms.randomness import Generator
from unpoison.mechanisms.transition import Transition, WindowTransition
from unpoison.types import FloatArray, IntArray


class WindowMechanism(Mechanism):
    """Reports fall in a window of `width` with density `inside`, elsewhere with `outside`.

    The window's left end moves from `output_low` (at the smallest input) until its right end
    reaches `output_high` (at the largest). The two densities have the ratio e^ε, so ε-LDP is exact.
    The report's mean is affine in the input: E[y | v] = offset + slope·v.

    >>> from unpoison.mechanisms import make
    >>> pm = make("piecewise", 1.0)
    >>> round(math.log(pm.inside / pm.outside), 9)
    1.0
    >>> bool(np.isclose(pm.window_start(np.array([1.0]))[0] + pm.width, pm.output_high))
    True
    """

    width: float
    inside: float
    outside: float

    def _set_window(self, low: float, high: float, width: float) -> None:
        """Fix the output domain and the window; the densities follow from e^ε."""
        self.output_low, self.output_high, self.width = low, high, width
        self.outside = 1.0 / (width * math.expm1(self.epsilon) + high - low)
        self.inside = self.outside * math.exp(self.epsilon)
        excess = (self.inside - self.outside) * width
        self.slope = excess * (high - low - width) / (self.input_high - self.input_low)
        at_lowest = self.outside * (high**2 - low**2) / 2 + excess * (low + width / 2)
        self.offset = at_lowest - self.slope * self.input_low

    def window_start(self, values: FloatArray) -> FloatArray:
        """l(v): the left end of the window for each input."""
        travel = self.output_high - self.output_low - self.width
        share = (values - self.input_low) / (self.input_high - self.input_low)
        return self.output_low + share * travel

    def _perturb_block(self, values: FloatArray, rng: Generator, out: FloatArray) -> None:
        """Invert the report's distribution function at one uniform number a value.

        Its inverse has the slope 1/outside everywhere, but 1/inside while in the window:

        y = low + u/outside − (1/outside − 1/inside)·clip(u − outside·(l(v) − low), 0, inside·width)
        """
        uniform = rng.random(len(values))
        travel = self.output_high - self.output_low - self.width
        per_input = self.outside * travel / (self.input_high - self.input_low)
        np.multiply(values, -per_input, out=out)
        out += per_input * self.input_low
        out += uniform
        np.clip(out, 0.0, self.inside * self.width, out=out)
        out *= 1 / self.inside - 1 / self.outside
        uniform /= self.outside
        uniform += self.output_low
        out += uniform
        # Rounding may pass an end by an ulp, and a report outside its domain would be refused.
        np.clip(out, self.output_low, self.output_high, out=out)

    def decode(self, reports: FloatArray) -> FloatArray:
        """Undo the affine bias of the report."""
        return (np.asarray(reports, dtype=np.float64) - self.offset) / self.slope

    def variance(self, values: FloatArray) -> FloatArray:
        """E[y²] − E[y]² of the report, in units of the decoded value."""
        values = np.asarray(values, dtype=np.float64)
        start = self.window_start(values)
        excess = (self.inside - self.outside) * self.width
        whole = self.outside * (self.output_high**3 - self.output_low**3) / 3
        second = whole + excess * (start * (start + self.width) + self.width**2 / 3)
        mean = self.offset + self.slope * values
        result: FloatArray = (second - mean**2) / self.slope**2
        return result

    @property
    def worst_variance(self) -> float:
        """The variance is quadratic and symmetric in the input: extremes are middle and ends."""
        middle = (self.input_low + self.input_high) / 2
        extremes = np.array([self.input_low, middle, self.input_high])
        return float(self.variance(extremes).max())

    def transition(self, input_edges: FloatArray, output_edges: FloatArray) -> Transition:
        """The operator M, averaged exactly over each input bucket."""
        knots = self.window_start(input_edges)
        return WindowTransition(knots, output_edges, self.width, self.inside, self.outside)

    def cell_probabilities(self, values: FloatArray, output_edges: FloatArray) -> FloatArray:
        """Exact bucket probabilities for single inputs, from the distribution function."""
        start = self.window_start(np.asarray(values, dtype=np.float64))[:, None]
        covered = np.clip(output_edges[None, :] - start, 0.0, self.width)
        inside = np.diff(covered, axis=1)
        result: FloatArray = self.outside * np.diff(output_edges) + (
            (self.inside - self.outside) * inside
        )
        return result

    def kinks(self, output_edges: FloatArray) -> FloatArray:
        """Inputs at which an end of the window meets the edge of an output bucket, and both ends.

        >>> from unpoison.mechanisms import make
        >>> sw = make("square-wave", 1.0, cells=2)
        >>> sw.kinks(sw.grid()).round(3).tolist()
        [0.0, 0.244, 0.756, 1.0]
        """
        starts = np.concatenate([output_edges, output_edges - self.width]) - self.output_low
        shares = starts / (self.output_high - self.output_low - self.width)
        within = np.concatenate([[0.0], shares[(shares > 0) & (shares < 1)], [1.0]])
        return self.input_low + np.unique(within) * (self.input_high - self.input_low)

    def draw_counts(
        self, values: FloatArray, numbers: IntArray, rng: np.random.Generator
    ) -> IntArray:
        """A report is uniform on the whole domain, or else uniform on the value's window."""
        cell = (self.output_high - self.output_low) / self.cells
        starts = (self.window_start(np.asarray(values, dtype=np.float64)) - self.output_low) / cell
        about = rng.binomial(numbers, (self.inside - self.outside) * self.width)
        anywhere = draw_evenly(int((numbers - about).sum()), self.cells, rng)
        return anywhere + draw_windows(starts, self.width / cell, about, self.cells, rng)
