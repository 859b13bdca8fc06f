"""Estimation methods by name: the registry, names with parameters, and running several at once.

Protocols and defences file their methods here when they are imported; `unpoison.api` imports them
all, and the registry loads it when a method is first looked up.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from unpoison.errors import InvalidParameter
from unpoison.estimate.estimate import Estimate
from unpoison.estimate.options import FilterOptions
from unpoison.estimate.statistic import Statistic
from unpoison.plan import Plan
from unpoison.registry import Registry, check_name
from unpoison.summary import Summary


@dataclass(frozen=True)
class Batch:
    """Summaries that some methods of one family estimate, all with the same options.

    >>> Batch(summaries=[], names=["emf", "emf-star"]).statistic is None
    True
    """

    summaries: Sequence[Summary]
    names: Sequence[str]
    options: FilterOptions | None = None
    statistic: Statistic | None = None


class Method(ABC):
    """One way from a Summary to an Estimate, under the name that users call it by.

    Methods of one `family` share their work: `run` is then called once for all of them.

    >>> methods["emf-star"].name, methods["emf-star"].family == methods["emf"].family
    ('emf-star', True)
    """

    aliases: tuple[str, ...] = ()
    """Other names that users may write, such as `emf*`."""
    is_defence: bool = False
    """Whether it is a rival defence, which also gets its best case: an ungrouped collection."""
    fits_histograms: bool = True
    """Whether its Estimate has the fitted histograms that a plot shows."""
    of_the_paper: bool = False
    """Whether it is one of the paper's own methods."""
    default_rank: int = 0
    """The method with the largest rank among those that fit a plan is the plan's default."""

    name: str

    @property
    def family(self) -> str:
        """Methods of the same family are run together; by default each is a family of its own."""
        return self.name

    @property
    def runs_by_default(self) -> bool:
        """Whether `unpoison simulate` runs it where no methods are named."""
        return True

    @abstractmethod
    def describe(self) -> str:
        """A few words for help texts on what the method is."""

    @abstractmethod
    def fits(self, plan: Plan, statistic: str | None = None) -> bool:
        """Whether it can estimate a collection of this plan (and, if named, this statistic)."""

    @abstractmethod
    def answer(
        self, summary: Summary, options: FilterOptions | None, statistic: Statistic | None
    ) -> Estimate:
        """The Estimate of one summary; filter options that it does not take have no effect."""

    def run(self, batch: Batch) -> list[dict[str, Estimate]]:
        """Estimate every summary, by name of the method; a family that shares work overrides it."""
        return [
            {self.name: self.answer(summary, batch.options, batch.statistic)}
            for summary in batch.summaries
        ]

    @abstractmethod
    def estimate(self, summary: Summary, statistic: Statistic, **options: Any) -> Estimate:
        """One Estimate; `options` are those that the method takes, and no others."""

    def with_parameters(self, parameters: Sequence[tuple[str, str]]) -> Method:
        """The method with the parameters of a name such as `trimming:share=0.25`."""
        text = ",".join(f"{key}={value}" if value else key for key, value in parameters)
        raise InvalidParameter("method", f"{self.name} takes no parameters in its name", repr(text))


class FilterMethod(Method):
    """A method that is tuned by `FilterOptions`; it says which of them it takes.

    >>> "weights" in methods["emf"].option_names, "weights" in methods["joint"].option_names
    (True, False)
    """

    option_names: tuple[str, ...]

    def estimate(self, summary: Summary, statistic: Statistic, **options: Any) -> Estimate:
        """The Estimate of one summary."""
        check_options(options, self.option_names, self.name)
        return self.answer(summary, FilterOptions(**options), statistic)


methods: Registry[Method] = Registry("method")


def method_names() -> list[str]:
    """The names of all methods, the recommended first.

    >>> method_names()[:4]
    ['joint', 'emf', 'emf-star', 'cemf-star']
    """
    return list(methods)


def method_aliases() -> dict[str, str]:
    """Other names that users may write, each with the method it stands for.

    >>> method_aliases()["emf*"]
    'emf-star'
    """
    return {alias: name for name in methods for alias in methods[name].aliases}


def default_method(plan: Plan) -> str:
    """The method for a plan when the user chose none.

    >>> default_method(Plan.new(epsilon=0.25, low=0, high=1))
    'joint'
    >>> default_method(Plan.new(epsilon=0.25, low=0, high=1, protocol="baseline"))
    'baseline'
    """
    fitting = [name for name in methods if methods[name].fits(plan)]
    return max(fitting, key=lambda name: methods[name].default_rank)


def unfit_method(plan: Plan, received: str) -> InvalidParameter:
    """The refusal of a method for a plan of another protocol, with the methods that fit.

    >>> str(unfit_method(Plan.new(low=0, high=1, protocol="baseline"), "joint"))
    'method must be baseline or a defence for a baseline plan; received joint'
    """
    fitting = [name for name in methods if methods[name].fits(plan)]
    filters = [name for name in fitting if not methods[name].is_defence]
    rule = f"must be {', '.join(filters)} or a defence for a {plan.protocol} plan"
    return InvalidParameter("method", rule, received)


