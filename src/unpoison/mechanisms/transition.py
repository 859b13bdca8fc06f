"""Transitions as linear operators that never build their matrix.

A mechanism of our family reports into a window with one density and outside it with another. So its
matrix is M = S·P, where P takes prefix sums of the input histogram and S has a few entries a row:
`forward` and `adjoint` cost O(d + d') time and memory.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property

import numpy as np
import scipy

from unpoison.types import FloatArray


class Transition(ABC):
    """P(output bucket i | input bucket k), as `forward` (M x) and `adjoint` (Mᵀ w).

    `sparse` is S; `write_features` and `gather_features` are P and Pᵀ. They write into arrays that
    are given, so that several problems can lie end to end in common ones.

    >>> from unpoison.mechanisms import make
    >>> inputs, outputs = np.linspace(0, 1, 3), make("square-wave", 1.0, cells=4).grid()
    >>> transition = make("square-wave", 1.0).transition(inputs, outputs)
    >>> x, w = np.array([0.75, 0.25]), np.arange(4.0)
    >>> bool(np.isclose(transition.forward(x) @ w, transition.adjoint(w) @ x))
    True
    """

    sparse: scipy.sparse.csr_array
    inputs: int

    @cached_property
    def transposed(self) -> scipy.sparse.csr_array:
        """Sᵀ by rows, which multiplies faster than S read by columns."""
        return self.sparse.T.tocsr()

    @property
    def outputs(self) -> int:
        """The number of output buckets, d'."""
        return int(self.sparse.shape[0])

    @property
    def features(self) -> int:
        """The number of columns of S."""
        return int(self.sparse.shape[1])

    @abstractmethod
    def write_features(self, histogram: FloatArray, out: FloatArray) -> None:
        """Write P·histogram into `out`."""

    @abstractmethod
    def gather_features(self, features: FloatArray, out: FloatArray) -> None:
        """Write Pᵀ·features into `out`."""

    def forward(self, histogram: FloatArray) -> FloatArray:
        """M x: the distribution of reports for a distribution of inputs."""
        features = np.empty(self.features)
        self.write_features(histogram, features)
        return np.asarray(self.sparse @ features)

    def adjoint(self, weights: FloatArray) -> FloatArray:
        """The product Mᵀ·w."""
        gathered = np.empty(self.inputs)
        self.gather_features(self.transposed @ weights, gathered)
        return gathered

    def dense(self) -> FloatArray:
        """The matrix itself, d' × d: for tests and small problems only."""
        features = np.empty((self.inputs, self.features))
        for unit, of_unit in zip(np.eye(self.inputs), features, strict=True):
            self.write_features(unit, of_unit)
        # One product of all columns: each by itself takes longest to be called.
        return np.asarray(self.sparse @ features.T)


class WindowTransition(Transition):
    """A window of fixed width whose left end moves linearly with the input.

    With X the distribution function of the window's start, the density of a report at y is
    outside + (inside − outside)·(X(y) − X(y − width)). X is linear between the images of the input
    edges, so its integral over an output bucket is a sum of a few knot values: the features are the
    prefix sums of the histogram, X at the knots.

    >>> starts, edges = np.array([0.0, 0.5, 1.0]), np.array([0.0, 1.0, 2.0])
    >>> transition = WindowTransition(starts, edges, width=1.0, inside=0.75, outside=0.25)
    >>> transition.dense().round(6).tolist()
    [[0.625, 0.375], [0.375, 0.625]]
    """

    def __init__(
        self,
        start_knots: FloatArray,
        output_edges: FloatArray,
        width: float,
        inside: float,
        outside: float,
    ) -> None:
        self.inputs = len(start_knots) - 1
        self.sparse = _window_matrix(start_knots, output_edges, width, inside, outside)

    def write_features(self, histogram: FloatArray, out: FloatArray) -> None:
        """Write the prefix sums of the histogram."""
        np.add.accumulate(histogram, out=out)

    def gather_features(self, features: FloatArray, out: FloatArray) -> None:
        """Suffix sums: each input bucket is in its own and all later prefix sums."""
        np.add.accumulate(features[::-1], out=out[::-1])


