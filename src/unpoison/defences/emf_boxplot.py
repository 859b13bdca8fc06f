"""EMF, then the boxplot defence."""

from __future__ import annotations

from dataclasses import dataclass

from unpoison.defences.base import defences
from unpoison.defences.boxplot import TukeyFences
from unpoison.defences.emf_first import EmfThenInliers


@defences.register("emf-boxplot", order=4)
@dataclass(frozen=True)
class EmfBoxplot(EmfThenInliers, TukeyFences):
    """Tukey's fences around the reports that EMF leaves, or around reconstructed inputs.

    >>> import numpy as np
    >>> from unpoison import Plan, simulate
    >>> plan = Plan.new(epsilon=1.0, min_epsilon=0.25, low=0, high=1)
    >>> values = np.random.default_rng(1).beta(2, 5, 20_000)
    >>> run = simulate(plan, values, "uniform:C/2,C", 0.25, np.random.default_rng(2))
    >>> bool(abs(plan.natural(EmfBoxplot().mean(run.summary)) - run.truth) < 0.1)
    True
    """

    def describe(self) -> str:
        """A sentence on what the fences were drawn around."""
        return (
            "The mean between a boxplot's fences: of the reports that EMF leaves, or of the inputs "
            "that EM reconstructs where EMF finds hardly any poison."
        )
