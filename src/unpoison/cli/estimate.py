"""`unpoison estimate`: the answer, from reports or from summaries."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from unpoison.cli.app import DropInvalid, Json, number, whole
from unpoison.cli.filtering import (
    InitialMean,
    PostProcessing,
    SideRule,
    StatisticName,
    Weights,
    given_options,
)
from unpoison.errors import InvalidFile, InvalidParameter


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
    drop_invalid: DropInvalid = False,
    plot: Annotated[
        Path | None, typer.Option(help="Also draw a picture of the fit (.png, .svg or .pdf).")
    ] = None,
    json: Json = False,
) -> None:
    """Estimate the honest users' mean, distribution or frequencies, and what attackers did to it.

    Example: unpoison estimate reports/*.parquet -p plan.json --json
    """
    from unpoison.cli.answers import show
    from unpoison.cli.progress import progress
    from unpoison.files import check_output
    from unpoison.methods import estimate_summary
    from unpoison.plots import FORMATS, draw_estimate, save

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
    summary = _summary(data, plan, drop_invalid)
    with progress("Estimating"):
        answer = estimate_summary(
            summary, method, statistic=statistic, post_processing=post_processing, **options
        )
        if plot is not None:
            save(draw_estimate(answer), plot)
    if json:
        typer.echo(answer.to_json())
    else:
        show(answer, summary)


def _summary(data: list[str], plan: Path | None, drop_invalid: bool) -> Any:
    """Add up summaries, or count reports; files of both kinds may not be mixed."""
    from unpoison.cli.summarise import merged, summarised
    from unpoison.files import expand
    from unpoison.plan import Plan

    paths = expand(data)
    agreed = None if plan is None else Plan.load(plan)
    kinds = {_is_summary(path) for path in paths}
    if len(kinds) > 1:
        raise InvalidParameter("data", "must be reports or summaries, not both", "both")
    if kinds == {True}:
        total = merged(paths)
        if agreed is not None and agreed != total.plan:
            raise InvalidParameter("--plan", "must be the plan of the summaries", plan)
        return total
    if agreed is None:
        raise InvalidParameter("--plan", "must be given with report files", "nothing")
    return summarised(paths, agreed, drop_invalid)


def _is_summary(path: Path) -> bool:
    from unpoison.cli.summarise import SUMMARY_SUFFIX
    from unpoison.files import SUFFIXES, is_summary

    if path.suffix == SUMMARY_SUFFIX or is_summary(path):
        return True
    if path.suffix.lower() not in SUFFIXES:
        raise InvalidFile(path, "is no summary, and no report file (.parquet or .csv)")
    return False
