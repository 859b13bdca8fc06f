"""Evasion attack: some poison on the other side, to hide the side that counts (Section V-D)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unpoison.attacks.base import Attack, attacks
from unpoison.attacks.point import Point
from unpoison.attacks.target import Target
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
    """One of the paper's shares, which go from 0 to 0.5."""
    at: str = "-C/2"
    low: str = "C/2"
    high: str = "C"

    @classmethod
    def example(cls, target: Target) -> Evasion:
        """The defaults in terms of the ends of any report domain; only PM has C."""
        return cls(at="L/2", low="R/2", high="R")

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1:
            raise InvalidParameter("share", "must be in [0, 1]", self.share)

    def poison(self, target: Target, count: int, rng: np.random.Generator) -> FloatArray:
        """Exactly the share of the reports at the decoy, rounded to a whole number."""
        decoys = round(self.share * count)
        sent = self._decoy.poison(target, decoys, rng)
        return np.concatenate([sent, self._main.poison(target, count - decoys, rng)])

    def poison_counts(self, target: Target, count: int, rng: np.random.Generator) -> IntArray:
        """Add the counts of both parts."""
        decoys = round(self.share * count)
        counts = self._decoy.poison_counts(target, decoys, rng)
        return counts + self._main.poison_counts(target, count - decoys, rng)

    @property
    def _decoy(self) -> Attack:
        return Point(self.at)

    @property
    def _main(self) -> Attack:
        return Uniform(self.low, self.high)
