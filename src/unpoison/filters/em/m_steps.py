"""M-steps: the only part in which EMF, EMF*, CEMF* and EMS differ.

After the E-step (Alg. 2, lines 3-8) both histograms hold the weights P_x / N and P_y / N, which sum
to 1 together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from unpoison.filters.smoothing import smooth
from unpoison.types import FloatArray


class MStep(Protocol):
    """The M-step of a filter: changes both histograms in place, after the E-step."""

    def __call__(self, honest: FloatArray, poison: FloatArray) -> None:
        """Turn the weights P_x / N and P_y / N into the next x̂ and ŷ."""


@dataclass(frozen=True)
class FreePoison:
    """EMF (Alg. 2, lines 9-12): x̂ and ŷ share a total of 1, which the weights already have.

    >>> honest, poison = np.array([0.2, 0.4]), np.array([0.4])
    >>> FreePoison()(honest, poison); honest.tolist()
    [0.2, 0.4]
    """

    def __call__(self, honest: FloatArray, poison: FloatArray) -> None:
        """Leave the weights as they are."""


@dataclass(frozen=True)
class ImposedFraction:
    """EMF* (Alg. 4, Thm. 4): Σx̂ = 1 − γ̂ and Σŷ = γ̂.

    >>> honest, poison = np.array([0.2, 0.4]), np.array([0.4])
    >>> ImposedFraction(0.25)(honest, poison); poison.tolist()
    [0.25]
    """

    byzantine_fraction: float

    def __call__(self, honest: FloatArray, poison: FloatArray) -> None:
        """Scale both histograms to their totals; where no poison is left, all is honest."""
        poison_total = np.add.reduce(poison)
        fraction = self.byzantine_fraction if poison_total > 0 else 0.0
        honest *= (1 - fraction) / np.add.reduce(honest)
        if poison_total > 0:
            poison *= fraction / poison_total


@dataclass(frozen=True, eq=False)
class FixedPoison:
    """EMF* on categories: ŷ is imposed category by category, and Σx̂ = 1 − Σŷ.

    >>> honest, poison = np.array([0.2, 0.4]), np.array([0.4, 0.0])
    >>> FixedPoison(np.array([0.25, 0.0]))(honest, poison)
    >>> poison.tolist(), honest.round(6).tolist()
    ([0.25, 0.0], [0.25, 0.5])
    """

    poison: FloatArray

    def __call__(self, honest: FloatArray, poison: FloatArray) -> None:
        """Put the poison back, and scale x̂ to what it leaves of 1."""
        poison[:] = self.poison
        honest *= (1 - np.add.reduce(self.poison)) / np.add.reduce(honest)


@dataclass(frozen=True)
class Smoothing:
    """EMS (Section V-D): x̂ smoothed with (1/4, 1/2, 1/4) after every M-step.

    >>> honest = np.array([0.0, 1.0, 0.0])
    >>> Smoothing()(honest, np.zeros(1)); honest.tolist()
    [0.25, 0.5, 0.25]
    """

    def __call__(self, honest: FloatArray, poison: FloatArray) -> None:
        """Average each bucket with its neighbours; the total stays."""
        smooth(honest)
