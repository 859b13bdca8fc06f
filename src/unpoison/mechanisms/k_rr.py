"""k-ary randomised response (Section V-D)."""

from __future__ import annotations

import math

import numpy as np

from unpoison.mechanisms.base import Mechanism, mechanisms
from unpoison.mechanisms.transition import DiagonalTransition, Transition
from unpoison.randomness import Generator
from unpoison.types import FloatArray


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
        """Categories are whole numbers."""
        super().check_inputs(np.where(values == np.floor(values), values, np.nan))

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

    def input_bucket_count(self, output_buckets: int) -> int:
        """Every category is a bucket."""
        return self.cells


@mechanisms.register("k-rr")
class RandomizedResponse(CategoricalMechanism):
    """k-RR: keep the category with probability e^ε/(e^ε + k − 1), else any other alike.

    >>> import numpy as np
    >>> rr = RandomizedResponse(epsilon=2.0, cells=4)
    >>> reports = rr.perturb(np.zeros(100_000), np.random.default_rng(1))
    >>> bool(abs(rr.decode(reports == 0).mean() - 1) < 0.01)
    True
    """

    default_cells = 2

    def __init__(self, epsilon: float, cells: int | None = None) -> None:
        super().__init__(epsilon, cells)
        other = 1.0 / (math.exp(epsilon) + self.cells - 1)
        self._set_categories(math.exp(epsilon) * other, other)

    def _perturb_block(self, values: FloatArray, rng: Generator, out: FloatArray) -> None:
        """Keep the value with probability kept − other, else draw any category."""
        keep = self.kept - self.other
        uniform = rng.random(len(values))
        drawn = np.minimum(np.floor((uniform - keep) * (self.cells / (1 - keep))), self.cells - 1)
        out[:] = np.where(uniform < keep, values, drawn)
