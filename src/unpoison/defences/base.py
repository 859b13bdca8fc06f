"""The base classes of rival defences: a Summary to an Estimate without the paper's filters."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from importlib.util import find_spec
from typing import Any, ClassVar

import numpy as np

from unpoison.errors import InvalidParameter, NotEnoughData
from unpoison.estimate import Byzantine, Estimate
from unpoison.estimate.distribution import Distribution
from unpoison.estimate.honest_reports import distribution_of, frequencies_of, mean_of
from unpoison.estimate.methods import Method, check_options, methods
from unpoison.estimate.options import FilterOptions
from unpoison.estimate.postprocessing import post_process
from unpoison.estimate.statistic import DISTRIBUTION, Statistic
from unpoison.plan import Plan
from unpoison.registry import Registered, Registry
from unpoison.summary import Summary
from unpoison.types import FloatArray

FIRST_DEFENCE = 100
"""The place at which defences begin in the list of methods: after all that are no rivals."""


class Defence(ABC):
    """A defence, with its parameters as fields of a frozen dataclass.

    A subclass gives `mean` and `describe`; `distribution` and `frequencies` where it has them.

    >>> from unpoison import Plan, perturb, summarise
    >>> class Guess(Defence):
    ...     def mean(self, summary):
    ...         return 0.0
    ...     def describe(self):
    ...         return "The middle of the range, whatever was reported."
    >>> plan = Plan.new(epsilon=0.5, min_epsilon=0.25, low=0, high=10)
    >>> Guess().estimate(summarise(perturb([2.0, 3.0], plan), plan), "guess").mean
    5.0
    """

    categorical: ClassVar[bool] = False
    """Whether the defence gives frequencies of categories too."""
    runs_by_default: ClassVar[bool] = False
    """Whether `unpoison simulate` runs it where no methods are named: only if it takes no time."""
    needs: ClassVar[str | None] = None
    """The module of an optional dependency that the defence imports, if any."""

    @classmethod
    def available(cls) -> bool:
        """Whether the module that the defence needs is installed."""
        return cls.needs is None or find_spec(cls.needs) is not None

    @classmethod
    def example(cls) -> Defence:
        """A defence of this class that answers within a second, with which every class is tested.

        Override it where the defaults take longer.
        """
        return cls()

    @abstractmethod
    def mean(self, summary: Summary) -> float:
        """The estimated mean, normalised."""

    @abstractmethod
    def describe(self) -> str:
        """A sentence on how the answer was made: the verdict of the Estimate."""

    def distribution(self, summary: Summary) -> Distribution:
        """The estimated distribution, where a defence has one."""
        raise self._refusal("gives distribution")

    def frequencies(self, summary: Summary) -> FloatArray:
        """The estimated frequencies of categories, where a defence has them."""
        raise self._refusal("gives frequencies")

    def estimate(self, summary: Summary, name: str, statistic: Statistic | None = None) -> Estimate:
        """The answer in natural units, with what the defence does not know left empty."""
        statistic = statistic or Statistic.of(summary.plan)
        if not summary.reports.sum():
            raise NotEnoughData("an estimate needs at least one report; received none")
        return Estimate(
            method=name,
            **self._answer(summary, statistic),
            users=summary.total_users,
            reports=int(summary.reports.sum()),
            invalid=summary.invalid,
            fit={"collection": "grouped" if len(summary.plan.all_groups) > 1 else "ungrouped"},
            verdict=self.describe(),
            unit=summary.plan.unit,
        )

    def _answer(self, summary: Summary, statistic: Statistic) -> dict[str, Any]:
        if summary.plan.categories is not None:
            frequencies = post_process(self.frequencies(summary), statistic.post_processing)
            by_name = dict(zip(summary.plan.categories, frequencies.tolist(), strict=True))
            return {
                "mean": math.nan,
                "frequencies": by_name,
                "byzantine": Byzantine(0.0, categories=()),
            }
        answer: dict[str, Any] = {
            "mean": summary.plan.natural(self.mean(summary)),
            "byzantine": Byzantine(0.0),
        }
        if statistic.name == DISTRIBUTION:
            answer["distribution"] = self.distribution(summary)
        return answer

    def _refusal(self, ability: str) -> InvalidParameter:
        """The error that names an ability which the defence lacks."""
        names = (name for name in defences if defences[name] is type(self))
        received = repr(next(names, "this defence"))
        return InvalidParameter("method", f"must be one that {ability}", received)


class SelectingDefence(Defence):
    """A defence that leaves some reports out and trusts the others.

    A subclass gives `kept_counts` and `describe`; the statistics follow from the kept reports.

    >>> class EverySecond(SelectingDefence):
    ...     def kept_counts(self, summary):
    ...         return summary.counts / 2
    ...     def describe(self):
    ...         return "The average of half of the reports."
    >>> from unpoison import Plan, simulate
    >>> plan = Plan.new(epsilon=0.5, low=0, high=1)
    >>> run = simulate(plan, np.full(4000, 0.5), rng=np.random.default_rng(1))
    >>> bool(abs(EverySecond().mean(run.summary)) < 1)
    True
    """

    @abstractmethod
    def kept_counts(self, summary: Summary) -> FloatArray:
        """The number of reports that are kept of each group and cell."""

    def mean(self, summary: Summary) -> float:
        """The average of the kept reports, decoded; by EMS where reports are biased."""
        groups = range(len(summary.plan.all_groups))
        return mean_of(summary.plan, groups, self.kept_counts(summary))

    def distribution(self, summary: Summary) -> Distribution:
        """The distribution that EMS reconstructs from the kept reports."""
        groups = range(len(summary.plan.all_groups))
        return distribution_of(summary.plan, groups, self.kept_counts(summary))

    def frequencies(self, summary: Summary) -> FloatArray:
        """The frequencies that EM reconstructs from the kept reports."""
        if not self.categorical:
            raise self._refusal("takes categories")
        return frequencies_of(summary.plan, self.kept_counts(summary))


@dataclass(frozen=True)
class DefenceMethod(Method):
    """A defence as an estimation method; its fields are parameters, as options or in its name.

    >>> from unpoison.estimate.methods import find_method
    >>> find_method("trimming:side=left").defence
    Trimming(side='left', share=0.5)
    """

    name: str
    kind: type[Defence]
    parameters: Mapping[str, Any] = field(default_factory=dict)

    is_defence = True
    fits_histograms = False

    @property
    def defence(self) -> Defence:
        """The defence with its parameters."""
        return self.kind(**self.parameters)

    @property
    def runs_by_default(self) -> bool:
        """Whether `unpoison simulate` runs it where no methods are named, as the defence says."""
        return self.kind.runs_by_default

    def describe(self) -> str:
        """The defence's own sentence."""
        return self.defence.describe()

    def fits(self, plan: Plan, statistic: str | None = None) -> bool:
        """Whether it is installed, takes such values, and gives what is asked for."""
        gives = statistic != DISTRIBUTION or issubclass(self.kind, SelectingDefence)
        takes = self.kind.categorical or not plan.categorical
        return self.kind.available() and gives and takes

    def answer(
        self, summary: Summary, options: FilterOptions | None, statistic: Statistic | None
    ) -> Estimate:
        """The defence's Estimate; it has parameters of its own in place of filter options."""
        return self.defence.estimate(summary, self.name, statistic)

    def estimate(self, summary: Summary, statistic: Statistic, **options: Any) -> Estimate:
        """One Estimate; `options` are the defence's fields, if its name has no parameters."""
        check_options(options, [] if self.parameters else list(self._field_types()), self.name)
        return self.kind(**{**self.parameters, **options}).estimate(summary, self.name, statistic)

    def with_parameters(self, parameters: Sequence[tuple[str, str]]) -> DefenceMethod:
        """The defence with fields from its name."""
        types = self._field_types()
        values: dict[str, Any] = {}
        for key, text in parameters:
            if key not in types or not text or key in values:
                known = ", ".join(types) or "no parameters"
                received = repr(f"{key}={text}" if text else key)
                raise InvalidParameter("method", f"{self.name} takes {known}, each once", received)
            values[key] = _parsed_field(key, text, types[key])
        name = f"{self.name}:{','.join(f'{key}={text}' for key, text in parameters)}"
        self.kind(**values)  # A bad value is refused now rather than when it is first used.
        return DefenceMethod(name, self.kind, values)

    def _field_types(self) -> dict[str, str]:
        return {item.name: str(item.type) for item in fields(self.kind)}  # type: ignore[arg-type]


