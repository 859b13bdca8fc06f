"""Evasion: a share of the poison on the other side, to hide the side that counts (Section V-D)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unpoison.attacks.base import Attack, Target, attacks
from unpoison.attacks.point import Point
from unpoison.attacks.uniform import Uniform
from unpoison.errors import InvalidParameter
from unpoison.types import FloatArray, IntArray


@attacks.register("evasion")
@dataclass(frozen=True)
class Evasion(Attack):
    """A share a of the poison `at` a point, the rest uniform on [low, high].

    >>> from unpoison.mechanisms import make
    >>> target = Target(make("piecewise", 1.0), honest_mean=0.1)
    >>> poison = Evasion(share=0.3).poison(target, 1000, np.random.default_rng(1))
    >>> int((poison < 0).sum())
    300
    """

    share: float = 0.3
    at: str = "-C/2"
    low: str = "C/2"
    high: str = "C"

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1:
            raise InvalidParameter("share", "must be in [0, 1]", self.share)

    def poison(self, target: Target, count: int, rng: np.random.Generator) -> FloatArray:
        """Exactly the share of the values evades."""
        evasive = round(self.share * count)
        hidden = self._hidden.poison(target, evasive, rng)
        return np.concatenate([hidden, self._rest.poison(target, count - evasive, rng)])

    def poison_counts(self, target: Target, count: int, rng: np.random.Generator) -> IntArray:
        """Both parts together."""
        evasive = round(self.share * count)
        hidden = self._hidden.poison_counts(target, evasive, rng)
        return hidden + self._rest.poison_counts(target, count - evasive, rng)

    @property
    def _hidden(self) -> Attack:
        return Point(self.at)

    @property
    def _rest(self) -> Attack:
        return Uniform(self.low, self.high)
