"""Lattices of reports: which cells hold the multiples of a spacing, and which lattice fits best."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from unpoison.filters.client_faults import constants
from unpoison.mechanisms import Mechanism
from unpoison.types import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Lattice:
    """The multiples of `spacing`, moved by `offset`, in a mechanism's report domain.

    >>> from unpoison.mechanisms import make
    >>> lattice = Lattice(make("piecewise", 1.0), 0.5)
    >>> len(lattice.cells), lattice.points[:2].tolist()
    (17, [-4.0, -3.5])
    """

    mechanism: Mechanism
    spacing: float
    offset: float = 0.0

    @cached_property
    def points(self) -> FloatArray:
        """The lattice's points in the domain."""
        mechanism = self.mechanism
        highest = mechanism.output_high - (1 if mechanism.discrete else 0)
        first = math.ceil((mechanism.output_low - self.offset) / self.spacing)
        last = math.floor((highest - self.offset) / self.spacing)
        points: FloatArray = self.offset + self.spacing * np.arange(first, last + 1.0)
        return points

    @cached_property
    def cells(self) -> IntArray:
        """The cells that hold a point."""
        mechanism = self.mechanism
        per_unit = mechanism.cells / (mechanism.output_high - mechanism.output_low)
        cells = np.floor((self.points - mechanism.output_low) * per_unit).astype(np.int64)
        return np.unique(np.clip(cells, 0, mechanism.cells - 1))

    @property
    def cell_share(self) -> float:
        """The share of all cells that hold a point: about that of reports that are not rounded."""
        return len(self.cells) / self.mechanism.cells

    @property
    def most_honest(self) -> float:
        """The chance that a healthy client's report is on the lattice, at most, for any value.

        Outside of the window, all cells are alike. The window is W cells in a row, which hold one
        point more than W cells have on average, at most, and a part of another at its ends.
        """
        mechanism = self.mechanism
        window = (
            getattr(mechanism, "width", 0.0)
            * mechanism.cells
            / (mechanism.output_high - mechanism.output_low)
        )
        return min(1.0, self.cell_share + 2 / window) if window else 1.0

    def rounded_share(self, cell_counts: IntArray) -> float:
        """The share of reports that were rounded to the lattice: those that it has too many."""
        on_lattice = cell_counts[self.cells].sum() / cell_counts.sum()
        return max(0.0, float((on_lattice - self.cell_share) / (1 - self.cell_share)))


def usual_lattices(mechanism: Mechanism) -> Iterator[Lattice]:
    """Lattices of the spacings that people and machines round to, from coarse to fine.

    A spacing is at least one cell, since cells hide finer ones.

    >>> from unpoison.mechanisms import make
    >>> [lattice.spacing for lattice in usual_lattices(make("piecewise-integer", 1.0, 16))]
    [10.0, 8.0, 5.0, 4.0, 2.0]
    """
    width = mechanism.output_high - mechanism.output_low
    cell, coarsest = width / mechanism.cells, width / (constants.FEWEST_LATTICE_POINTS - 1)
    powers = range(math.floor(math.log10(cell)), math.ceil(math.log10(coarsest)) + 1)
    decimal = {float(f"{step}e{power}") for step in constants.DECIMAL_STEPS for power in powers}
    exponents = range(math.floor(math.log2(cell)), math.ceil(math.log2(coarsest)) + 1)
    binary = {2.0**exponent for exponent in exponents}
    for spacing in sorted(decimal | binary, reverse=True):
        whole = spacing == round(spacing) or not mechanism.discrete
        lattice = Lattice(mechanism, spacing)
        enough = len(lattice.points) >= constants.FEWEST_LATTICE_POINTS
        if cell < spacing <= coarsest and whole and enough:
            yield lattice