def _parsed_field(name: str, text: str, field_type: str) -> str | int | float:
    """A parameter's text as what its field holds: a number where it can be one."""
    for convert in (int, float):
        if convert.__name__ in field_type:
            with suppress(ValueError):
                return convert(text)
    if "str" in field_type:
        return text
    raise InvalidParameter(name, "must be a number", repr(text))


class DefenceRegistry(Registry[type[Defence]]):
    """Defences by name; each is an estimation method too.

    >>> "ostrich" in defences, "ostrich" in methods
    (True, True)
    """

    def register(self, name: str, *, order: float = math.inf) -> Callable[[Registered], Registered]:
        """Decorate a class to register it under `name`, here and among the methods."""
        add_defence = super().register(name, order=order)

        def add(defence: Registered) -> Registered:
            method = DefenceMethod(name, defence)  # type: ignore[arg-type]
            methods.register(name, order=FIRST_DEFENCE + order)(method)
            return add_defence(defence)

        return add


defences = DefenceRegistry("defence")


def decoded_cells(summary: Summary) -> FloatArray:
    """The decoded value of every cell of every group.

    >>> from unpoison import Plan
    >>> plan = Plan.new(epsilon=0.5, min_epsilon=0.5, low=0, high=1)
    >>> decoded_cells(Summary.empty(plan)).shape == (1, plan.cells)
    True
    """
    return np.stack([mechanism.decoded_cells() for mechanism in summary.plan.group_mechanisms])
