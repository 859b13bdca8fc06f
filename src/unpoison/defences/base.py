"""Rival defences: anything that turns a Summary into an Estimate without the paper's filters."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from unpoison.errors import InvalidParameter, NotEnoughData
from unpoison.estimate import Byzantine, Estimate
from unpoison.registry import Registry
from unpoison.summary import Summary
from unpoison.types import FloatArray


class Defence(ABC):
    """A defence with its parameters as fields of a frozen dataclass; `mean` is all it must give.

    >>> from unpoison import Plan, perturb, summarise
    >>> class Guess(Defence):
    ...     def mean(self, summary):
    ...         return 0.0
    ...     def describe(self):
    ...         return "The middle of the range, whatever was reported."
    >>> plan = Plan.new(epsilon=0.5, min_epsilon=0.25, low=0, high=10)
    >>> Guess().estimate(summarise(perturb([2.0, 3.0], plan), plan), "guess").mean
    5.0
    """

    @abstractmethod
    def mean(self, summary: Summary) -> float:
        """The estimated mean, normalised."""

    @abstractmethod
    def describe(self) -> str:
        """What the number is, in a sentence without the number."""

    def estimate(self, summary: Summary, name: str) -> Estimate:
        """The mean in natural units, with what the defence does not know left empty."""
        if summary.plan.categorical:
            raise InvalidParameter("method", f"{name} needs a numerical mechanism", "categories")
        if not summary.reports.sum():
            raise NotEnoughData("an estimate needs at least one report; received none")
        return Estimate(
            method=name,
            mean=summary.plan.natural(self.mean(summary)),
            byzantine=Byzantine(0.0, "none"),
            users=summary.total_users,
            reports=int(summary.reports.sum()),
            invalid=summary.invalid,
            fit={"collection": "grouped" if len(summary.plan.all_groups) > 1 else "ungrouped"},
            verdict=self.describe(),
        )


defences: Registry[type[Defence]] = Registry("defence")


def pooled(summary: Summary) -> tuple[FloatArray, FloatArray]:
    """All reports of all groups as (decoded value of the cell, count), in rising order.

    >>> from unpoison import Plan, perturb, summarise
    >>> plan = Plan.new(epsilon=0.5, min_epsilon=0.5, low=0, high=1)
    >>> values, counts = pooled(summarise(perturb([0.2, 0.4, 0.9], plan), plan))
    >>> bool((np.diff(values) > 0).all()), float(counts.sum())
    (True, 3.0)
    """
    values = np.concatenate(
        [part.decode(part.bucket_values(part.grid())) for part in summary.plan.group_mechanisms]
    )
    order = np.argsort(values, kind="stable")
    return values[order], summary.counts.ravel()[order].astype(np.float64)
