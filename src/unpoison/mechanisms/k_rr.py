"""k-ary randomised response (Section V-D)."""

from __future__ import annotations

import math

import numpy as np

from unpoison.mechanisms.base import PERTURB_BLOCK, Mechanism, mechanisms
from unpoison.mechanisms.direct_counts import draw_evenly
from unpoison.mechanisms.randomness import Generator
from unpoison.mechanisms.transition import DiagonalTransition, Transition
from unpoison.types import FloatArray, IntArray


class CategoricalMechanism(Mechanism):
    """Reports a category: the true one with probability `kept`, any other with `other`.

    A value is the category's index; `decode` maps a report to an unbiased estimate of the indicator
    that the value is that category (averaged over reports, its frequency).

    >>> rr = RandomizedResponse(epsilon=1.0, cells=3)
    >>> rr.decode(np.array([rr.kept, rr.other])).round(9).tolist()
    [1.0, 0.0]
    """

    discrete = True
    categorical = True
    kept: float
    other: float

    def _set_categories(self, kept: float, other: float) -> None:
        self.kept, self.other = kept, other
        self.input_low, self.input_high = 0.0, float(self.cells - 1)
        self.output_low, self.output_high = 0.0, float(self.cells)

    def check_inputs(self, values: FloatArray) -> None:
        """Refuse values that are not whole numbers of categories; faults are counted only then."""
        blocks = range(0, len(values), PERTURB_BLOCK)
        if not all(self._are_categories(values[first : first + PERTURB_BLOCK]) for first in blocks):
            super().check_inputs(np.where(values == np.floor(values), values, np.nan))

    def _are_categories(self, block: FloatArray) -> bool:
        whole = bool((np.floor(block) == block).all())
        return whole and block.min() >= self.input_low and block.max() <= self.input_high

    def decode(self, reports: FloatArray) -> FloatArray:
        """(1[report is the category] − other)/(kept − other), for an array of such indicators."""
        return (np.asarray(reports, dtype=np.float64) - self.other) / (self.kept - self.other)

    def variance(self, values: FloatArray) -> FloatArray:
        """Variance of the decoded indicator of the value's own category."""
        own = self.kept * (1 - self.kept) / (self.kept - self.other) ** 2
        return np.full(np.shape(values), own)

    @property
    def worst_variance(self) -> float:
        """The larger variance of the indicator: of the own category, or of another."""
        spread = max(self.kept * (1 - self.kept), self.other * (1 - self.other))
        return spread / (self.kept - self.other) ** 2

    def transition(self, input_edges: FloatArray, output_edges: FloatArray) -> Transition:
        """A constant plus a diagonal: every category is its own bucket."""
        return DiagonalTransition(self.cells, self.kept, self.other)

    def cell_probabilities(self, values: FloatArray, output_edges: FloatArray) -> FloatArray:
        """One row a value: `kept` in its own cell, `other` elsewhere."""
        own = np.asarray(values).astype(np.int64)
        probabilities = np.full((len(own), self.cells), self.other)
        probabilities[np.arange(len(own)), own] = self.kept
        return probabilities

    def draw_counts(
        self, values: FloatArray, numbers: IntArray, rng: np.random.Generator
    ) -> IntArray:
        """Split reports into those that show the value and those that are uniform."""
        about = rng.binomial(numbers, self.kept - self.other)
        counts = draw_evenly(int((numbers - about).sum()), self.cells, rng)
        np.add.at(counts, np.asarray(values).astype(np.int64), about)
        return counts

    def input_bucket_count(self, output_buckets: int) -> int:
        """Every category is a bucket."""
        return self.cells


@mechanisms.register("k-rr", order=1)
class RandomizedResponse(CategoricalMechanism):
    """k-RR: keep the category with probability e^ε/(e^ε + k − 1), else another one at random.

    >>> import numpy as np
    >>> rr = RandomizedResponse(epsilon=2.0, cells=4)
    >>> reports = rr.perturb(np.zeros(100_000), np.random.default_rng(1))
    >>> bool(abs(rr.decode(reports == 0).mean() - 1) < 0.01)
    True
    """

    default_cells = 2  # the fewest categories
    device_twin = "k-rr-integer"

    def __init__(self, epsilon: float, cells: int | None = None) -> None:
        super().__init__(epsilon, cells)
        other = 1.0 / (math.exp(epsilon) + self.cells - 1)
        self._set_categories(math.exp(epsilon) * other, other)

    def _perturb_block(self, values: FloatArray, rng: Generator, out: FloatArray) -> None:
        """Move each category 0 … k − 1 steps around a circle: 0 with `kept`, others with `other`.

        The uniform number is stretched until `other` is 1 long; all below 1 is 0 steps. Rounding
        may stretch the largest number to k, which is once round. No value takes a branch of its
        own, so the time is the same at every budget.
        """
        steps = rng.random(len(values))
        steps -= self.kept - self.other
        steps *= 1 / self.other
        np.maximum(steps, 0.0, out=steps)
        np.floor(steps, out=steps)
        steps += values
        np.subtract(steps, self.cells, out=out)
        # Beyond the last category, the first follows: as unsigned words, negative numbers are the
        # largest, so the lesser word is the number that is at least 0 and below k.
        words = out.view(np.uint64)
        np.minimum(steps.view(np.uint64), words, out=words)
