"""Every way to an Estimate by its name: the paper's schemes, the baseline, and the rivals."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import fields
from typing import Any

from unpoison.defences import Defence, defences
from unpoison.errors import InvalidParameter
from unpoison.estimate import Estimate
from unpoison.estimate.statistic import Statistic
from unpoison.plan import Plan
from unpoison.protocols import (
    SCHEMES,
    FilterOptions,
    estimate_baseline,
    estimate_dap_together,
    estimate_joint,
)
from unpoison.protocols.joint import MOST_CATEGORIES
from unpoison.registry import check_name
from unpoison.summary import Summary

ALIASES = {"emf*": "emf-star", "cemf*": "cemf-star"}
JOINT = "joint"
DEFAULT_METHOD = JOINT
JOINT_OPTIONS = ("blind_share", "max_iterations")


def method_names() -> list[str]:
    """All methods, best known first.

    >>> method_names()[:4]
    ['joint', 'emf', 'emf-star', 'cemf-star']
    """
    return [JOINT, *SCHEMES, "baseline", *defences]


def default_method(summary: Summary) -> str:
    """What to use when nobody chose.

    >>> from unpoison import Plan
    >>> default_method(Summary.empty(Plan.new(epsilon=0.25, low=0, high=1)))
    'joint'
    """
    return default_method_of(summary.plan)


def default_method_of(plan: Plan) -> str:
    """The same, known before there is anything to summarise.

    >>> default_method_of(Plan.new(epsilon=0.25, low=0, high=1, protocol="baseline"))
    'baseline'
    """
    if plan.protocol == "baseline":
        return "baseline"
    return DEFAULT_METHOD if len(plan.categories or ()) <= MOST_CATEGORIES else "emf-star"


def is_defence(method: str) -> bool:
    """Whether a method is a defence, with parameters or without.

    >>> is_defence("trimming:share=0.5"), is_defence("emf")
    (True, False)
    """
    return method.partition(":")[0] in defences


def canonical(method: str) -> str:
    """The name of a method without its star; a defence may be followed by its parameters.

    >>> canonical("cemf*"), canonical("trimming: share=0.25")
    ('cemf-star', 'trimming:share=0.25')
    """
    name, _, rest = method.partition(":")
    name = ALIASES.get(name.strip(), name.strip())
    check_name("method", name, method_names())
    if not rest.strip():
        return name
    if name not in defences:
        raise InvalidParameter("method", f"{name} takes no parameters in its name", repr(rest))
    parsed_defence(f"{name}:{rest}")
    return f"{name}:{rest.replace(' ', '')}"


def parsed_defence(method: str) -> Defence:
    """A defence by its name, with parameters such as `trimming:side=left,share=0.25`.

    >>> parsed_defence("trimming:share=0.25")
    Trimming(side='right', share=0.25)
    """
    name, parts = split_method(method)
    kind = defences[name]
    types = {field.name: str(field.type) for field in fields(kind)}  # type: ignore[arg-type]
    given: dict[str, Any] = {}
    for key, value in parts:
        if key not in types or not value or key in given:
            known = ", ".join(types) or "no parameters"
            received = repr(f"{key}={value}" if value else key)
            raise InvalidParameter("method", f"{name} takes {known}, each once", received)
        given[key] = _parameter(key, value, types[key])
    return kind(**given)


def split_method(method: str) -> tuple[str, list[tuple[str, str]]]:
    """A method's name, and its parameters with their text.

    >>> split_method("k-means:rate=0.5,subsets=100")
    ('k-means', [('rate', '0.5'), ('subsets', '100')])
    """
    name, _, rest = method.partition(":")
    parts = [part.partition("=") for part in rest.split(",")] if rest else []
    return name, [(key.strip(), value.strip()) for key, _, value in parts]


def _parameter(name: str, text: str, kind: str) -> str | int | float:
    """A parameter's text as what its field holds: a number where it can be one."""
    for convert in (int, float):
        if convert.__name__ in kind:
            with suppress(ValueError):
                return convert(text)
    if "str" in kind:
        return text
    raise InvalidParameter(name, "must be a number", repr(text))


def estimates(
    summary: Summary,
    methods: Sequence[str],
    options: FilterOptions | None = None,
    asked: Statistic | None = None,
) -> dict[str, Estimate]:
    """Several methods on one summary; the paper's schemes share their work.

    >>> import numpy as np
    >>> from unpoison import Plan, simulate
    >>> plan = Plan.new(epsilon=0.5, min_epsilon=0.25, low=0, high=1)
    >>> run = simulate(plan, np.full(5000, 0.3), "none", 0, np.random.default_rng(1))
    >>> list(estimates(run.summary, ["emf", "ostrich"]))
    ['emf', 'ostrich']
    """
    return estimates_together([summary], methods, options, asked)[0]


def estimates_together(
    summaries: Sequence[Summary],
    methods: Sequence[str],
    options: FilterOptions | None = None,
    asked: Statistic | None = None,
) -> list[dict[str, Estimate]]:
    """Several methods on several summaries: EM runs of all of them share batches.

    >>> import numpy as np
    >>> from unpoison import Plan, simulate
    >>> plan, values = Plan.new(epsilon=0.5, low=0, high=1), np.full(5000, 0.3)
    >>> runs = [simulate(plan, values, rng=np.random.default_rng(seed)) for seed in (1, 2)]
    >>> [list(found) for found in estimates_together([run.summary for run in runs], ["emf"])]
    [['emf'], ['emf']]
    """
    names = [canonical(method) for method in methods]
    schemes = [name for name in names if name in SCHEMES]
    found: list[dict[str, Estimate]] = [{} for _ in summaries]
    if schemes:
        found = estimate_dap_together(summaries, schemes, options, asked)
    for summary, answers in zip(summaries, found, strict=True):
        if JOINT in names:
            answers[JOINT] = estimate_joint(summary, options, asked)
        if "baseline" in names:
            answers["baseline"] = estimate_baseline(summary, options, asked)
        for name in names:
            if is_defence(name):
                answers[name] = parsed_defence(name).estimate(summary, name, asked)
    return [{name: answers[name] for name in names} for answers in found]


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
    name = canonical(method or default_method(summary))
    asked = Statistic.of(summary.plan, statistic, post_processing)
    if ":" in name:
        _check_options(options, [], name)
        return parsed_defence(name).estimate(summary, name, asked)
    if name in defences:
        kind = defences[name]
        _check_options(options, [field.name for field in fields(kind)], name)  # type: ignore[arg-type]
        return kind(**options).estimate(summary, name, asked)
    _check_options(options, _option_names(name), name)
    return estimates(summary, [name], FilterOptions(**options), asked)[name]


def _option_names(method: str) -> list[str]:
    """The joint filter needs no advice but on its blind spot; the others have none."""
    if method == JOINT:
        return list(JOINT_OPTIONS)
    return [field.name for field in fields(FilterOptions) if field.name != "blind_share"]


def _check_options(options: dict[str, Any], known: list[str], method: str) -> None:
    for option in options:
        if option not in known:
            rule = f"of {method} must be among {', '.join(known) or 'none'}"
            raise InvalidParameter("options", rule, repr(option))
