"""Clients that clip reports: what is beyond a range is sent as its end."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unpoison.filters.client_faults.broken_mechanism import BrokenClient
from unpoison.types import FloatArray


@dataclass(frozen=True, eq=False)
class ClippingClient(BrokenClient):
    """Reports beyond `low` and `high`, in report units, are moved there.

    >>> from unpoison.mechanisms import make
    >>> client = ClippingClient(make("piecewise", 1.0), low=-1.0, high=2.0)
    >>> client.origins(np.array([-2.0, 0.0, 3.0])).tolist()
    [-inf, 0.0, inf]
    """

    low: float
    high: float

    def origins(self, edges: FloatArray) -> FloatArray:
        """Every report is at the low end or above, and none is above the high end."""
        # A cell number stands for the cell that begins at it.
        within_cell = 1 / 2 if self.mechanism.discrete else 0.0
        above_low = np.where(edges <= self.low + within_cell, -np.inf, edges)
        return np.where(edges > self.high + within_cell, np.inf, above_low)
