"""What the user of a device allows, whatever a collector asks for."""

from __future__ import annotations

import math
import sys
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from numbers import Real

from unpoison.errors import InvalidParameter
from unpoison.mechanisms.exact import exact
from unpoison.plan.form import category_names, number
from unpoison.plan.lattice import step_count

MIN_CATEGORIES = 2
"""One category has nothing to report; no plan has fewer than two."""
MAX_QUESTION = 200
"""The most characters of a question's name: one that people read, not a document."""


@dataclass(frozen=True)
class Policy:
    """The most that a device spends, and the values that it is ready to be asked for.

    A plan must have exactly this range and step, or exactly these categories. That is checked
    without a look at the value. A number outside the range counts as the nearest end, and one
    between two steps as the nearest value: a device that stayed silent because its value does not
    fit would tell the collector something about it.

    >>> policy = Policy(low=0, high=10)
    >>> policy.max_epsilon, policy.lifetime_epsilon
    (1.0, 8.0)
    >>> policy.encode(7), policy.encode(12.5)
    (7.0, 10.0)
    >>> Policy(categories=("tea", "coffee")).encode("coffee")
    1.0
    """

    low: float | None = None
    high: float | None = None
    categories: tuple[str, ...] | None = None
    max_epsilon: float = 1.0
    """The most that one campaign may spend: what a plan has by default."""
    lifetime_epsilon: float = 8.0
    """The most that all campaigns together may spend, since budgets of one user add up: eight
    campaigns at the default ε."""
    step: float | None = None
    """The distance between the values that may be asked for; None for any number of the range."""
    collector_epsilon: float | None = None
    """The most that all campaigns of one collector may spend together; None for half of
    `lifetime_epsilon`, or `max_epsilon` if that is more: one collector must not use up what all of
    them share, and one campaign must be possible."""
    question: str | None = None
    """The application's name for what is asked, such as "year of birth"; it stays on the device."""
    reuse: bool = False
    """Whether a collector that asks this question again gets the cells that it has had before, at
    no cost, where its ticket asks for the same draw. They are cells of the value at that time: for
    values that do not change."""

    def __post_init__(self) -> None:
        budgets = ["max_epsilon", "lifetime_epsilon"]
        if self.collector_epsilon is not None:
            budgets.append("collector_epsilon")
        for name in budgets:
            self._set_number(name)
            if getattr(self, name) <= 0:
                raise InvalidParameter(name, "must be positive", getattr(self, name))
        if self.question is not None and not 1 <= len(self.question) <= MAX_QUESTION:
            rule = f"must be a name of 1 to {MAX_QUESTION} characters"
            raise InvalidParameter("question", rule, f"{len(self.question)} characters")
        if self.reuse and self.question is None:
            raise InvalidParameter("reuse", "needs a question, whose report is sent again", "none")
        if self.categories is None:
            self._check_range()
        else:
            self._check_categories()

    def encode(self, value: object) -> float:
        """A number clamped to the range, or the index of a category; errors never repeat the value.

        A plan with a step takes the nearest of its values when it is drawn (`Plan.inputs_of`).

        >>> Policy(low=0, high=10).encode(float("nan"))
        Traceback (most recent call last):
            ...
        unpoison.errors.InvalidParameter: value must be a finite number; received not a number
        """
        if self.categories is None:
            return self._clamped(value)
        if not isinstance(value, str) or value not in self.categories:
            raise InvalidParameter("value", "must be one of the policy's categories", "another")
        return float(self.categories.index(value))

    def _clamped(self, value: object) -> float:
        number = _nearest_float(value)
        if not math.isfinite(number):
            kind = "not a number" if math.isnan(number) else "an infinity"
            raise InvalidParameter("value", "must be a finite number", kind)
        low, high = self.bounds
        return min(max(number, low), high)

    @property
    def bounds(self) -> tuple[float, float]:
        """The range; of categories, their first and last index."""
        if self.low is None or self.high is None:
            return 0.0, float(len(self.categories or ()) - 1)
        return self.low, self.high

    @property
    def collector_limit(self) -> Fraction:
        """The most that all campaigns of one collector may spend, exactly.

        >>> Policy(low=0, high=1).collector_limit
        Fraction(4, 1)
        >>> Policy(low=0, high=1, max_epsilon=1.0, lifetime_epsilon=1.0).collector_limit
        Fraction(1, 1)
        """
        if self.collector_epsilon is not None:
            return exact(self.collector_epsilon)
        lifetime = exact(self.lifetime_epsilon)
        return max(lifetime / 2, min(exact(self.max_epsilon), lifetime))

    def _check_range(self) -> None:
        if self.low is None or self.high is None:
            received = f"low {self.low} and high {self.high}"
            raise InvalidParameter("policy", "needs low and high, or categories", received)
        self._set_number("low")
        self._set_number("high")
        # The width must be finite too, or no value could be normalised by it.
        if not 0 < self.high - self.low < math.inf:
            rule = "must be below high, by a finite difference"
            raise InvalidParameter("low", rule, f"{self.low} and {self.high}")
        if self.step is not None:
            self._set_number("step")
            step_count(self.low, self.high, self.step)

    def _check_categories(self) -> None:
        if self.low is not None or self.high is not None:
            raise InvalidParameter("low and high", "do not go with categories", "both")
        if self.step is not None:
            raise InvalidParameter("step", "does not go with categories", "both")
        names = category_names(self.categories)
        object.__setattr__(self, "categories", names)
        if len(names) < MIN_CATEGORIES:
            raise InvalidParameter("categories", f"must be at least {MIN_CATEGORIES}", len(names))
        repeated = [name for name, count in Counter(names).items() if count > 1]
        if repeated:
            raise InvalidParameter(
                "categories", "must differ from one another", f"{sorted(repeated)[0]!r} twice"
            )

    def _set_number(self, name: str) -> None:
        object.__setattr__(self, name, number(vars(self), name))


def _nearest_float(value: object) -> float:
    """The nearest finite float, also of integers beyond all floats; NaN for what is no number."""
    # bool is a Real, but True is more likely a mistake than the value 1.
    if not isinstance(value, Real) or isinstance(value, bool):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return -sys.float_info.max if value < 0 else sys.float_info.max