def find_method(text: str) -> Method:
    """The method that a user's text means: a name or alias, a defence perhaps with parameters.

    >>> find_method("cemf*").name, find_method("trimming: share=0.25").name
    ('cemf-star', 'trimming:share=0.25')
    """
    name, parameters = split_method(text)
    name = method_aliases().get(name, name)
    check_name("method", name, method_names())
    return methods[name].with_parameters(parameters) if parameters else methods[name]


def split_method(text: str) -> tuple[str, list[tuple[str, str]]]:
    """The name in a method's text, and its parameters with their values, still as text.

    >>> split_method("k-means:rate=0.5,subsets=100")
    ('k-means', [('rate', '0.5'), ('subsets', '100')])
    """
    name, _, parameters = text.partition(":")
    pairs = [pair.partition("=") for pair in parameters.split(",")] if parameters.strip() else []
    return name.strip(), [(key.strip(), value.strip()) for key, _, value in pairs]


def estimates(
    summary: Summary,
    chosen: Sequence[str | Method],
    options: FilterOptions | None = None,
    statistic: Statistic | None = None,
) -> dict[str, Estimate]:
    """Several methods on one summary, by name; methods of one family share their work.

    >>> import numpy as np
    >>> from unpoison import Plan, simulate
    >>> plan = Plan.new(epsilon=0.5, min_epsilon=0.25, low=0, high=1)
    >>> run = simulate(plan, np.full(5000, 0.3), "none", 0, np.random.default_rng(1))
    >>> list(estimates(run.summary, ["emf", "ostrich"]))
    ['emf', 'ostrich']
    """
    return estimates_together([summary], chosen, options, statistic)[0]


def estimates_together(
    summaries: Sequence[Summary],
    chosen: Sequence[str | Method],
    options: FilterOptions | None = None,
    statistic: Statistic | None = None,
) -> list[dict[str, Estimate]]:
    """Several methods on several summaries, whose EM runs share batches.

    >>> import numpy as np
    >>> from unpoison import Plan, simulate
    >>> plan, values = Plan.new(epsilon=0.5, low=0, high=1), np.full(5000, 0.3)
    >>> runs = [simulate(plan, values, rng=np.random.default_rng(seed)) for seed in (1, 2)]
    >>> [list(answers) for answers in estimates_together([run.summary for run in runs], ["emf"])]
    [['emf'], ['emf']]
    """
    resolved = [find_method(item) if isinstance(item, str) else item for item in chosen]
    families: dict[str, list[Method]] = {}
    for method in resolved:
        families.setdefault(method.family, []).append(method)
    answers: list[dict[str, Estimate]] = [{} for _ in summaries]
    for family in families.values():
        names = [method.name for method in family]
        results = family[0].run(Batch(summaries, names, options, statistic))
        for of_summary, of_family in zip(answers, results, strict=True):
            of_summary.update(of_family)
    return [{method.name: of_summary[method.name] for method in resolved} for of_summary in answers]


def estimate_summary(
    summary: Summary,
    method: str | None = None,
    *,
    statistic: str | None = None,
    post_processing: str | None = None,
    **options: Any,
) -> Estimate:
    """One method on one summary; options are those of `FilterOptions`, or of the defence.

    `statistic` is mean or distribution for numbers, frequencies for categories; these are followed
    by a `post_processing`: none, clip or norm-sub.

    >>> import numpy as np
    >>> from unpoison import Plan, simulate
    >>> plan = Plan.new(epsilon=0.5, min_epsilon=0.25, low=0, high=1)
    >>> run = simulate(plan, np.full(2000, 0.3), "uniform:3C/4,C", 0.3, np.random.default_rng(1))
    >>> answer = estimate_summary(run.summary, "emf*", weights="paper")
    >>> answer.method, answer.byzantine.side
    ('emf-star', 'right')
    """
    chosen = find_method(method or default_method(summary.plan))
    requested = Statistic.of(summary.plan, statistic, post_processing)
    return chosen.estimate(summary, requested, **options)


def check_options(options: dict[str, Any], allowed: Sequence[str], method: str) -> None:
    """Refuse options that a method does not take.

    >>> check_options({"colour": 1}, ["side", "share"], "trimming")
    Traceback (most recent call last):
        ...
    unpoison.errors.InvalidParameter: options of trimming must be among side, share; ...
    >>> check_options({"colour": 1}, [], "ostrich")
    Traceback (most recent call last):
        ...
    unpoison.errors.InvalidParameter: method ostrich takes no options; received 'colour'
    """
    for option in options:
        if not allowed:
            raise InvalidParameter("method", f"{method} takes no options", repr(option))
        if option not in allowed:
            rule = f"of {method} must be among {', '.join(allowed)}"
            raise InvalidParameter("options", rule, repr(option))
