"""Clients that round reports: reports on the points of a lattice, which honest noise never prefers.

docs/method.md, Broken clients.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from unpoison.filters.client_faults import constants
from unpoison.filters.client_faults.broken_mechanism import BrokenClient
from unpoison.filters.client_faults.lattices import Lattice
from unpoison.types import FloatArray, IntArray

ROUNDING = "rounding"
NEAREST, HALF_UP = "nearest", "nearest, half up"
DOWN, UP, TOWARDS_ZERO = "down", "up", "towards zero"
DIRECTIONS = (NEAREST, HALF_UP, DOWN, UP, TOWARDS_ZERO)
"""The directions in which clients may round; the first is the most usual."""
SENT_DECIMALS = 12
"""Decimals of a multiple of a spacing that are not due to rounding errors of the product."""


@dataclass(frozen=True, eq=False)
class RoundingClient(BrokenClient):
    """Reports are rounded to multiples of a spacing.

    >>> from unpoison.mechanisms import make
    >>> client = RoundingClient(make("piecewise", 1.0), spacing=1.0)
    >>> client.origins(np.array([0.25, 1.0, 1.75])).tolist()
    [0.5, 0.5, 1.5]
    """

    spacing: float
    direction: str = NEAREST

    def origins(self, edges: FloatArray) -> FloatArray:
        """The least report that is rounded to the first multiple from each edge on."""
        number = self._first_multiple(edges)
        point, below = self.spacing * number, self.spacing * (number - 1)
        # Cell n goes from n to n + 1, and a report in it is n.
        next_report = 1.0 if self.mechanism.discrete else 0.0
        middle = (point + below) / 2
        if self.direction == TOWARDS_ZERO:
            return np.where(point > 0, point, below + next_report)
        # Halfway, the even multiple is nearest, or the upper one: that matters to whole numbers.
        halfway_below = (middle == np.floor(middle)) & (number % 2 == 1)
        nearest = np.ceil(middle) + halfway_below if self.mechanism.discrete else middle
        half_up = np.ceil(middle) if self.mechanism.discrete else middle
        return {NEAREST: nearest, HALF_UP: half_up, DOWN: point, UP: below + next_report}[
            self.direction
        ]

    def _first_multiple(self, edges: FloatArray) -> FloatArray:
        """Which multiple is the first from each edge on, as cells count it.

        A multiple at the edge of a cell may be counted on either side, as floats round.
        """
        mechanism = self.mechanism
        per_unit = mechanism.cells / (mechanism.output_high - mechanism.output_low)
        number = np.round(edges / self.spacing)
        # With few decimals, as the client sends it.
        point = np.round(self.spacing * number, SENT_DECIMALS)
        below = np.floor((point - mechanism.output_low) * per_unit) < np.round(
            (edges - mechanism.output_low) * per_unit
        )
        first: FloatArray = np.where(below, number + 1, number)
        return first


@dataclass(frozen=True, eq=False)
class RoundedGroup:
    """The lattice that reports of one group lie on, and the share of those that were rounded.

    >>> from unpoison.mechanisms import make
    >>> RoundedGroup(3, Lattice(make("piecewise", 1.0), 0.1), 0.25).group
    3
    """

    group: int
    lattice: Lattice
    share: float


def find_rounding(
    group: int, cell_counts: IntArray, lattices: Sequence[Lattice], level: float
) -> RoundedGroup | None:
    """The lattice of a group's reports, if more lie on it than healthy clients may send there.

    >>> from unpoison import Plan, simulate
    >>> from unpoison.filters.client_faults.lattices import usual_lattices
    >>> plan, rng = Plan.new(epsilon=1.0, low=0, high=1), np.random.default_rng(1)
    >>> run = simulate(plan, rng.random(5000), rng=rng, fault="rounding:1", faulty_fraction=0.5)
    >>> lattices = list(usual_lattices(plan.group_mechanisms[0]))
    >>> rounded = find_rounding(0, run.summary.counts[0], lattices, 1e-6)
    >>> rounded.lattice.spacing, bool(abs(rounded.share - 0.5) < 0.05)
    (0.1, True)
    """
    significant = [lattice for lattice in lattices if beyond_honest(lattice, cell_counts, level)]
    if not significant:
        return None
    shares = [lattice.rounded_share(cell_counts) for lattice in significant]
    likely = constants.SAME_SHARE * max(shares)
    # The coarsest comes first.
    best = next(number for number, share in enumerate(shares) if share >= likely)
    lattice, share = significant[best], shares[best]
    by_majority = share > constants.MAJORITY and _besides_fullest(lattice, share, cell_counts)
    if by_majority or _everywhere(lattice, share, cell_counts):
        return RoundedGroup(group, lattice, share)
    return None


def beyond_honest(lattice: Lattice, cell_counts: IntArray, level: float) -> bool:
    """Whether more reports are on the lattice than a healthy client's, whatever users have.

    Reports are independent given the users' values, each with at most that chance.

    >>> from unpoison.mechanisms import make
    >>> lattice = Lattice(make("piecewise", 1.0), 0.5)
    >>> beyond_honest(lattice, np.full(lattice.mechanism.cells, 10), 1e-6)
    False
    """
    on_lattice, reports = int(cell_counts[lattice.cells].sum()), int(cell_counts.sum())
    # The chance of so many or more, if the number is binomial.
    others = reports - on_lattice
    chance = scipy.special.betainc(on_lattice, others + 1, lattice.most_honest)
    return on_lattice > 0 and bool(chance < level)


def _besides_fullest(lattice: Lattice, share: float, cell_counts: IntArray) -> bool:
    """Whether reports are on the lattice also without its two fullest points.

    Clients that clip reports have as many on the two ends of a range, and the others between.
    """
    on_lattice = np.sort(cell_counts[lattice.cells])[:-2].sum()
    reports = cell_counts.sum() - np.sort(cell_counts[lattice.cells])[-2:].sum()
    rounded = on_lattice - lattice.cell_share * reports
    return bool(rounded >= share / 2 * (1 - lattice.cell_share) * reports)


def _everywhere(lattice: Lattice, share: float, cell_counts: IntArray) -> bool:
    """Whether the lattice shows in most parts of the domain that have reports enough to show it."""
    blocks = constants.LATTICE_BLOCKS
    if len(lattice.points) < blocks:
        return False
    cells = lattice.mechanism.cells
    block_of_cell = np.arange(cells) * blocks // cells
    held = np.bincount(block_of_cell, weights=cell_counts, minlength=blocks)
    on_lattice = np.bincount(
        block_of_cell[lattice.cells], weights=cell_counts[lattice.cells], minlength=blocks
    )
    cell_share = np.bincount(block_of_cell[lattice.cells], minlength=blocks) * blocks / cells
    enough = held * share >= constants.ENOUGH_IN_BLOCK
    rounded = (on_lattice - cell_share * held) > share / 2 * (1 - cell_share) * held
    shown = int((enough & rounded).sum())
    return bool(shown >= max(constants.BLOCKS_ON_LATTICE * enough.sum(), blocks // 2))
