"""Rounding in all groups of a tier: the lattices, the way of rounding, and the mechanisms left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from unpoison.filters.client_faults import constants
from unpoison.filters.client_faults.broken_mechanism import BrokenMechanism
from unpoison.filters.client_faults.comparison import honest_fit
from unpoison.filters.client_faults.finding import ClientFault, in_groups, share_of_reports
from unpoison.filters.client_faults.lattices import Lattice, usual_lattices
from unpoison.filters.client_faults.rounding import (
    DIRECTIONS,
    DOWN,
    HALF_UP,
    NEAREST,
    ROUNDING,
    TOWARDS_ZERO,
    UP,
    RoundedGroup,
    RoundingClient,
    beyond_honest,
    find_rounding,
)
from unpoison.filters.joint import Fit, JointCounts
from unpoison.filters.joint import constants as joint_constants
from unpoison.mechanisms import Mechanism
from unpoison.summary import Summary

HOW = {DOWN: ", always down", UP: ", always up", TOWARDS_ZERO: ", towards zero"}
"""The direction of rounding in the words of the verdict; the nearest goes without saying."""


DIRECTION_UNKNOWN = (
    "Whether they are rounded to the nearest multiple, or always down or up, cannot be told: the "
    "number may be off by half a multiple."
)


@dataclass(frozen=True, eq=False)
class RoundedGroups:
    """The groups of a tier whose reports lie on lattices.

    >>> import numpy as np
    >>> from unpoison import Plan, simulate
    >>> plan, rng = Plan.new(epsilon=1.0, min_epsilon=0.5, low=0, high=1), np.random.default_rng(1)
    >>> run = simulate(plan, rng.random(20_000), rng=rng, fault="rounding:1", faulty_fraction=1)
    >>> rounded = RoundedGroups.of(run.summary, [0, 1])
    >>> rounded.faults()[0].sentence
    'Reports are rounded to multiples of 0.1: this is a fault of clients, not an attack.'
    """

    summary: Summary
    tier: tuple[int, ...]
    groups: tuple[RoundedGroup, ...]

    @classmethod
    def of(cls, summary: Summary, tier: Sequence[int]) -> RoundedGroups:
        """Test all lattices in all groups; none for categories, which have no lattice."""
        if summary.plan.categorical:
            return cls(summary, tuple(tier), ())
        lattices = {
            group: list(usual_lattices(summary.plan.group_mechanisms[group]))
            for group in tier
            if summary.counts[group].any()
        }
        level = constants.ROUNDING_LEVEL / sum(len(tried) for tried in lattices.values())
        candidates = [
            find_rounding(group, summary.counts[group], tried, level)
            for group, tried in lattices.items()
        ]
        spacings = [rounded.lattice.spacing for rounded in candidates if rounded]
        if not spacings:
            return cls(summary, tuple(tier), ())
        common = [
            _with_spacing(summary, group, rounded, max(spacings), level)
            for group, rounded in zip(lattices, candidates, strict=True)
        ]
        return cls(summary, tuple(tier), tuple(rounded for rounded in common if rounded))

    def mechanisms(self, direction: str = NEAREST) -> list[Mechanism]:
        """The mechanisms of all groups of the plan, with the rounding of these."""
        parts = list(self.summary.plan.group_mechanisms)
        for rounded in self.groups:
            healthy = parts[rounded.group]
            client = RoundingClient(healthy, rounded.lattice.spacing, direction)
            share = min(rounded.share, constants.MOST_BROKEN)
            parts[rounded.group] = BrokenMechanism(healthy, client, share)
        return parts

    @property
    def most_buckets(self) -> int:
        """The most buckets that each hold a lattice point, if nearly all reports are on these."""
        coarse = [
            len(rounded.lattice.points) - 1
            for rounded in self.groups
            if rounded.share > constants.NEARLY_ALL
        ]
        most = max(
            min(coarse, default=joint_constants.MOST_BUCKETS), joint_constants.FEWEST_BUCKETS
        )
        return min(most, joint_constants.MOST_BUCKETS)

    def counts(self, direction: str = NEAREST) -> JointCounts:
        """The tier's counts, with mechanisms that round."""
        mechanisms = self.mechanisms(direction)
        return JointCounts.of(self.summary, self.tier, mechanisms, self.most_buckets)

    def direction(self) -> tuple[str, bool]:
        """The direction of rounding, and whether other plausible directions give the same mean.

        Ways differ at the ends of the report domain, and towards zero in the middle; elsewhere
        they look like other values of users.
        """
        fits: dict[str, tuple[Fit, float]] = {}
        discrete = self.summary.plan.group_mechanisms[self.tier[0]].discrete
        # Where reports are not whole numbers, none is halfway between two multiples.
        for direction in (name for name in DIRECTIONS if discrete or name != HALF_UP):
            counts, honest = honest_fit(self.counts(direction))
            fits[direction] = honest, honest.mean(counts.values)
            error = honest.standard_error(counts.values)
        least = min(honest.deviance for honest, _ in fits.values())
        plausible = [
            name
            for name, (honest, _) in fits.items()
            if honest.deviance - least < joint_constants.CLOSE_SCORE
        ]
        most_usual = plausible[0]
        off = max(abs(fits[name][1] - fits[most_usual][1]) for name in plausible)
        return most_usual, off < error

    def faults(self, direction: str = NEAREST, certain: bool = True) -> list[ClientFault]:
        """One fault for each spacing."""
        spacings = dict.fromkeys(rounded.lattice.spacing for rounded in self.groups)
        return [self._fault(spacing, direction, certain) for spacing in spacings]

    def _fault(self, spacing: float, direction: str, certain: bool) -> ClientFault:
        concerned = [rounded for rounded in self.groups if rounded.lattice.spacing == spacing]
        groups = tuple(rounded.group for rounded in concerned)
        reports = self.summary.reports
        rounded_reports = sum(rounded.share * reports[rounded.group] for rounded in concerned)
        share = float(rounded_reports / reports[list(groups)].sum())
        subject = share_of_reports(share) + in_groups(groups, len(self.tier))
        how = HOW.get(direction, "")
        sentence = (
            f"{subject} are rounded to multiples of {spacing:g}{how}: this is a fault of clients, "
            "not an attack."
        )
        detail = {"spacing": spacing, "direction": direction}
        doubt = "" if certain else DIRECTION_UNKNOWN
        return ClientFault(ROUNDING, groups, share, sentence, detail, doubt)


def _with_spacing(
    summary: Summary, group: int, rounded: RoundedGroup | None, spacing: float, level: float
) -> RoundedGroup | None:
    """A group with the spacing that was found in others, as far as its reports are on it as well.

    Clients of all groups are the same. A group whose domain has but two multiples of 1 has all
    reports on multiples of 0.5, too; and few multiples alone are not enough to tell rounding.
    """
    lattice, cell_counts = (
        Lattice(summary.plan.group_mechanisms[group], spacing),
        summary.counts[group],
    )
    share = lattice.rounded_share(cell_counts)
    if rounded is not None:
        alike = share >= constants.SAME_SHARE * rounded.share
        return replace(rounded, lattice=lattice, share=share) if alike else rounded
    is_rounded = len(lattice.points) > 1 and beyond_honest(lattice, cell_counts, level)
    return RoundedGroup(group, lattice, share) if is_rounded else None
