"""Spikes: made-up values of which many users share a few, of another shape at every draw."""

from __future__ import annotations

import numpy as np

from unpoison.datasets.base import Dataset, Sample, datasets
from unpoison.datasets.smooth import smooth_values

MOST_SPIKES = 5
"""The most values that are shared: defaults and round numbers, which are few in real values."""


@datasets.register("spikes")
class Spikes(Dataset):
    """Values in [0, 1]: a share of the users have one of up to five values, the rest any.

    >>> sample = Spikes().draw(1000, np.random.default_rng(1))
    >>> values, users = np.unique(sample.values, return_counts=True)
    >>> bool(1 <= (users > 1).sum() <= 5)
    True
    """

    def draw(self, users: int, rng: np.random.Generator) -> Sample:
        """Draw a smooth shape, the spikes and how many have them, and users."""
        spikes = rng.random(int(rng.integers(1, MOST_SPIKES + 1)))
        shared = rng.random(users) < rng.random()
        at_spike = rng.choice(spikes, users, p=rng.dirichlet(np.ones(len(spikes))))
        values = np.where(shared, at_spike, smooth_values(users, rng))
        return Sample(values, 0.0, 1.0, f"a shape with spikes, {users} samples")
