"""Transitions as linear operators that never build their matrix.

A mechanism of our family reports into a window with one density and outside it with another. So its
matrix is M = S·P, where P takes prefix sums of the input histogram and S has a few entries a row:
`forward` and `adjoint` cost O(d + d') time and memory.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property

import numpy as np
from scipy.sparse import coo_array, csr_array, eye_array, hstack

from unpoison.types import FloatArray


class Transition(ABC):
    """P(output bucket i | input bucket k), as `forward` (M x) and `adjoint` (Mᵀ w).

    `sparse` maps the features of an input histogram to outputs. `write_features` and
    `gather_features` are P and Pᵀ; they work in place so that several problems can share arrays.
    """

    sparse: csr_array
    inputs: int

    @cached_property
    def transposed(self) -> csr_array:
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
    def gather_features(self, features: FloatArray) -> FloatArray:
        """Return Pᵀ·features."""

    def forward(self, histogram: FloatArray) -> FloatArray:
        """M x: the distribution of reports for a distribution of inputs."""
        features = np.empty(self.features)
        self.write_features(histogram, features)
        return np.asarray(self.sparse @ features)

    def adjoint(self, weights: FloatArray) -> FloatArray:
        """Mᵀ w."""
        return self.gather_features(np.asarray(self.transposed @ weights))

    def dense(self) -> FloatArray:
        """The matrix itself, d' × d: for tests and small problems only."""
        return np.stack([self.forward(unit) for unit in np.eye(self.inputs)], axis=1)


class WindowTransition(Transition):
    """A window of fixed width whose left end moves linearly with the input.

    With X the distribution function of the window's start, the density of a report at y is
    outside + (inside − outside)·(X(y) − X(y − width)). X is linear between the images of the input
    edges, so its integral over an output bucket is a sum of a few knot values. The features are
    prefix sums of the histogram from the left (X at the knots) and from the right (1 − X).
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
        """Prefix sums from the left, then from the right."""
        count = self.inputs
        np.add.accumulate(histogram, out=out[:count])
        np.add.accumulate(histogram[::-1], out=out[: count - 1 : -1])

    def gather_features(self, features: FloatArray) -> FloatArray:
        """Sum, for each input bucket, the features that contain it."""
        count = self.inputs
        result: FloatArray = np.add.accumulate(features[count - 1 :: -1])[::-1]
        return result + np.add.accumulate(features[count:])


class DiagonalTransition(Transition):
    """Randomised response: a constant, plus more on the diagonal."""

    def __init__(self, categories: int, kept: float, other: float) -> None:
        self.inputs = categories
        diagonal = eye_array(categories) * (kept - other)
        constant = csr_array(np.full((categories, 1), other))
        self.sparse = csr_array(hstack([diagonal, constant]))

    def write_features(self, histogram: FloatArray, out: FloatArray) -> None:
        """The histogram, then its sum."""
        out[:-1] = histogram
        out[-1] = histogram.sum()

    def gather_features(self, features: FloatArray) -> FloatArray:
        """Each category's own feature plus the common one."""
        own: FloatArray = features[:-1] + features[-1]
        return own


def _window_matrix(
    knots: FloatArray, edges: FloatArray, width: float, inside: float, outside: float
) -> csr_array:
    """S for `WindowTransition`: integrate the report density piece by piece.

    Between neighbouring points of edges ∪ knots ∪ (knots + width) the density is linear in y, so
    its integral is the piece's length times its value in the middle.
    """
    shifted = knots + width
    within = np.concatenate([knots, shifted])
    within = within[(within > edges[0]) & (within < edges[-1])]
    points = np.union1d(edges, within)
    middles, lengths = (points[1:] + points[:-1]) / 2, np.diff(points)
    rows = np.clip(np.searchsorted(edges, middles) - 1, 0, len(edges) - 2)
    inputs = len(knots) - 1

    entries = _Entries((len(edges) - 1, 2 * inputs))
    entries.add(np.arange(len(edges) - 1), inputs - 1, outside * np.diff(edges))
    leaving = middles >= shifted[0]
    arrived = middles >= knots[-1]
    more = (inside - outside) * lengths
    rising = ~leaving & ~arrived
    entries.add_interpolated(rows[rising], knots, middles[rising], more[rising], from_left=True)
    full = ~leaving & arrived
    entries.add(rows[full], inputs - 1, more[full])
    falling = leaving & arrived
    entries.add_interpolated(rows[falling], shifted, middles[falling], more[falling])
    both = leaving & ~arrived
    entries.add_interpolated(rows[both], knots, middles[both], more[both], from_left=True)
    entries.add_interpolated(rows[both], shifted, middles[both], -more[both], from_left=True)
    return entries.matrix()


class _Entries:
    """Collects (row, column, value) of S."""

    def __init__(self, shape: tuple[int, int]) -> None:
        self.shape = shape
        self.rows: list[np.ndarray] = []
        self.columns: list[np.ndarray] = []
        self.values: list[np.ndarray] = []

    def add(self, rows: np.ndarray, columns: np.ndarray | int, values: np.ndarray) -> None:
        self.rows.append(rows)
        self.columns.append(np.broadcast_to(np.asarray(columns), rows.shape))
        self.values.append(values)

    def add_interpolated(
        self,
        rows: np.ndarray,
        knots: FloatArray,
        at: FloatArray,
        factor: FloatArray,
        from_left: bool = False,
    ) -> None:
        """factor · X(at), or factor · (1 − X(at)), by the two knots around `at`.

        The left features hold X at knots 1 … d, the right ones 1 − X at knots 0 … d − 1; X is 0 at
        the first knot and 1 − X is 0 at the last, so those need no entry.
        """
        inputs = len(knots) - 1
        left = np.clip(np.searchsorted(knots, at) - 1, 0, inputs - 1)
        share = (at - knots[left]) / (knots[left + 1] - knots[left])
        for knot, part in ((left, 1 - share), (left + 1, share)):
            stored = knot > 0 if from_left else knot < inputs
            column = knot - 1 if from_left else knot + inputs
            self.add(rows[stored], column[stored], (factor * part)[stored])

    def matrix(self) -> csr_array:
        place = (np.concatenate(self.rows), np.concatenate(self.columns))
        return coo_array((np.concatenate(self.values), place), shape=self.shape).tocsr()
