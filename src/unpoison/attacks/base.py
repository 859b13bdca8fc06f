"""What an attack is: colluding users' reports, given what attackers know."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import ClassVar

import numpy as np

from unpoison.attacks.expression import evaluate
from unpoison.errors import InvalidParameter
from unpoison.mechanisms import Mechanism
from unpoison.registry import Registry, suggest
from unpoison.types import FloatArray, IntArray

DOMAIN_TOLERANCE = 1e-9
REPORTS_AT_ONCE = 2**20
VARIADIC = "tuple[str, ...]"
"""The type of a parameter that takes all that is left of an attack's written form."""
Parameter = str | float | tuple[str, ...]
SHOWN = 8
"""How many categories an error lists."""


@dataclass(frozen=True)
class Target:
    """What attackers know of their group: the mechanism, and the true mean O (normalised).

    Of categories they know the names, in the order of their numbers, and how frequent each is
    among the honest users. The plan tells them how many `groups` their tier has, and how many
    larger budgets than their own (`rank`; 0 is the largest).

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

    def position(self, formula: str) -> float:
        """A position in the report domain, written in terms of C, O, b, L and R."""
        names = {"O": self.honest_mean, **self.mechanism.landmarks()}
        place = float(self.mechanism.place(np.array(evaluate(formula, names))))
        low, high = self.mechanism.output_low, self.mechanism.output_high
        slack = DOMAIN_TOLERANCE * (high - low)
        if not low - slack <= place <= high + slack:
            raise InvalidParameter("position", "must be in the output domain", repr(formula))
        return min(max(place, low), high)

    def input_of(self, written: str) -> float:
        """A value to perturb: a category's name, or a number on the scale from -1 to 1.

        On this scale -1 is the lowest value and 1 the highest, whatever the mechanism takes; O is
        the honest mean on it.
        """
        part = self.mechanism
        if part.categorical:
            return float(self.category(written))
        width = part.input_high - part.input_low
        mean = 2 * (self.honest_mean - part.input_low) / width - 1
        try:
            value = evaluate(written, {"O": mean})
        except InvalidParameter:
            raise InvalidParameter("input", "must be a formula of O", repr(written)) from None
        if not abs(value) <= 1 + DOMAIN_TOLERANCE:
            raise InvalidParameter("input", "must be in [-1, 1]", repr(written))
        share = min(max((value + 1) / 2, 0.0), 1.0)
        return min(part.input_low + share * width, part.input_high)

    def category(self, name: str) -> int:
        """The number of a category."""
        if not self.categories:
            raise InvalidParameter("target", "must name its categories", "none")
        check_categories("input", [name], self.categories)
        return self.categories.index(name)

    def position_of(self, reports: FloatArray) -> FloatArray:
        """Where reports stand, in the paper's report units."""
        return self.mechanism.position(reports + 0.5 if self.mechanism.discrete else reports)

    def cell_of(self, reports: FloatArray) -> IntArray:
        """The cells of the summary's grid that reports fall into."""
        low, high = self.mechanism.output_low, self.mechanism.output_high
        cells = ((reports - low) * (self.mechanism.cells / (high - low))).astype(np.int64)
        return np.minimum(cells, self.mechanism.cells - 1)

    def report(self, positions: FloatArray) -> FloatArray:
        """Positions as reports that the collector accepts: whole cells where reports are cells."""
        if not self.mechanism.discrete:
            return positions
        return np.minimum(np.floor(positions), self.mechanism.cells - 1.0)


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

    @abstractmethod
    def poison(self, target: Target, count: int, rng: np.random.Generator) -> FloatArray:
        """As many poison reports as asked, each in the target's output domain."""

    def poison_counts(self, target: Target, count: int, rng: np.random.Generator) -> IntArray:
        """How many of `count` poison reports fall into each cell of the summary's grid.

        Drawn report by report, unless an attack knows better.
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

    def check_fits(self, mechanism: Mechanism, categories: Sequence[str] = ()) -> None:
        """Refuse a mechanism whose values are of the other kind, and name the attacks that fit."""
        kinds = (None, mechanism.categorical)
        if self.categorical not in kinds:
            fitting = ", ".join(name for name in attacks if attacks[name].categorical in kinds)
            values = "categories" if mechanism.categorical else "numbers"
            raise InvalidParameter("attack", f"must be one on {values}: {fitting}", _name(self))


attacks: Registry[type[Attack]] = Registry("attack")


def check_categories(parameter: str, names: Sequence[str], categories: Sequence[str]) -> None:
    """Refuse names that are not among the categories.

    >>> check_categories("names", ["tee"], ["tea", "milk"])
    Traceback (most recent call last):
        ...
    unpoison.errors.InvalidParameter: names must be categories: 'tea', 'milk'; received 'tee', ...
    """
    unknown = [name for name in names if name not in categories]
    if unknown:
        shown = ", ".join(map(repr, categories[:SHOWN]))
        rule = f"must be categories: {shown}{', …' if len(categories) > SHOWN else ''}"
        raise InvalidParameter(parameter, rule, suggest(unknown[0], categories))


def _name(attack: Attack) -> str:
    kind = type(attack)
    return next((repr(name) for name in attacks if attacks[name] is kind), kind.__name__)


def parse_attack(text: str | Attack) -> Attack:
    """An attack from its command-line form: a name, then parameters in order or by name.

    >>> parse_attack("uniform:3C/4,C")
    Uniform(low='3C/4', high='C')
    >>> parse_attack("evasion:share=0.3")
    Evasion(share=0.3, at='-C/2', low='C/2', high='C')
    >>> parse_attack("targets:tea, herbal tea")
    Targets(names=('tea', 'herbal tea'))
    """
    if isinstance(text, Attack):
        return text
    name, _, rest = text.partition(":")
    name = name.strip()
    kind = attacks[name]
    known = {field.name: str(field.type) for field in fields(kind)}  # type: ignore[arg-type]
    return _build(kind, known, _given(name, rest, known))


def _given(name: str, rest: str, known: dict[str, str]) -> dict[str, list[str]]:
    """The texts for each parameter: one, or any number where the parameter is variadic."""
    given: dict[str, list[str]] = {}
    for place, part in enumerate(rest.split(",") if rest.strip() else []):
        key, value, named = _assigned(part, place, known, given)
        more = known.get(key) == VARIADIC and not named
        if key not in known or not value or (key in given and not more):
            raise InvalidParameter("attack", f"{name} takes {_takes(known)}", repr(part.strip()))
        given.setdefault(key, []).append(value)
    return given


def _assigned(
    part: str, place: int, known: dict[str, str], given: dict[str, list[str]]
) -> tuple[str, str, bool]:
    """A part's parameter, its text, and whether the part names it; "" for no parameter.

    Once a variadic parameter is reached, it gets every part that does not name another, so that
    the texts may have equals signs of their own.
    """
    key, equals, value = (each.strip() for each in part.partition("="))
    if equals and key in known:
        return key, value, True
    names = list(known)
    variadic = next((each for each in names if known[each] == VARIADIC), None)
    if variadic and (variadic in given or place >= names.index(variadic)):
        key = variadic
    else:
        key = names[place] if place < len(names) and not equals else ""
    return key, part.strip(), False


def _takes(known: dict[str, str]) -> str:
    several = {VARIADIC: " (one or more)"}
    names = [name + several.get(kind, "") for name, kind in known.items()]
    return f"{', '.join(names) or 'no parameters'}, each once"


def _build(kind: type[Attack], known: dict[str, str], given: dict[str, list[str]]) -> Attack:
    """Turn texts into numbers where a parameter is a number."""
    parameters: dict[str, Parameter] = {}
    for name, texts in given.items():
        if known[name] == VARIADIC:
            parameters[name] = tuple(texts)
        elif known[name] in ("float", "int"):
            parameters[name] = _number(name, texts[0], whole=known[name] == "int")
        else:
            parameters[name] = texts[0]
    return kind(**parameters)


def _number(name: str, text: str, *, whole: bool) -> float:
    rule = "must be a whole number" if whole else "must be a number"
    try:
        number = evaluate(text, {})
    except InvalidParameter:
        raise InvalidParameter(name, rule, text) from None
    if not whole:
        return number
    if not number.is_integer():
        raise InvalidParameter(name, rule, text)
    return int(number)
