"""`unpoison estimate`: an Estimate from reports or from summaries."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unpoison.cli.estimation_options import (
    InitialMean,
    PostProcessing,
    SideRule,
    StatisticName,
    Weights,
    chosen_options,
)
from unpoison.cli.options import DropInvalid, Json, number_option, option, whole_number_option
from unpoison.errors import InvalidFile, InvalidParameter

if TYPE_CHECKING:
    from unpoison.estimate import Estimate
    from unpoison.summary import Summary


def estimate(
    data: Annotated[
        list[str],
        typer.Argument(help="Report files (Parquet, CSV), folders or globs; or summaries."),
    ],
    plan: Annotated[
        Path | None, option("Plan file; summaries have theirs with them.", "--plan", "-p")
    ] = None,
    method: Annotated[
        str | None,
        option(
            "{other_methods}; the paper's {paper_methods}; or a rival: {defences}, with "
            "parameters as in trimming:side=left,share=0.25.",
            default="{default_methods}",
        ),
    ] = None,
    statistic: StatisticName = None,
    post_processing: PostProcessing = None,
    weights: Weights = None,
    side_rule: SideRule = None,
    initial_mean: InitialMean = None,
    gamma_sup: Annotated[
        float | None,
        number_option(
            "Most attackers that Thm. 2 allows for, above 0 and at most 1/2.", default="1/2"
        ),
    ] = None,
    suppression: Annotated[
        float | None, number_option("CEMF*: the factor of its threshold.", default="0.5")
    ] = None,
    max_iterations: Annotated[
        int | None, whole_number_option("Bound on EM's iterations.", default="100000")
    ] = None,
    attackers_at_most: Annotated[
        float | None,
        number_option(
            "joint: the share of a group that attackers do not exceed, for the worst case.",
            default="what the fit says at most, and 5 points more",
        ),
    ] = None,
    poisoned_side: Annotated[
        str | None, option("Trimming: the side to cut, right or left.", default="right")
    ] = None,
    top: Annotated[
        int | None,
        whole_number_option(
            "Print so many of the categories, the most frequent first.",
            default="all, or 20 of more than 40",
        ),
    ] = None,
    together: Annotated[
        bool, option("Add windows of time up instead of estimating each.", "--together")
    ] = False,
    drop_invalid: DropInvalid = False,
    plot: Annotated[
        Path | None, option("Also draw the fit, or windows over time (.png, .svg or .pdf).")
    ] = None,
    json: Json = False,
) -> None:
    """Estimate the honest users' mean, distribution or frequencies, and what attackers did to it.

    Summaries of several windows of time are estimated one by one.

    Example: unpoison estimate reports/*.parquet -p plan.json --json
    """
    from unpoison.cli.window_estimates import estimate_windows
    from unpoison.estimate.methods import estimate_summary
    from unpoison.output.figure import FORMATS
    from unpoison.reports.writing import REPORT_SUFFIXES
    from unpoison.summary.store import SUMMARY_SUFFIX
    from unpoison.system.paths import check_output, expand

    check_output(plot, "--plot", FORMATS)
    if top is not None and top < 1:
        raise InvalidParameter("--top", "must be at least 1", top)
    options = chosen_options(
        weights=weights,
        side_rule=side_rule,
        initial_mean=initial_mean,
        gamma_sup=gamma_sup,
        suppression=suppression,
        max_iterations=max_iterations,
        attackers_at_most=attackers_at_most,
        side=poisoned_side,
    )
    estimate_one = partial(
        estimate_summary,
        method=method,
        statistic=statistic,
        post_processing=post_processing,
        **options,
    )
    paths = expand(data, (*REPORT_SUFFIXES, SUMMARY_SUFFIX))
    summaries = _load(paths, plan, together, drop_invalid)
    if len(summaries) > 1:
        estimate_windows(summaries, estimate_one, plot, json)
    else:
        _estimate_and_print(summaries[0], estimate_one, method, plot, json, top)


PLOTTED_SHARES = tuple(step / 20 for step in range(11))
"""Shares of attackers up to one half for which the picture shows the worst case."""


def _estimate_and_print(
    summary: Summary,
    estimate_one: Callable[..., Estimate],
    method: str | None,
    plot: Path | None,
    json: bool,
    top: int | None,
) -> None:
    from unpoison.cli.estimate_text import print_estimate
    from unpoison.output.estimate_plot import draw_estimate
    from unpoison.output.figure import save_figure
    from unpoison.output.progress import progress

    with progress("Estimating"):
        has_curve = plot is not None and _has_worst_case(summary, method)
        answer = estimate_one(
            summary, **({"worst_case_shares": PLOTTED_SHARES} if has_curve else {})
        )
        if plot is not None:
            save_figure(draw_estimate(answer, top=top), plot)
    if json:
        typer.echo(answer.to_json())
    else:
        print_estimate(answer, summary.plan, top)


def _has_worst_case(summary: Summary, method: str | None) -> bool:
    """Whether the method tells the worst case."""
    from unpoison.estimate.methods import FilterMethod, default_method, find_method

    chosen = find_method(method or default_method(summary.plan))
    return isinstance(chosen, FilterMethod) and "worst_case_shares" in chosen.option_names


def _load(
    paths: list[Path], plan: Path | None, together: bool, drop_invalid: bool
) -> list[Summary]:
    """The summary of each window in order, or one of all files; each file is read once."""
    from unpoison.cli.summarise import count_with_progress, load_with_progress
    from unpoison.plan import Plan

    agreed = None if plan is None else Plan.load(plan)
    if not _are_summaries(paths):
        if agreed is None:
            raise InvalidParameter("--plan", "must be given with report files", "nothing")
        return [count_with_progress(paths, agreed, drop_invalid)]
    tally = load_with_progress(paths, by_window=not together)
    windows = sorted(window for window in tally if window is not None)
    summaries = [tally[window] for window in windows] or list(tally.values())
    if agreed is not None and agreed != summaries[0].plan:
        raise InvalidParameter("--plan", "must be the plan of the summaries", plan)
    return summaries


def _are_summaries(paths: list[Path]) -> bool:
    """Whether files are summaries rather than reports; both kinds may not be mixed."""
    kinds = {_is_summary(path) for path in paths}
    if len(kinds) > 1:
        raise InvalidParameter("data", "must be reports or summaries, not both", "both")
    return kinds == {True}


def _is_summary(path: Path) -> bool:
    from unpoison.reports.writing import REPORT_SUFFIXES
    from unpoison.summary.store import SUMMARY_SUFFIX
    from unpoison.summary.summary import is_summary

    if path.suffix == SUMMARY_SUFFIX or is_summary(path):
        return True
    if path.suffix.lower() not in REPORT_SUFFIXES:
        raise InvalidFile(path, "is no summary, and no report file (.parquet or .csv)")
    return False
