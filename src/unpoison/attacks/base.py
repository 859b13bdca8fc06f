"""What an attack is: colluding users' reports, given what attackers know."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields

import numpy as np

from unpoison.attacks.expression import evaluate
from unpoison.errors import InvalidParameter
from unpoison.mechanisms import Mechanism
from unpoison.registry import Registry
from unpoison.types import FloatArray

DOMAIN_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Target:
    """What attackers know of their group: the mechanism, and the true mean O (normalised).

    >>> from unpoison.mechanisms import make
    >>> target = Target(make("piecewise", 1.0), honest_mean=0.25)
    >>> target.position("O"), target.position("C/2") == target.mechanism.C / 2
    (0.25, True)
    """

    mechanism: Mechanism
    honest_mean: float

    def position(self, formula: str) -> float:
        """A position in the report domain, written in terms of C, O, b, L and R."""
        names = {"O": self.honest_mean, **self.mechanism.landmarks()}
        place = float(self.mechanism.place(np.array(evaluate(formula, names))))
        low, high = self.mechanism.output_low, self.mechanism.output_high
        slack = DOMAIN_TOLERANCE * (high - low)
        if not low - slack <= place <= high + slack:
            raise InvalidParameter("position", "must be in the output domain", repr(formula))
        return min(max(place, low), high)

    def position_of(self, reports: FloatArray) -> FloatArray:
        """Where reports stand, in the paper's report units."""
        return self.mechanism.position(reports + 0.5 if self.mechanism.discrete else reports)

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

    @abstractmethod
    def poison(self, target: Target, count: int, rng: np.random.Generator) -> FloatArray:
        """As many poison reports as asked, each in the target's output domain."""

    @property
    def active(self) -> bool:
        """Whether anybody attacks at all."""
        return True


attacks: Registry[type[Attack]] = Registry("attack")


def parse_attack(text: str | Attack) -> Attack:
    """An attack from its command-line form: a name, then parameters in order or by name.

    >>> parse_attack("uniform:3C/4,C")
    Uniform(low='3C/4', high='C')
    >>> parse_attack("evasion:share=0.3")
    Evasion(share=0.3, at='-C/2', low='C/2', high='C')
    """
    if isinstance(text, Attack):
        return text
    name, _, rest = text.partition(":")
    kind = attacks[name.strip()]
    known = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    given: dict[str, str | float] = {}
    for place, part in enumerate(rest.split(",") if rest.strip() else []):
        key, equals, value = part.partition("=")
        if not equals:
            key, value = (known[place] if place < len(known) else ""), part
        key, value = key.strip(), value.strip()
        if key not in known or not value or key in given:
            takes = ", ".join(known) or "no parameters"
            raise InvalidParameter("attack", f"{name} takes {takes}, each once", repr(part.strip()))
        given[key] = value
    return _build(kind, given)


def _build(kind: type[Attack], given: dict[str, str | float]) -> Attack:
    """Turn text into numbers where a field is a number."""
    for field in fields(kind):  # type: ignore[arg-type]
        if field.name in given and field.type == "float":
            try:
                given[field.name] = evaluate(str(given[field.name]), {})
            except InvalidParameter:
                raise InvalidParameter(field.name, "must be a number", given[field.name]) from None
    return kind(**given)
