"""The base class of mechanisms, and the registry that finds them by name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from unpoison.errors import InvalidParameter
from unpoison.mechanisms.randomness import Generator
from unpoison.mechanisms.transition import Transition
from unpoison.registry import Registry
from unpoison.types import FloatArray, IntArray

MIN_EPSILON = 1e-4
"""The smallest ε: with it PM needs 10^8 users to tell a mean of −1 from one of 1."""
MAX_EPSILON = 16.0
"""Above this, nearly every report shows its value, and integer weights come near 2^53."""
DEFAULT_CELLS = 2**14
"""Finer than √N buckets of 2·10^8 reports, so snapping bucket edges to cells costs nothing."""
MAX_CELLS = 2**20
"""Counts of ten groups then take 80 MB."""
KINKS_OF_A_BUCKET = 16
"""Inputs for each output bucket between which an unknown mechanism is taken to be linear."""
PERTURB_BLOCK = 2**15
"""Values a block: three arrays of it (768 KiB) stay in the second-level cache."""


def check_epsilon(name: str, epsilon: float) -> None:
    """Refuse budgets that are not positive, or too small or large to be of use.

    >>> check_epsilon("min_epsilon", 0.0)
    Traceback (most recent call last):
        ...
    unpoison.errors.InvalidParameter: min_epsilon must be in [0.0001, 16]; received 0.0
    """
    if not MIN_EPSILON <= epsilon <= MAX_EPSILON:
        rule = f"must be in [{MIN_EPSILON:g}, {MAX_EPSILON:g}]"
        raise InvalidParameter(name, rule, epsilon)


class Mechanism(ABC):
    """An ε-LDP mechanism at one budget.

    Inputs live in `[input_low, input_high]`; reports in `[output_low, output_high]`, which is cut
    into `cells` equal cells: the grid that summaries count on. Where `discrete`, a report is the
    number of its cell, and so stands half a cell left of the cell's middle.

    >>> from unpoison.mechanisms import make
    >>> values, rng = np.full(10_000, 0.5), np.random.default_rng(1)
    >>> family = [make(name, 4.0) for name in ("piecewise", "square-wave", "piecewise-integer")]
    >>> decoded = [one.decode(one.perturb(values, rng)).mean() for one in family]
    >>> np.allclose(decoded, 0.5, atol=0.05)
    True
    """

    discrete: ClassVar[bool] = False
    categorical: ClassVar[bool] = False
    default_cells: ClassVar[int] = DEFAULT_CELLS
    for_devices: ClassVar[bool] = False
    """Whether ε holds bit for bit, as a real device needs; other mechanisms are for simulation."""
    device_twin: ClassVar[str | None] = None
    """The name of the mechanism with the same distribution that devices use in its place."""
    unbiased: bool = False
    """Whether a report's mean is the input; the floor is then that of linear estimators."""
    outer_range: tuple[str, ...] = ()
    """The ends of the outer part of the report domain, where the paper puts its poison."""

    epsilon: float
    cells: int
    input_low: float
    input_high: float
    output_low: float
    output_high: float

    def __init__(self, epsilon: float, cells: int | None = None) -> None:
        check_epsilon("epsilon", epsilon)
        self.epsilon = epsilon
        self.cells = self.default_cells if cells is None else cells
        if not 2 <= self.cells <= MAX_CELLS:
            raise InvalidParameter("cells", f"must be from 2 to {MAX_CELLS}", self.cells)

    def perturb(self, values: FloatArray, rng: Generator) -> FloatArray:
        """One report for each value; any split of `values` into calls draws the same reports.

        Block by block, while values, noise and reports fit in the processor's cache.
        """
        values = np.ascontiguousarray(values, dtype=np.float64)
        self.check_inputs(values)
        reports = np.empty_like(values)
        for first in range(0, len(values), PERTURB_BLOCK):
            block = slice(first, first + PERTURB_BLOCK)
            self._perturb_block(values[block], rng, reports[block])
        return reports

    @abstractmethod
    def _perturb_block(self, values: FloatArray, rng: Generator, out: FloatArray) -> None:
        """Draw a report for each value into `out`, from the generator's one stream."""

    @abstractmethod
    def decode(self, reports: FloatArray) -> FloatArray:
        """Unbiased estimates of the inputs; affine in the report."""

    @abstractmethod
    def variance(self, values: FloatArray) -> FloatArray:
        """Variance of the decoded report, given each value."""

    @abstractmethod
    def transition(self, input_edges: FloatArray, output_edges: FloatArray) -> Transition:
        """Probability of each output bucket, averaged over each input bucket."""

    @abstractmethod
    def cell_probabilities(self, values: FloatArray, output_edges: FloatArray) -> FloatArray:
        """Probability of each output bucket for single inputs: one row a value."""

    def kinks(self, output_edges: FloatArray) -> FloatArray:
        """Inputs between which the probability of every output bucket is linear in the input.

        They include both ends. Whatever inputs users have, reports are distributed as if all users
        had some of these. Of a mechanism that does not know them, so many that it is nearly so.
        """
        inputs = KINKS_OF_A_BUCKET * (len(output_edges) - 1) + 1
        return np.linspace(self.input_low, self.input_high, inputs)

    @abstractmethod
    def draw_counts(
        self, values: FloatArray, numbers: IntArray, rng: np.random.Generator
    ) -> IntArray:
        """Draw the counts of cells if `numbers[i]` reports are made of `values[i]`.

        Drawn directly, in a time that depends on how many values and cells there are, not on how
        many reports; distributed as if every report had been drawn.
        """

    @property
    @abstractmethod
    def worst_variance(self) -> float:
        """The largest variance of a decoded report over all inputs."""

    def landmarks(self) -> dict[str, float]:
        """Names that ranges of poison are written in, such as C, with their values."""
        return {"L": self.output_low, "R": self.output_high}

    def place(self, position: FloatArray) -> FloatArray:
        """Positions in the paper's report units, converted to this mechanism's report domain."""
        return position

    def position(self, place: FloatArray) -> FloatArray:
        """The inverse of `place`: positions in the report domain, in the paper's units."""
        return place

    def input_bucket_count(self, output_buckets: int) -> int:
        """The paper's d for a given d'."""
        raise InvalidParameter("mechanism", "must be numerical to have input buckets", self.name)

    @property
    def name(self) -> str:
        """The name under which plans know this mechanism."""
        return next(name for name in mechanisms if mechanisms[name] is type(self))

    def grid(self) -> FloatArray:
        """The edges of the cells that summaries count on."""
        return np.linspace(self.output_low, self.output_high, self.cells + 1)

    def bucket_values(self, edges: FloatArray) -> FloatArray:
        """The report that represents each bucket: its middle."""
        middles: FloatArray = (edges[1:] + edges[:-1]) / 2
        return middles - 0.5 if self.discrete else middles

    def decoded_cells(self) -> FloatArray:
        """The decoded value of the report that stands for each cell of the grid."""
        return self.decode(self.bucket_values(self.grid()))

    def check_inputs(self, values: FloatArray) -> None:
        """Refuse inputs outside the domain, without repeating them."""
        outside = ~((values >= self.input_low) & (values <= self.input_high))
        if outside.any():
            domain = f"[{self.input_low:g}, {self.input_high:g}]"
            first = int(outside.argmax())
            received = f"{int(outside.sum())} outside it (the first at index {first})"
            raise InvalidParameter("values", f"must be in {domain}", received)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(epsilon={self.epsilon:g}, cells={self.cells})"


mechanisms: Registry[type[Mechanism]] = Registry("mechanism")


def make(name: str, epsilon: float, cells: int | None = None) -> Mechanism:
    """The mechanism of that name at that budget.

    >>> make("piecewise", 1.0)
    PiecewiseMechanism(epsilon=1, cells=16384)
    """
    return mechanisms[name](epsilon, cells)
