"""The interface between a method's result for one tier and the assembler of Estimates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from unpoison.estimate.distribution import Distribution
from unpoison.estimate.estimate import GroupEstimate, Histogram, TierEstimate


class Analysis(Protocol):
    """One tier of a collection as one method sees it.

    The paper's schemes (`SchemeResult`) and the joint filter (`JointAnalysis`) both have this
    shape, so that tiers are combined, and Estimates assembled, in one place.
    """

    @property
    def groups(self) -> Sequence[int]:
        """The numbers of the tier's groups in the summary."""

    @property
    def honest_users(self) -> float:
        """The number of the tier's users who seem to be honest; tiers are weighted by it."""

    @property
    def byzantine_fraction(self) -> float:
        """γ̂ of the tier."""

    @property
    def converged(self) -> bool:
        """Whether every fit that the answer rests on met its criterion."""

    def tier_estimate(self, weight: float) -> TierEstimate:
        """The tier's mean or frequencies, with the weight that the tier has among others."""

    def group_estimates(self) -> Sequence[GroupEstimate]:
        """The detail of each group."""

    def place(self) -> dict[str, Any]:
        """The place of the poison: `side` of numbers, `categories` of categories."""

    def histogram(self) -> Histogram:
        """ŷ of one group, the one that the method takes it from."""

    def fraction_interval(self) -> tuple[float, float] | None:
        """A 95 % interval of γ̂, where the method has one."""

    def distribution(self) -> Distribution:
        """The honest users' distribution, from the reports that are left without the poison."""
