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
    """A defence with its parameters as fields of a frozen dataclass; `mean` is all it must give."""

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
    """All reports of all groups as (decoded value of the cell, count), in rising order."""
    values = np.concatenate(
        [part.decode(part.bucket_values(part.grid())) for part in summary.plan.group_mechanisms]
    )
    order = np.argsort(values, kind="stable")
    return values[order], summary.counts.ravel()[order].astype(np.float64)
