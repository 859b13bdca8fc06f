"""EMF, then k-means: the paper's answer to input manipulation."""

from __future__ import annotations

from dataclasses import dataclass

from unpoison.defences.base import defences
from unpoison.defences.emf_first import EmfFirst
from unpoison.defences.k_means import SubsetClusters


@defences.register("emf-k-means", order=4)
@dataclass(frozen=True)
class EmfKMeans(EmfFirst, SubsetClusters):
    """k-means on reconstructed inputs where EMF finds hardly any poison, and else EMF alone.

    >>> import numpy as np
    >>> from unpoison import Plan, estimate, simulate
    >>> plan = Plan.new(epsilon=1.0, min_epsilon=0.25, low=0, high=1)
    >>> values = np.random.default_rng(1).beta(2, 5, 20_000)
    >>> run = simulate(plan, values, "uniform:C/2,C", 0.25, np.random.default_rng(2))
    >>> mean = plan.natural(EmfKMeans().mean(run.summary))
    >>> bool(np.isclose(mean, estimate(run.summary, method="emf").mean))
    True
    """

    def describe(self) -> str:
        """A sentence on what was clustered: reports that EMF leaves, or reconstructed inputs."""
        return (
            "EMF's mean; or where EMF finds hardly any poison, the mean of the larger of two "
            f"clusters of {self.subsets:,} random subsets of the inputs that EM reconstructs, "
            f"drawn with the seed {self.seed}."
        )
