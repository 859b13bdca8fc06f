"""No attack: the control of every comparison."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unpoison.attacks.base import Attack, attacks
from unpoison.attacks.target import Target
from unpoison.types import FloatArray


@attacks.register("none")
@dataclass(frozen=True)
class NoAttack(Attack):
    """The control: all users are honest, whatever the share of attackers is set to.

    >>> NoAttack().active
    False
    """

    categorical = None
    random = False

    @property
    def active(self) -> bool:
        """Whether anybody attacks: nobody does."""
        return False

    def poison(self, target: Target, count: int, rng: np.random.Generator) -> FloatArray:
        """No reports at all, whatever `count` is."""
        return np.empty(0)
