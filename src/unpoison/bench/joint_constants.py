"""What each constant of the joint filter does: a fixed grid at half and at twice its value."""

from __future__ import annotations

import ast
import inspect
import math
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, ClassVar, get_args, get_type_hints

from unpoison.bench.joint_grid import Measured, Outcome, grid
from unpoison.bench.result import Row, benchmarks
from unpoison.estimate.significance import NOBODY_ATTACKS_LEVEL
from unpoison.filters.joint import constants
from unpoison.filters.joint.constants import Below, Origin

Value = float | tuple[float, ...]


@dataclass(frozen=True)
class Constant:
    """A constant of the joint filter: its present value, origin and meaning."""

    HEADS: ClassVar[tuple[str, ...]] = ("constant", "value", "origin", "what it is")

    name: str
    value: Value
    origin: Origin
    limit: float
    meaning: str

    def scaled(self, factor: float) -> Value:
        """The value times a factor; whole numbers stay whole, and fractions under their limit."""
        if isinstance(self.value, tuple):
            return tuple(self._scaled(part, factor) for part in self.value)
        return self._scaled(self.value, factor)

    def cells(self) -> list[str]:
        """The texts of a table's row, one for each head."""
        return [f"`{self.name}`", _text(self.value), self.origin.value, self.meaning]

    def to_dict(self) -> dict[str, Any]:
        """The fields, as JSON has them."""
        return {"constant": self.name, "value": self.value, "origin": self.origin.value}

    def _scaled(self, value: float, factor: float) -> float:
        if isinstance(value, int):
            return max(round(value * factor), 1)
        if value * factor < self.limit:
            return value * factor
        # Twice the value has no meaning: half the distance to the limit stands for it.
        return (value + self.limit) / 2


@dataclass(frozen=True)
class OriginCount:
    """The number of constants that have an origin."""

    HEADS: ClassVar[tuple[str, ...]] = ("origin", "constants")

    origin: str
    constants: int

    def cells(self) -> list[str]:
        """The texts of a table's row, one for each head."""
        return [self.origin, str(self.constants)]

    def to_dict(self) -> dict[str, Any]:
        """The fields, as JSON has them."""
        return asdict(self)


@dataclass(frozen=True)
class Effect:
    """Outcomes with a constant at another value, against those at the present values."""

    HEADS: ClassVar[tuple[str, ...]] = (
        "constant",
        "tried",
        "median mse/floor",
        "worst mse/floor",
        "intervals that cover",
        "interval width",
        f"p < {NOBODY_ATTACKS_LEVEL:g}, nobody",
        "in doubt",
        "seconds",
    )

    constant: str
    tried: Value
    present: Outcome
    outcome: Outcome

    def cells(self) -> list[str]:
        """The texts of a table's row, one for each head."""
        return [f"`{self.constant}`", _text(self.tried), *_against(self.present, self.outcome)]

    def to_dict(self) -> dict[str, Any]:
        """The fields, as JSON has them."""
        return asdict(self)


@dataclass(frozen=True)
class Present:
    """Outcomes at the present values, which effects are compared with."""

    HEADS: ClassVar[tuple[str, ...]] = Effect.HEADS

    outcome: Outcome

    def cells(self) -> list[str]:
        """The texts of a table's row, one for each head."""
        return ["none", "present values", *_absolute(self.outcome)]

    def to_dict(self) -> dict[str, Any]:
        """The fields, as JSON has them."""
        return {"constant": None, "outcome": asdict(self.outcome)}


@benchmarks.register("joint-constants")
def joint_constants() -> list[Row]:
    """Run the grid at the present values, then with each constant halved and doubled."""
    every = joint_filter_constants()
    origins = Counter(constant.origin.value for constant in every)
    counts = [OriginCount(origin, number) for origin, number in origins.items()]
    # The first estimate of a process pays for imports and caches, and is not to be timed.
    Measured.of(grid()[0])
    present = [Measured.of(run) for run in grid()]
    effects = [_effect(constant, factor, present) for constant in every for factor in (0.5, 2.0)]
    totals = [*counts, OriginCount("all", len(every))]
    return [*totals, *every, Present(Outcome.of(present)), *effects]


def _effect(constant: Constant, factor: float, present: list[Measured]) -> Effect:
    """Collections whose estimate did not read the constant keep that estimate."""
    tried = constant.scaled(factor)
    with replaced(constant.name, tried):
        again = [
            Measured.of(case.run) if constant.name in case.constants_read else case
            for case in present
        ]
    return Effect(constant.name, tried, Outcome.of(present), Outcome.of(again))


def joint_filter_constants() -> list[Constant]:
    """The constants of `filters/joint/constants.py`, in its order."""
    meanings = _first_sentences(inspect.getsource(constants))
    hints = get_type_hints(constants, include_extras=True)
    return [_constant(name, get_args(hints[name])[1:], meanings[name]) for name in hints]


def _constant(name: str, notes: tuple[object, ...], meaning: str) -> Constant:
    (origin,) = (note for note in notes if isinstance(note, Origin))
    limit = min((note.limit for note in notes if isinstance(note, Below)), default=math.inf)
    return Constant(name, getattr(constants, name), origin, limit, meaning)


def _first_sentences(source: str) -> dict[str, str]:
    """The first sentence of the docstring below each annotated assignment."""
    sentences = {}
    body = ast.parse(source).body
    for statement, below in pairwise(body):
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            text = " ".join(ast.literal_eval(ast.unparse(below)).split())
            sentences[statement.target.id] = text.split(". ")[0].rstrip(".")
    return sentences


@contextmanager
def replaced(name: str, value: Value) -> Iterator[None]:
    """Set one constant to another value until the end of a `with` statement."""
    before = getattr(constants, name)
    setattr(constants, name, value)
    try:
        yield
    finally:
        setattr(constants, name, before)


def _absolute(outcome: Outcome) -> list[str]:
    """The row of outcomes at the present values, each in its own unit."""
    return [
        f"{outcome.median_error:.3g}",
        f"{outcome.worst_error:.3g}",
        f"{outcome.covered:.3f}",
        f"{outcome.width:.3g}",
        f"{outcome.false_alarms:.3f}",
        f"{outcome.doubts:.3f}",
        f"{outcome.seconds:.2f} s",
    ]


def _against(present: Outcome, outcome: Outcome) -> list[str]:
    """Errors, widths, shifts and times as ratios; shares of collections as differences."""
    return [
        _ratio(outcome.median_error, present.median_error),
        _ratio(outcome.worst_error, present.worst_error),
        _difference(outcome.covered, present.covered),
        _ratio(outcome.width, present.width),
        _difference(outcome.false_alarms, present.false_alarms),
        _difference(outcome.doubts, present.doubts),
        _ratio(outcome.seconds, present.seconds),
    ]


def _ratio(value: float, present: float) -> str:
    return f"×{value / present:.3g}"


def _difference(value: float, present: float) -> str:
    return f"{value - present:+.3f}"


def _text(value: Value) -> str:
    if isinstance(value, tuple):
        return ", ".join(f"{part:g}" for part in value)
    return f"{value:g}"
