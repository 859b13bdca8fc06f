"""Ends: made-up values of which many are at an end of the range, of another shape at every draw."""

from __future__ import annotations

import numpy as np

from unpoison.datasets.base import Dataset, Sample, datasets
from unpoison.datasets.smooth import smooth_values

EVERYBODY = 0.25
"""The share of draws in which all users are at the ends, the hardest case for filters."""


@datasets.register("ends")
class Ends(Dataset):
    """Values in [0, 1] with a random share of users at 0 or 1; in a quarter of draws, all users.

    >>> sample = Ends().draw(1000, np.random.default_rng(1))
    >>> bool(np.isin(sample.values, (0, 1)).sum() > 100)
    True
    """

    def draw(self, users: int, rng: np.random.Generator) -> Sample:
        """Draw how many are at an end, at which, and where the others are."""
        share = 1.0 if rng.random() < EVERYBODY else float(rng.random())
        upper = rng.choice([0.0, 1.0, rng.random()])
        at_end = (rng.random(users) < upper).astype(np.float64)
        values = np.where(rng.random(users) < share, at_end, smooth_values(users, rng))
        return Sample(values, 0.0, 1.0, f"a shape with many users at the ends, {users} samples")
