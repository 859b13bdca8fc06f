"""`unpoison estimate`: the answer, from reports or from summaries."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from unpoison.cli.app import DropInvalid, Json, PlanFile, number
from unpoison.errors import InvalidParameter


def initial_mean(text: str) -> str | float:
    """`middle`, `pessimistic`, or a number in natural units."""
    return text if text in ("middle", "pessimistic") else number(text)


def estimate(
    data: Annotated[
        list[str],
        typer.Argument(help="Report files (Parquet, CSV), folders or globs; or summaries."),
    ],
    plan: PlanFile = None,
    method: Annotated[
        str | None,
        typer.Option(
            help="emf, emf-star, cemf-star, baseline, ostrich or trimming. "
            "[emf-star; baseline for a baseline plan]"
        ),
    ] = None,
    weights: Annotated[
        str | None, typer.Option(help="How groups combine: optimal, or paper (Alg. 5). [optimal]")
    ] = None,
    side_rule: Annotated[
        str | None,
        typer.Option(help="How the side is chosen: variance (Alg. 3) or likelihood. [variance]"),
    ] = None,
    initial: Annotated[
        str | None,
        typer.Option(
            "--initial-mean", help="O': middle, pessimistic (Thm. 2), or a value. [middle]"
        ),
    ] = None,
    gamma_sup: Annotated[
        float | None, typer.Option(help="Most attackers Thm. 2 allows for, in (0, 1/2]. [1/2]")
    ] = None,
    suppression: Annotated[
        float | None, typer.Option(help="CEMF*: the factor of its threshold. [0.5]")
    ] = None,
    max_iterations: Annotated[int | None, typer.Option(help="Bound on EM. [100000]")] = None,
    poisoned_side: Annotated[
        str | None, typer.Option(help="Trimming: the side it is told, right or left. [right]")
    ] = None,
    drop_invalid: DropInvalid = False,
    plot: Annotated[
        Path | None, typer.Option(help="Also draw a picture of the fit (.png, .svg or .pdf).")
    ] = None,
    json: Json = False,
) -> None:
    """Estimate the honest users' mean, and what attackers did to it.

    Example: unpoison estimate reports/*.parquet -p plan.json --method emf-star --json
    """
    from unpoison.methods import estimate_summary

    given = {
        "weights": weights,
        "side_rule": side_rule,
        "initial_mean": None if initial is None else initial_mean(initial),
        "gamma_sup": gamma_sup,
        "suppression": suppression,
        "max_iterations": max_iterations,
        "side": poisoned_side,
    }
    options = {name: value for name, value in given.items() if value is not None}
    summary = _summary(data, plan, drop_invalid)
    answer = estimate_summary(summary, method, **options)
    if plot is not None:
        from unpoison.plots import draw_estimate, save

        save(draw_estimate(answer), plot)
    if json:
        typer.echo(answer.to_json())
    else:
        _show(answer, summary)


def _summary(data: list[str], plan: Path | None, drop_invalid: bool) -> Any:
    """Add up summaries, or count reports; files of both kinds may not be mixed."""
    from unpoison.cli.summarise import summarised
    from unpoison.files import expand, is_summary
    from unpoison.plan import Plan
    from unpoison.summary import Summary

    paths = expand(list(data))
    kinds = {is_summary(path) for path in paths}
    if kinds == {False}:
        return summarised([str(path) for path in paths], plan, drop_invalid)
    if len(kinds) > 1:
        raise InvalidParameter("data", "must be reports or summaries, not both", "both")
    total = Summary.load(paths[0])
    for path in paths[1:]:
        total = total + Summary.load(path)
    if plan is not None and Plan.load(plan) != total.plan:
        raise InvalidParameter("--plan", "must be the plan of the summaries", str(plan))
    return total


def _show(answer: Any, summary: Any) -> None:
    from unpoison.cli.tables import print_table
    from unpoison.protocols.verdict import readable

    typer.echo(f"mean      {readable(answer.mean, summary)}   ({answer.method})")
    typer.echo(f"users     {answer.users:.0f}, reports {answer.reports}")
    if answer.invalid:
        typer.echo(f"left out  {answer.invalid} invalid reports")
    if answer.groups:
        typer.echo(
            f"attackers {100 * answer.byzantine.fraction:.1f} %, side {answer.byzantine.side}\n"
        )
        rows = [
            [
                str(group.group),
                f"{group.epsilon:g}",
                str(group.reports),
                readable(group.mean, summary),
                f"{group.weight:.3f}",
                f"{100 * group.byzantine_fraction:.1f} %",
                str(group.iterations) + ("" if group.converged else " (bound)"),
            ]
            for group in answer.groups
        ]
        heads = ["group", "epsilon", "reports", "mean", "weight", "attackers", "iterations"]
        print_table(heads, rows)
    typer.echo(f"\n{answer.verdict}")
