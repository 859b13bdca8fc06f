"""The M-steps: all in which EMF, EMF*, CEMF* and EMS differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from unpoison.types import FloatArray


class Step(Protocol):
    """What a filter does in its M-step, in place, after the weights were divided by N."""

    def __call__(self, honest: FloatArray, poison: FloatArray) -> None:
        """Turn the weights P_x / N and P_y / N into the next histograms."""


@dataclass(frozen=True)
class Free:
    """EMF (Alg. 2): x̂ and ŷ share a total of 1, which the weights already have.

    >>> honest, poison = np.array([0.2, 0.4]), np.array([0.4])
    >>> Free()(honest, poison); honest.tolist()
    [0.2, 0.4]
    """

    def __call__(self, honest: FloatArray, poison: FloatArray) -> None:
        """Leave the weights as they are."""


@dataclass(frozen=True)
class Imposed:
    """EMF* (Alg. 4, Thm. 4): Σx̂ = 1 − γ̂ and Σŷ = γ̂.

    >>> honest, poison = np.array([0.2, 0.4]), np.array([0.4])
    >>> Imposed(0.25)(honest, poison); poison.tolist()
    [0.25]
    """

    byzantine_fraction: float

    def __call__(self, honest: FloatArray, poison: FloatArray) -> None:
        """Scale both histograms to their totals; where no poison is left, all is honest."""
        poisoned = np.add.reduce(poison)
        fraction = self.byzantine_fraction if poisoned > 0 else 0.0
        honest *= (1 - fraction) / np.add.reduce(honest)
        if poisoned > 0:
            poison *= fraction / poisoned


@dataclass(frozen=True, eq=False)
class Given:
    """EMF* on categories: ŷ is imposed category by category, and Σx̂ = 1 − Σŷ.

    >>> honest, poison = np.array([0.2, 0.4]), np.array([0.4, 0.0])
    >>> Given(np.array([0.25, 0.0]))(honest, poison); poison.tolist(), honest.round(6).tolist()
    ([0.25, 0.0], [0.25, 0.5])
    """

    poison: FloatArray

    def __call__(self, honest: FloatArray, poison: FloatArray) -> None:
        """Put the poison back, and scale the honest part to the rest."""
        poison[:] = self.poison
        honest *= (1 - np.add.reduce(self.poison)) / np.add.reduce(honest)


@dataclass(frozen=True)
class Smoothed:
    """EMS: x̂ smoothed with (1/4, 1/2, 1/4) after every M-step (ends are repeated).

    >>> honest = np.array([0.0, 1.0, 0.0])
    >>> Smoothed()(honest, np.zeros(1)); honest.tolist()
    [0.25, 0.5, 0.25]
    """

    def __call__(self, honest: FloatArray, poison: FloatArray) -> None:
        """Average each bucket with its neighbours; the total stays."""
        padded = np.concatenate([honest[:1], honest, honest[-1:]])
        honest[:] = (padded[:-2] + 2 * padded[1:-1] + padded[2:]) / 4
