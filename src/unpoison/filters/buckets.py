"""Coarser buckets for filters, with edges at the summary's cell edges, so that counts are exact."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from unpoison.errors import NotEnoughData
from unpoison.mechanisms import Mechanism, Transition
from unpoison.types import FloatArray, IntArray

MIN_REPORTS = 16
"""Reports of a group under which no filter is run on it: ⌊√16⌋ is 4 buckets, two on either side."""


@dataclass(frozen=True)
class Buckets:
    """Output and input buckets of one group: d' and d of the paper.

    >>> from unpoison.mechanisms import make
    >>> buckets = Buckets.for_reports(make("piecewise", 2.0), 166_667)
    >>> buckets.outputs, buckets.inputs
    (408, 188)
    """

    mechanism: Mechanism
    outputs: int
    inputs: int

    @classmethod
    def for_reports(cls, mechanism: Mechanism, reports: int) -> Buckets:
        """d' = ⌊√N_t⌋ output buckets, never more than cells; d follows from the mechanism.

        Categories are their own buckets.
        """
        if reports < MIN_REPORTS:
            raise NotEnoughData(
                f"a group needs at least {MIN_REPORTS} reports; received {reports} "
                f"in the group of epsilon {mechanism.epsilon:g}"
            )
        outputs = mechanism.cells
        if not mechanism.categorical:
            outputs = min(math.isqrt(reports), mechanism.cells)
        return cls(mechanism, outputs, mechanism.input_bucket_count(outputs))

    @cached_property
    def cell_edges(self) -> IntArray:
        """The first cell of each bucket, and the end of the last."""
        return np.arange(self.outputs + 1) * self.mechanism.cells // self.outputs

    @property
    def cell_widths(self) -> IntArray:
        """Number of cells of each bucket."""
        return np.diff(self.cell_edges)

    @cached_property
    def output_edges(self) -> FloatArray:
        """The edges of the output buckets in report units, each the edge of a cell."""
        return self.mechanism.grid()[self.cell_edges]

    @cached_property
    def input_edges(self) -> FloatArray:
        """The edges of the input buckets."""
        return np.linspace(self.mechanism.input_low, self.mechanism.input_high, self.inputs + 1)

    @cached_property
    def input_values(self) -> FloatArray:
        """The middle of each input bucket."""
        return (self.input_edges[1:] + self.input_edges[:-1]) / 2

    @cached_property
    def decoded_values(self) -> FloatArray:
        """ν_j: the decoded value of the middle of each output bucket."""
        return self.mechanism.decode(self.mechanism.bucket_values(self.output_edges))

    @cached_property
    def transition(self) -> Transition:
        """The paper's transform matrix M for these buckets (Section IV-B), as an operator."""
        return self.mechanism.transition(self.input_edges, self.output_edges)

    def count(self, cell_counts: IntArray | FloatArray) -> FloatArray:
        """c_i: cell counts added up to bucket counts."""
        return np.add.reduceat(cell_counts, self.cell_edges[:-1]).astype(np.float64)
