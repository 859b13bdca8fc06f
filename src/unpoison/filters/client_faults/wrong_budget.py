"""Clients that perturb with another budget than that of their group."""

from __future__ import annotations

from dataclasses import dataclass

from unpoison.filters.client_faults.broken_mechanism import BrokenClient
from unpoison.types import FloatArray


@dataclass(frozen=True, eq=False)
class WrongBudgetClient(BrokenClient):
    """Reports are those of the client's own mechanism, whatever the group's is.

    >>> import numpy as np
    >>> from unpoison.mechanisms import make
    >>> client = WrongBudgetClient(make("piecewise", 1.0))
    >>> group_edges = np.array([-16.0, -8.0, 0.0, 8.0, 16.0])
    >>> client.probabilities(np.zeros(1), group_edges).round(3).tolist()
    [[0.0, 0.5, 0.5, 0.0]]
    """

    def origins(self, edges: FloatArray) -> FloatArray:
        """The edges themselves: reports are not moved."""
        return edges