class DiagonalTransition(Transition):
    """Randomised response: a constant, plus more on the diagonal.

    >>> DiagonalTransition(2, kept=0.75, other=0.25).dense().tolist()
    [[0.75, 0.25], [0.25, 0.75]]
    """

    def __init__(self, categories: int, kept: float, other: float) -> None:
        self.inputs = categories
        diagonal = scipy.sparse.eye_array(categories) * (kept - other)
        constant = scipy.sparse.csr_array(np.full((categories, 1), other))
        self.sparse = scipy.sparse.csr_array(scipy.sparse.hstack([diagonal, constant]))

    def write_features(self, histogram: FloatArray, out: FloatArray) -> None:
        """The histogram, then its sum."""
        out[:-1] = histogram
        out[-1] = histogram.sum()

    def gather_features(self, features: FloatArray, out: FloatArray) -> None:
        """Add the common feature to each category's own."""
        np.add(features[:-1], features[-1], out=out)


class StackedTransition(Transition):
    """Several groups that report about one histogram: their transitions, one under the other.

    Each part counts with its share of all reports, so the whole is again a distribution. The parts
    must have the same input buckets, and so the same features.

    >>> half = DiagonalTransition(2, kept=0.75, other=0.25)
    >>> StackedTransition([half, half], [0.5, 0.5]).forward(np.array([1.0, 0.0])).tolist()
    [0.375, 0.125, 0.375, 0.125]
    """

    def __init__(self, parts: Sequence[Transition], shares: Sequence[float]) -> None:
        self.part = parts[0]
        self.inputs = self.part.inputs
        scaled = [part.sparse * share for part, share in zip(parts, shares, strict=True)]
        self.sparse = scipy.sparse.csr_array(scipy.sparse.vstack(scaled))

    def write_features(self, histogram: FloatArray, out: FloatArray) -> None:
        """The features that all parts share."""
        self.part.write_features(histogram, out)

    def gather_features(self, features: FloatArray, out: FloatArray) -> None:
        """Pᵀ·features, as every part computes it."""
        self.part.gather_features(features, out)


def _window_matrix(
    knots: FloatArray, edges: FloatArray, width: float, inside: float, outside: float
) -> scipy.sparse.csr_array:
    """S for `WindowTransition`: integrate the report density piece by piece.

    Between neighbouring points of edges ∪ knots ∪ (knots + width) the density is linear in y, so
    its integral is the piece's length times its value in the middle.
    """
    leaving = knots + width
    within = np.concatenate([knots, leaving])
    within = within[(within > edges[0]) & (within < edges[-1])]
    points = np.sort(np.concatenate([edges, within]))
    # Sorted and thinned by hand: np.union1d takes ten times as long for a few hundred numbers.
    points = points[np.append(True, points[1:] > points[:-1])]
    middles, lengths = (points[1:] + points[:-1]) / 2, np.diff(points)
    rows = np.clip(np.searchsorted(edges, middles) - 1, 0, len(edges) - 2)

    entries = _Entries((len(edges) - 1, len(knots) - 1))
    whole = np.full(len(middles), len(knots) - 1)
    entries.add(rows, whole, outside * lengths)
    entries.add_interpolated(rows, knots, middles, (inside - outside) * lengths)
    entries.add_interpolated(rows, leaving, middles, (outside - inside) * lengths)
    return entries.matrix()


class _Entries:
    """Collects the entries of S: (row, knot, value), where feature k is X at knot k + 1."""

    def __init__(self, shape: tuple[int, int]) -> None:
        self.shape = shape
        self.parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []

    def add(self, rows: np.ndarray, knot: np.ndarray, values: np.ndarray) -> None:
        """X is 0 at the first knot, which therefore needs no entry."""
        stored = (knot > 0) & (values != 0)
        self.parts.append((rows[stored], knot[stored] - 1, values[stored]))

    def add_interpolated(
        self, rows: np.ndarray, knots: FloatArray, at: FloatArray, factor: FloatArray
    ) -> None:
        """factor · X(at), from the two knots around `at`; beyond the ends X is 0 and Σx."""
        left = np.clip(np.searchsorted(knots, at) - 1, 0, len(knots) - 2)
        share = np.clip((at - knots[left]) / (knots[left + 1] - knots[left]), 0.0, 1.0)
        self.add(rows, left, factor * (1 - share))
        self.add(rows, left + 1, factor * share)

    def matrix(self) -> scipy.sparse.csr_array:
        rows, columns, values = (np.concatenate(part) for part in zip(*self.parts, strict=True))
        matrix = scipy.sparse.coo_array((values, (rows, columns)), shape=self.shape).tocsr()
        matrix.sum_duplicates()
        return matrix
