"""Smooth: made-up values without any that many users share, of another shape at every draw."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unpoison.datasets.base import Dataset, Sample, datasets

MOST_HUMPS = 3
"""The most distributions that are mixed: one to three humps, as most real values have."""
SHAPES = (0.5, 20.0)
"""Parameters of these: from a density that rises towards an end to a hump a tenth as wide as the
range."""


def smooth_values(users: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Values in [0, 1] from a mixture of Beta distributions that are drawn first.

    >>> values = smooth_values(1000, np.random.default_rng(1))
    >>> bool((0 <= values).all() and (values <= 1).all()), len(np.unique(values))
    (True, 1000)
    """
    humps = int(rng.integers(1, MOST_HUMPS + 1))
    least, largest = np.log(SHAPES)
    a, b = np.exp(rng.uniform(least, largest, (2, humps)))
    of_user = rng.choice(humps, users, p=rng.dirichlet(np.ones(humps)))
    return np.asarray(rng.beta(a[of_user], b[of_user]), dtype=np.float64)


@datasets.register("smooth")
class Smooth(Dataset):
    """Values in [0, 1] with one to three humps; the generator decides where these are.

    >>> first, second = (Smooth().draw(1000, np.random.default_rng(seed)) for seed in (1, 2))
    >>> bool(abs(first.values.mean() - second.values.mean()) > 0.01)
    True
    """

    def draw(self, users: int, rng: np.random.Generator) -> Sample:
        """Draw a shape, and users from it."""
        return Sample(smooth_values(users, rng), 0.0, 1.0, f"a smooth shape, {users} samples")
