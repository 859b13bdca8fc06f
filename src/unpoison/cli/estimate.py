"""`unpoison estimate`: the answer, from reports or from summaries."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unpoison.cli.app import DropInvalid, Json, number, whole
from unpoison.cli.scheme_options import (
    InitialMean,
    PostProcessing,
    SideRule,
    StatisticName,
    Weights,
    given_options,
)
from unpoison.errors import InvalidFile, InvalidParameter

if TYPE_CHECKING:
    from unpoison.summary import Summary


def estimate(
    data: Annotated[
        list[str],
        typer.Argument(help="Report files (Parquet, CSV), folders or globs; or summaries."),
    ],
    plan: Annotated[
        Path | None,
        typer.Option("--plan", "-p", help="Plan file; summaries have theirs with them."),
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(
            show_default="joint; baseline for a baseline plan",
            help="joint; the paper's emf, emf-star, cemf-star, baseline; or a rival: ostrich, "
            "trimming, boxplot, "
            "isolation-forest, k-means, emf-boxplot, emf-isolation-forest, emf-k-means, with "
            "parameters as in trimming:side=left,share=0.25.",
        ),
    ] = None,
    statistic: StatisticName = None,
    post_processing: PostProcessing = None,
    weights: Weights = None,
    side_rule: SideRule = None,
    initial_mean: InitialMean = None,
    gamma_sup: Annotated[
        float | None,
        typer.Option(
            parser=number,
            metavar="NUMBER",
            show_default="1/2",
            help="Most attackers that Thm. 2 allows for, above 0 and at most 1/2.",
        ),
    ] = None,
    suppression: Annotated[
        float | None,
        typer.Option(
            parser=number,
            metavar="NUMBER",
            show_default="0.5",
            help="CEMF*: the factor of its threshold.",
        ),
    ] = None,
    max_iterations: Annotated[
        int | None,
        typer.Option(
            parser=whole, metavar="INTEGER", show_default="100000", help="Bound on EM's iterations."
        ),
    ] = None,
    blind_share: Annotated[
        float | None,
        typer.Option(
            parser=number,
            metavar="NUMBER",
            show_default="0.05",
            help="joint: the share of hidden attackers that the blind spot is told for.",
        ),
    ] = None,
    poisoned_side: Annotated[
        str | None,
        typer.Option(show_default="right", help="Trimming: the side it is told, right or left."),
    ] = None,
    together: Annotated[
        bool,
        typer.Option("--together", help="Add windows of time up instead of telling each."),
    ] = False,
    drop_invalid: DropInvalid = False,
    plot: Annotated[
        Path | None,
        typer.Option(help="Also draw the fit, or windows over time (.png, .svg or .pdf)."),
    ] = None,
    json: Json = False,
) -> None:
    """Estimate the honest users' mean, distribution or frequencies, and what attackers did to it.

    Summaries of several windows of time are estimated one by one.

    Example: unpoison estimate reports/*.parquet -p plan.json --json
    """
    from unpoison.cli.window_estimates import estimate_windows
    from unpoison.estimate.methods import estimate_summary
    from unpoison.output.plots import FORMATS
    from unpoison.reports.writing import REPORT_SUFFIXES
    from unpoison.summary.store import SUMMARY_SUFFIX
    from unpoison.system.paths import check_output, expand

    check_output(plot, "--plot", FORMATS)
    options = given_options(
        weights=weights,
        side_rule=side_rule,
        initial_mean=initial_mean,
        gamma_sup=gamma_sup,
        suppression=suppression,
        max_iterations=max_iterations,
        blind_share=blind_share,
        side=poisoned_side,
    )
    answering = partial(
        estimate_summary,
        method=method,
        statistic=statistic,
        post_processing=post_processing,
        **options,
    )
    paths = expand(data, (*REPORT_SUFFIXES, SUMMARY_SUFFIX))
    summaries = _load(paths, plan, together, drop_invalid)
    if len(summaries) > 1:
        estimate_windows(summaries, answering, plot, json)
    else:
        _answer(summaries[0], answering, plot, json)


def _answer(summary: Any, answering: Any, plot: Path | None, json: bool) -> None:
    """One estimate."""
    from unpoison.cli.estimate_text import show
    from unpoison.output.plots import draw_estimate, save
    from unpoison.output.progress import progress

    with progress("Estimating"):
        answer = answering(summary)
        if plot is not None:
            save(draw_estimate(answer), plot)
    if json:
        typer.echo(answer.to_json())
    else:
        show(answer, summary)


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
