"""Nobody attacks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unpoison.attacks.base import Attack, Target, attacks
from unpoison.types import FloatArray


@attacks.register("none")
@dataclass(frozen=True)
class NoAttack(Attack):
    """The control: all users are honest, whatever the share of attackers is set to.

    >>> NoAttack().active
    False
    """

    categorical = None

    @property
    def active(self) -> bool:
        """Nobody attacks."""
        return False

    def poison(self, target: Target, count: int, rng: np.random.Generator) -> FloatArray:
        """No attackers, no poison."""
        return np.empty(0)
