"""The receipt of a report: what was sent, and what has been spent in all."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any


@dataclass(frozen=True)
class Receipt:
    """What a device sent to a campaign, what that spent, and what all campaigns have spent.

    >>> receipt = Receipt("https://c.example", "k3v9", (2,), 4, Fraction(1), Fraction(3, 2), False)
    >>> receipt.to_dict()["total"]
    1.5
    """

    collector: str
    campaign: str
    groups: tuple[int, ...]
    reports: int
    epsilon: Fraction
    total: Fraction
    """The budget that all campaigns together have spent."""
    already: bool
    """Whether all this had been sent before, so that nothing was sent now."""

    def to_dict(self) -> dict[str, Any]:
        """The receipt for JSON, with budgets as plain numbers."""
        budgets = {"epsilon": float(self.epsilon), "total": float(self.total)}
        return {**vars(self), "groups": list(self.groups), **budgets}
