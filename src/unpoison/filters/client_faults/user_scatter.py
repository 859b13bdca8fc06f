"""How much counts scatter if broken clients' reports of one user are all alike."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from unpoison.filters.joint import Fit, JointCounts
from unpoison.types import FloatArray


@dataclass(frozen=True)
class UserScatter:
    """The sum of the eigenvalues of the counts' covariance, in units of independent reports.

    With a group's own small budget, reports of one user are as good as independent. Clients that
    send as many reports with a large budget tell one value many times: the deviance is then a sum
    of χ² with these eigenvalues, here taken as a scaled χ² of the same mean and variance.

    >>> UserScatter(free=10, empty=0, total=10.0, squares=10.0, error_factor=1.0).factor
    1.0
    """

    free: int
    """Counts that can vary: a group's add up to its reports."""
    empty: int
    """Counts that are expected to be 0, and say nothing."""
    total: float
    squares: float
    error_factor: float
    """The factor by which the mean's standard error exceeds that with independent reports."""

    @classmethod
    def of(
        cls, counts: JointCounts, best: Fit, broken: FloatArray, shares: FloatArray
    ) -> UserScatter:
        """If shares of the groups' users have the broken transitions, and all the fit's values."""
        free, empty, total, squares = 0, 0, 0.0, 0.0
        scattered, independent = 0.0, 0.0
        slopes = counts.values @ best.honest_covariance
        for index, share in enumerate(shares):
            expected = best.expected[index]
            held = expected * counts.reports[index] >= 1
            healthy, faulty = counts.transitions[index][held], broken[index][held]
            roots = np.sqrt(expected[held])
            alike = _alike(best.honest, healthy, faulty, float(share)) / np.outer(roots, roots)
            repeats = int(counts.reports_per_user[index])
            covariance = np.eye(len(roots)) - repeats * np.outer(roots, roots)
            covariance += (repeats - 1) * alike
            free, empty = free + len(roots) - 1, empty + int((~held).sum())
            total += float(np.trace(covariance))
            squares += float((covariance**2).sum())
            # What the mean takes from each count, in standard deviations of independent reports.
            weights = ((1 - share) * healthy + share * faulty) @ slopes / roots
            scattered += counts.reports[index] * float(weights @ covariance @ weights)
            independent += counts.reports[index] * float(weights @ weights)
        if free == 0 or independent == 0:
            # All reports are expected in one bucket of each group: there is nothing to scatter.
            return cls(1, empty, 1.0, 1.0, error_factor=1.0)
        return cls(free, empty, total, squares, math.sqrt(max(scattered / independent, 1.0)))

    @property
    def factor(self) -> float:
        """The factor by which counts scatter more than those of independent reports, on average."""
        return self.total / self.free

    @property
    def scale(self) -> float:
        """The factor of the scaled χ²."""
        return self.squares / self.total

    def scaled_degrees(self, degrees_of_freedom: float) -> float:
        """The degrees of freedom of the scaled χ², from those of a fit to independent reports."""
        free_share = max(degrees_of_freedom - self.empty, 1.0) / self.free
        return self.total / self.scale * free_share


def _alike(honest: FloatArray, healthy: FloatArray, faulty: FloatArray, share: float) -> FloatArray:
    """The chance that two reports of one user are in each pair of buckets."""
    of_healthy, of_faulty = (healthy * honest) @ healthy.T, (faulty * honest) @ faulty.T
    mixed: FloatArray = (1 - share) * of_healthy + share * of_faulty
    return mixed
