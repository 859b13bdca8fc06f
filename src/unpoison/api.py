"""The two verbs that take whatever a user has: reports in memory or in files, or a summary."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import unpoison.defences
import unpoison.protocols  # noqa: F401  (files its methods)
from unpoison.errors import InvalidParameter
from unpoison.estimate import Estimate
from unpoison.estimate.methods import estimate_summary
from unpoison.plan import Plan
from unpoison.reports import Reports
from unpoison.summary import Summary
from unpoison.summary.binning import Binner


def summarise(reports: Any, plan: Plan, *, drop_invalid: bool = False) -> Summary:
    """Reports to a Summary.

    `reports` may be `Reports`, anything with columns `group` and `value` (a DataFrame, an Arrow
    table, a dict of arrays), or paths of report files.

    >>> from unpoison import perturb
    >>> plan = Plan.new(epsilon=0.5, low=0, high=10)
    >>> summary = summarise(perturb([3.0, 4.0, 5.0, 6.0], plan), plan)
    >>> summary.total_users
    4.0
    """
    if isinstance(reports, str | Path) or _are_paths(reports):
        from unpoison.engines import summarise_files

        paths = [reports] if isinstance(reports, str | Path) else list(reports)
        if not paths or "" in paths:
            raise InvalidParameter("reports", "must name at least one file", repr(reports))
        return summarise_files(paths, plan, drop_invalid=drop_invalid)
    binner = Binner(plan, drop_invalid)
    binner.add(*_columns(reports))
    return binner.summary()


def estimate(
    data: Any,
    plan: Plan | None = None,
    method: str | None = None,
    *,
    drop_invalid: bool = False,
    **options: Any,
) -> Estimate:
    """The Estimate of a Summary, or of reports (as `summarise` takes them) with their plan.

    `options` are `statistic` (mean, distribution, frequencies), `post_processing` (none, clip,
    norm-sub), and those of `FilterOptions`, or of the defence that `method` names.

    >>> from unpoison import perturb
    >>> plan = Plan.new(epsilon=0.5, min_epsilon=0.25, low=0, high=10)
    >>> values = np.random.default_rng(1).uniform(2, 6, 20_000)
    >>> answer = estimate(perturb(values, plan, np.random.default_rng(2)), plan, method="ostrich")
    >>> bool(abs(answer.mean - values.mean()) < 0.5)
    True
    """
    if isinstance(data, Summary):
        if plan is not None and plan != data.plan:
            raise InvalidParameter("plan", "must be the summary's own, or left out", "another")
        return estimate_summary(data, method, **options)
    if plan is None:
        raise InvalidParameter("plan", "must be given with reports", "nothing")
    return estimate_summary(summarise(data, plan, drop_invalid=drop_invalid), method, **options)


def _are_paths(reports: Any) -> bool:
    return isinstance(reports, list | tuple) and all(isinstance(p, str | Path) for p in reports)


def _columns(reports: Any) -> tuple[np.ndarray, np.ndarray]:
    if isinstance(reports, Reports):
        return reports.group, reports.value
    names = ("group", "value")
    try:
        group, value = (np.asarray(reports[name]) for name in names)
    except (KeyError, TypeError, IndexError):
        rule = "must have the columns group and value"
        raise InvalidParameter("reports", rule, type(reports).__name__) from None
    if group.shape != value.shape or group.ndim != 1:
        raise InvalidParameter("reports", "must have columns of one length", group.shape)
    for name, column in zip(names, (group, value), strict=True):
        if column.dtype.kind not in "iuf":
            raise InvalidParameter("reports", f"must have numbers in {name}", column.dtype)
    return group, value
