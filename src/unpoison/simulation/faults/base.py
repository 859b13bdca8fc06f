"""The base class of faults: what the broken clients of honest users send."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unpoison.attacks.parsing import parse_written
from unpoison.errors import InvalidParameter
from unpoison.plan import Plan
from unpoison.registry import Registry
from unpoison.types import BoolArray, FloatArray, IntArray


class Fault(ABC):
    """A fault of clients; parameters are the fields of a frozen dataclass.

    >>> class Stuck(Fault):
    ...     def reports(self, plan, group, inputs, rng):
    ...         return np.zeros(len(inputs) * plan.all_groups[group].reports)
    >>> plan = Plan.new(epsilon=0.5, min_epsilon=0.25, low=0, high=1)
    >>> Stuck().accepted_reports(plan, 1, np.array([0.3, 0.4]), np.random.default_rng(1)).tolist()
    [0.0, 0.0, 0.0, 0.0]
    """

    categorical: ClassVar[bool | None] = False
    """Whether the fault needs categories (True), numbers (False), or may have either (None)."""

    @abstractmethod
    def reports(
        self, plan: Plan, group: int, inputs: FloatArray, rng: np.random.Generator
    ) -> FloatArray:
        """Draw all reports of broken clients in a group, from their users' normalised values."""

    def chances(self, plan: Plan, inputs: FloatArray, numbers: IntArray | None) -> FloatArray:
        """The chance, relative to the average, that the client of a user with each input is broken.

        `numbers` says how many users have each input (one, if it is None).
        """
        return np.ones(len(inputs))

    def accepted_reports(
        self, plan: Plan, group: int, inputs: FloatArray, rng: np.random.Generator
    ) -> FloatArray:
        """Draw the reports that a collector accepts: it refuses what is outside of the domain."""
        reports, mechanism = self.reports(plan, group, inputs, rng), plan.group_mechanisms[group]
        highest = mechanism.output_high - (1 if mechanism.discrete else 0)
        return reports[(reports >= mechanism.output_low) & (reports <= highest)]

    def check_fits(self, plan: Plan) -> None:
        """Refuse a plan whose values are of the other kind, and name the faults that fit."""
        kinds = (None, plan.categorical)
        if self.categorical not in kinds:
            fitting = ", ".join(name for name in faults if faults[name].categorical in kinds)
            values = "categories" if plan.categorical else "numbers"
            rule = f"must be one with {values}: {fitting}"
            raise InvalidParameter("fault", rule, type(self).__name__)


faults: Registry[type[Fault]] = Registry("fault")


def parse_fault(text: str | Fault) -> Fault:
    """A fault from its command-line form: a name, then parameters in order or by name.

    >>> parse_fault("rounding:1")
    Rounding(decimals=1)
    """
    return text if isinstance(text, Fault) else parse_written(text, faults)


@dataclass(frozen=True)
class BrokenClients:
    """A fault, and the share of the users whose clients have it.

    >>> plan = Plan.new(epsilon=1.0, low=0, high=1)
    >>> clients = BrokenClients.of(plan, "rounding:1", 0.5)
    >>> clients.chances(plan, np.zeros(2)).tolist()
    [0.5, 0.5]
    """

    fault: Fault
    share: float

    @classmethod
    def of(cls, plan: Plan, fault: str | Fault, share: float) -> BrokenClients:
        """Broken clients, if a plan can have such a share of them."""
        if not 0 <= share <= 1:
            raise InvalidParameter("faulty_fraction", "must be in [0, 1]", share)
        parsed = parse_fault(fault)
        parsed.check_fits(plan)
        return cls(parsed, share)

    def chances(
        self, plan: Plan, inputs: FloatArray, numbers: IntArray | None = None
    ) -> FloatArray:
        """The chance that the client of a user with each input is broken."""
        return np.minimum(self.share * self.fault.chances(plan, inputs, numbers), 1.0)

    def draw(self, plan: Plan, inputs: FloatArray, rng: np.random.Generator) -> BoolArray:
        """Draw for each user whether the client is broken."""
        return rng.random(len(inputs)) < self.chances(plan, inputs)
