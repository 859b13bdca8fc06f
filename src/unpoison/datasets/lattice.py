"""Lattice: made-up whole numbers, such as ratings, of another shape at every draw."""

from __future__ import annotations

import numpy as np

from unpoison.datasets.base import Dataset, Sample, datasets

LATTICE_POINTS = (2, 21)
"""The fewest and the most values of a lattice: from yes and no to a scale of 0 to 20."""


@datasets.register("lattice")
class Lattice(Dataset):
    """Whole numbers from 0 to at most 20; the generator decides how many, and how frequent each is.

    >>> sample = Lattice().draw(1000, np.random.default_rng(1))
    >>> bool((sample.values == np.round(sample.values)).all()), sample.low, sample.high <= 20
    (True, 0.0, True)
    """

    def draw(self, users: int, rng: np.random.Generator) -> Sample:
        """Draw the largest number, the frequencies, and users."""
        fewest, most = LATTICE_POINTS
        points = int(rng.integers(fewest, most + 1))
        values = rng.choice(points, users, p=rng.dirichlet(np.ones(points))).astype(np.float64)
        source = f"whole numbers from 0 to {points - 1}, {users} samples"
        return Sample(values, 0.0, float(points - 1), source)
