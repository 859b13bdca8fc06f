"""What attackers know of their group and of the collection; how they write positions and inputs."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from unpoison.attacks.expression import evaluate
from unpoison.errors import InvalidParameter
from unpoison.mechanisms import Mechanism
from unpoison.registry import suggest
from unpoison.types import FloatArray, IntArray

DOMAIN_TOLERANCE = 1e-9
"""How far outside a domain a formula may end, as a share of its width: rounding errors of a few
operations are of the order of 1e-16, and what a user means to be outside is farther."""
MOST_CATEGORIES_SHOWN = 8
"""How many categories an error lists, so that it stays one line."""
Agreement = TypeVar("Agreement")


@dataclass(frozen=True)
class Target:
    """An attacked group as attackers know it: its mechanism, and the true mean O (normalised).

    Of categories they know the names, in the order of their numbers, and how frequent each is
    among the honest users. The plan tells them how many `groups` their tier has, how many larger
    budgets than their own (`rank`; 0 is the largest), and the number of their `group`, as reports
    have it. Those who collude know the whole `collection`.

    >>> from unpoison.mechanisms import make
    >>> target = Target(make("piecewise", 1.0), honest_mean=0.25)
    >>> target.position("O"), target.position("C/2") == target.mechanism.C / 2
    (0.25, True)
    >>> Target(make("square-wave", 1.0), honest_mean=0.25).input_of("O")
    0.25
    """

    mechanism: Mechanism
    honest_mean: float
    categories: tuple[str, ...] = ()
    frequencies: FloatArray | None = None
    rank: int = 0
    groups: int = 1
    group: int = 0
    collection: Collection | None = None

    @property
    def known_collection(self) -> Collection:
        """The collection, which attackers of some kinds cannot do without."""
        if self.collection is None:
            rule = "needs the whole collection: use simulate()"
            raise InvalidParameter("attack", rule, "one group alone")
        return self.collection

    def position(self, formula: str) -> float:
        """A position in the report domain, written in terms of C, O, b, L and R."""
        names = {"O": self.honest_mean, **self.mechanism.landmarks()}
        position = float(self.mechanism.place(np.array(evaluate(formula, names))))
        low, high = self.mechanism.output_low, self.mechanism.output_high
        tolerance = DOMAIN_TOLERANCE * (high - low)
        if not low - tolerance <= position <= high + tolerance:
            raise InvalidParameter("position", "must be in the output domain", repr(formula))
        return min(max(position, low), high)

    def input_of(self, text: str) -> float:
        """A value to perturb: a category's name, or a number on the scale from -1 to 1.

        On this scale -1 is the lowest value and 1 the highest, whatever the mechanism takes; O is
        the honest mean on it.
        """
        mechanism = self.mechanism
        if mechanism.categorical:
            return float(self.category(text))
        width = mechanism.input_high - mechanism.input_low
        mean = 2 * (self.honest_mean - mechanism.input_low) / width - 1
        try:
            value = evaluate(text, {"O": mean})
        except InvalidParameter:
            raise InvalidParameter("input", "must be a formula of O", repr(text)) from None
        if not abs(value) <= 1 + DOMAIN_TOLERANCE:
            raise InvalidParameter("input", "must be in [-1, 1]", repr(text))
        fraction = min(max((value + 1) / 2, 0.0), 1.0)
        return min(mechanism.input_low + fraction * width, mechanism.input_high)

    def category(self, name: str) -> int:
        """The number of a category."""
        if not self.categories:
            raise InvalidParameter("target", "must name its categories", "none")
        check_categories("input", [name], self.categories)
        return self.categories.index(name)

    def position_of(self, reports: FloatArray) -> FloatArray:
        """The positions of reports, in the paper's report units."""
        # A discrete report is the number of its cell, whose middle is half a cell further on.
        return self.mechanism.position(reports + 0.5 if self.mechanism.discrete else reports)

    def cell_of(self, reports: FloatArray) -> IntArray:
        """The cells of the summary's grid that reports fall into."""
        low, high = self.mechanism.output_low, self.mechanism.output_high
        cells = ((reports - low) * (self.mechanism.cells / (high - low))).astype(np.int64)
        # The upper end of the domain belongs to the last cell.
        return np.minimum(cells, self.mechanism.cells - 1)

    def report(self, positions: FloatArray) -> FloatArray:
        """Positions as reports that the collector accepts: whole cells where reports are cells."""
        if not self.mechanism.discrete:
            return positions
        return np.minimum(np.floor(positions), self.mechanism.cells - 1.0)


@dataclass(frozen=True, eq=False)
class Collection:
    """A collection as colluding attackers know it: its groups, honest inputs, and their own share.

    `numbers` says how many honest users have each input (one, if it is None). Attackers of all
    groups share what they work out together: `agreed` computes it once for a collection.

    >>> from unpoison.mechanisms import make
    >>> groups = tuple(Target(make("piecewise", 1 / 2**n), 0.1, rank=n, group=n) for n in (0, 1))
    >>> collection = Collection(groups, np.array([-0.4, 0.6]), np.array([1, 1]), 0.25)
    >>> collection.target(1).mechanism.epsilon, collection.target(1).collection is collection
    (0.5, True)
    """

    groups: tuple[Target, ...]
    inputs: FloatArray
    numbers: IntArray | None = None
    byzantine_fraction: float = 0.0
    _agreed: dict[Hashable, Any] = field(default_factory=dict, repr=False)

    def target(self, group: int) -> Target:
        """The target of attackers in a group, who know this collection."""
        return replace(self.groups[group], collection=self)

    @property
    def shares(self) -> FloatArray:
        """The share of the honest users that each of `inputs` stands for."""
        if self.numbers is None:
            return np.full(len(self.inputs), 1 / len(self.inputs))
        return np.asarray(self.numbers / self.numbers.sum())

    def draw_inputs(self, count: int, rng: np.random.Generator) -> FloatArray:
        """Inputs of users who are like the honest ones: drawn from theirs, with replacement."""
        if self.numbers is None:
            return np.asarray(self.inputs[rng.integers(len(self.inputs), size=count)])
        return rng.choice(self.inputs, count, p=self.shares)

    def agreed(self, attack: Hashable, work_out: Callable[[], Agreement]) -> Agreement:
        """The result that the attackers of an attack work out together, once for all groups."""
        if attack not in self._agreed:
            self._agreed[attack] = work_out()
        agreement: Agreement = self._agreed[attack]
        return agreement


def check_categories(parameter: str, names: Sequence[str], categories: Sequence[str]) -> None:
    """Refuse names that are not among the categories.

    >>> check_categories("names", ["tee"], ["tea", "milk"])
    Traceback (most recent call last):
        ...
    unpoison.errors.InvalidParameter: names must be categories: 'tea', 'milk'; received 'tee', ...
    """
    unknown = [name for name in names if name not in categories]
    if unknown:
        shown = ", ".join(map(repr, categories[:MOST_CATEGORIES_SHOWN]))
        more = ", …" if len(categories) > MOST_CATEGORIES_SHOWN else ""
        rule = f"must be categories: {shown}{more}"
        raise InvalidParameter(parameter, rule, suggest(unknown[0], categories))
