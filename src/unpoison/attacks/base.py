"""The base class of attacks: the reports of colluding users, given what attackers know."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from unpoison.attacks.placement import Placement
from unpoison.attacks.target import Target
from unpoison.errors import InvalidParameter
from unpoison.mechanisms import Mechanism
from unpoison.plan import Plan
from unpoison.registry import Registry
from unpoison.types import FloatArray, IntArray

REPORTS_AT_ONCE = 2**20
"""Poison reports that `poison_counts` holds at a time: 8 MiB, however many are counted."""


class Attack(ABC):
    """Poison of a coalition; parameters are the fields of a frozen dataclass.

    >>> from unpoison.mechanisms import make
    >>> class Hidden(Attack):
    ...     def poison(self, target, count, rng):
    ...         return target.report(np.full(count, target.position("O")))
    >>> Hidden().poison(Target(make("piecewise", 1.0), 0.25), 2, np.random.default_rng(1)).tolist()
    [0.25, 0.25]
    """

    categorical: ClassVar[bool | None] = False
    """Whether the attack needs categories (True), numbers (False), or takes either (None)."""
    by_group: ClassVar[bool] = False
    """Whether attackers choose anew in every group, and so never repeat a report elsewhere."""
    random: ClassVar[bool] = True
    """Whether poison is drawn at random; if not, every seed gives the same reports."""

    @classmethod
    def example(cls, target: Target) -> Attack:
        """An attack of this class that fits `target`, with which every class is tested.

        Override it where the defaults do not fit all mechanisms, such as a range that ends at C.
        """
        return cls()

    @abstractmethod
    def poison(self, target: Target, count: int, rng: np.random.Generator) -> FloatArray:
        """`count` poison reports, each in the target's output domain."""

    def poison_counts(self, target: Target, count: int, rng: np.random.Generator) -> IntArray:
        """How many of `count` poison reports fall into each cell of the summary's grid.

        Reports are drawn one by one and counted. Attacks whose distribution is known override this,
        and draw the counts in a time that does not grow with `count`.
        """
        counts = np.zeros(target.mechanism.cells, dtype=np.int64)
        for first in range(0, count, REPORTS_AT_ONCE):
            reports = self.poison(target, min(REPORTS_AT_ONCE, count - first), rng)
            counts += np.bincount(target.cell_of(reports), minlength=len(counts))
        return counts

    @property
    def active(self) -> bool:
        """Whether anybody attacks at all."""
        return True

    def placement(self, plan: Plan) -> Placement | None:
        """The groups that attackers are in; None if at random in all, like honest users."""
        return None

    def check_plan(self, plan: Plan) -> None:
        """Refuse a plan of the other kind of values; some attacks refuse a plan for its groups."""
        self.check_fits(plan.group_mechanisms[0], plan.categories or ())

    def check_fits(self, mechanism: Mechanism, categories: Sequence[str] = ()) -> None:
        """Refuse a mechanism whose values are of the other kind, and name the attacks that fit."""
        kinds = (None, mechanism.categorical)
        if self.categorical not in kinds:
            fitting = ", ".join(name for name in attacks if attacks[name].categorical in kinds)
            values = "categories" if mechanism.categorical else "numbers"
            raise InvalidParameter("attack", f"must be one on {values}: {fitting}", _name(self))


attacks: Registry[type[Attack]] = Registry("attack")


def _name(attack: Attack) -> str:
    """The registered name in quotes; the class name of an attack that is not registered."""
    kind = type(attack)
    return next((repr(name) for name in attacks if attacks[name] is kind), kind.__name__)
