"""The paper's synthetic datasets: Beta(2,5) and Beta(5,2), min-max normalised samples."""

from __future__ import annotations

import numpy as np

from unpoison.datasets.base import Dataset, Sample, datasets


class Beta(Dataset):
    """Values in [0, 1] from a Beta distribution; the range is the sample's own.

    >>> class Even(Beta):
    ...     a, b = 1.0, 1.0
    >>> Even().draw(100, np.random.default_rng(1)).source
    'Beta(1,1), 100 samples'
    """

    a: float
    b: float

    def draw(self, users: int, rng: np.random.Generator) -> Sample:
        """Draw, and take the smallest and largest value as the range."""
        values = rng.beta(self.a, self.b, users)
        source = f"Beta({self.a:g},{self.b:g}), {users} samples"
        return Sample(values, float(values.min()), float(values.max()), source)


@datasets.register("beta-2-5")
class Beta25(Beta):
    """Beta(2,5): most values low.

    >>> sample = Beta25().draw(10_000, np.random.default_rng(1))
    >>> bool(abs(sample.values.mean() - 2 / 7) < 0.02)
    True
    """

    a, b = 2.0, 5.0  # the paper's


@datasets.register("beta-5-2")
class Beta52(Beta):
    """Beta(5,2): most values high.

    >>> sample = Beta52().draw(10_000, np.random.default_rng(1))
    >>> bool(abs(sample.values.mean() - 5 / 7) < 0.02)
    True
    """

    a, b = 5.0, 2.0  # the paper's
