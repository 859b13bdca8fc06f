"""Opposite attack: poison on one side in every other group, on the other side between them."""

from __future__ import annotations

from dataclasses import dataclass

from unpoison.attacks.base import attacks
from unpoison.attacks.target import Target
from unpoison.attacks.uniform import Uniform


@attacks.register("opposite")
@dataclass(frozen=True)
class Opposite(Uniform):
    """Uniform on [low, high] at the largest budget, mirrored at the next one, and so on in turns.

    The mirror stands in the middle of the report domain.

    >>> import numpy as np
    >>> from unpoison.mechanisms import make
    >>> first, second = (Target(make("piecewise", 1.0), 0.1, rank=n, groups=2) for n in (0, 1))
    >>> rng = np.random.default_rng(1)
    >>> [bool((Opposite().poison(group, 1000, rng) > 0).all()) for group in (first, second)]
    [True, False]
    """

    by_group = True

    def ends(self, target: Target) -> tuple[float, float]:
        """The range at even ranks, its mirror image at odd ones."""
        low, high = super().ends(target)
        if target.rank % 2 == 0:
            return low, high
        twice_the_middle = target.mechanism.output_low + target.mechanism.output_high
        return twice_the_middle - high, twice_the_middle - low
