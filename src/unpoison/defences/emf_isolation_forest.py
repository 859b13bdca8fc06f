"""EMF, then the isolation forest defence."""

from __future__ import annotations

from dataclasses import dataclass

from unpoison.defences.base import defences
from unpoison.defences.emf_first import EmfThenInliers
from unpoison.defences.isolation_forest import ForestInliers


@defences.register("emf-isolation-forest", order=4)
@dataclass(frozen=True)
class EmfIsolationForest(EmfThenInliers, ForestInliers):
    """An isolation forest on the reports that EMF leaves, or on reconstructed inputs.

    >>> import numpy as np
    >>> from unpoison import Plan, simulate
    >>> plan = Plan.new(epsilon=1.0, min_epsilon=0.25, low=0, high=1)
    >>> values = np.random.default_rng(1).beta(2, 5, 20_000)
    >>> run = simulate(plan, values, "uniform:C/2,C", 0.25, np.random.default_rng(2))
    >>> mean = EmfIsolationForest(contamination=0.01).mean(run.summary)
    >>> bool(abs(plan.natural(mean) - run.truth) < 0.1)
    True
    """

    needs = "sklearn"

    def describe(self) -> str:
        """A sentence on what the forest judged, and on how much of it it grew."""
        return (
            "The mean of what an isolation forest takes for normal: of the reports that EMF "
            "leaves, or of the inputs that EM reconstructs where EMF finds hardly any poison. It "
            f"grows on at most {self.sample:,} of them, drawn with the seed {self.seed}."
        )
