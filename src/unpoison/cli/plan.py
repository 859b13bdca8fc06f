"""`unpoison plan`: decide what everybody agrees on, and write it down."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from unpoison.cli.app import Json, PlanFile, number


def plan(
    source: PlanFile = None,
    mechanism: Annotated[
        str,
        typer.Option(
            "--mechanism",
            "-m",
            help="piecewise, square-wave or k-rr (simulation, as in the paper); the same with "
            "-integer for real devices.",
        ),
    ] = "piecewise",
    epsilon: Annotated[
        float, typer.Option("--epsilon", "-e", parser=number, help="A user's whole budget.")
    ] = 1.0,
    min_epsilon: Annotated[
        float | None,
        typer.Option(parser=number, help="Smallest group budget, ε0 (baseline: ε_α). [1/16]"),
    ] = None,
    low: Annotated[float | None, typer.Option(help="Smallest value, in natural units.")] = None,
    high: Annotated[float | None, typer.Option(help="Largest value, in natural units.")] = None,
    categories: Annotated[
        str | None, typer.Option(help="Category names for k-rr, with commas between.")
    ] = None,
    protocol: Annotated[str, typer.Option(help="dap, or the paper's baseline.")] = "dap",
    tier: Annotated[
        list[str] | None,
        typer.Option(help="Budget of users who want less than epsilon; may be repeated."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where to write the plan (JSON).")
    ] = None,
    json: Json = False,
) -> None:
    """Make a plan: mechanism, budgets, groups and value range; or show what a plan file means.

    Example: unpoison plan --epsilon 1 --low 0 --high 86400 -o plan.json
    """
    from unpoison.plan import Plan

    if source is not None:
        made = Plan.load(source)
    else:
        keys: dict[str, Any] = {
            "mechanism": mechanism,
            "epsilon": epsilon,
            "min_epsilon": min_epsilon,
            "low": low,
            "high": high,
            "categories": categories.split(",") if categories else None,
            "protocol": protocol,
            "tiers": [_tier(number(each), min_epsilon) for each in tier or []] or None,
        }
        made = Plan.from_dict({key: value for key, value in keys.items() if value is not None})
    if output is not None:
        from unpoison.files import whole_file

        with whole_file(output) as file:
            file.write((made.to_json() + "\n").encode())
    if json:
        typer.echo(made.to_json())
    else:
        _show(made)
        if output is not None:
            typer.echo(f"Written to {output}.")


def _tier(epsilon: float, min_epsilon: float | None) -> dict[str, float]:
    if min_epsilon is None:
        return {"epsilon": epsilon}
    return {"epsilon": epsilon, "min_epsilon": min(epsilon, min_epsilon)}


def _show(made: Any) -> None:
    from unpoison.cli.tables import print_table

    low, high = made.bounds
    domain = f"{len(made.categories)} categories" if made.categories else f"[{low:g}, {high:g}]"
    typer.echo(f"{made.mechanism}, {made.protocol}, epsilon {made.epsilon:g}, values in {domain}")
    rows = []
    number_of = 0
    for tier in made.all_tiers:
        for group in tier.groups:
            spent = float(group.spent)
            rows.append(
                [
                    str(number_of),
                    f"{tier.epsilon:g}",
                    f"{group.epsilon:g}",
                    str(group.reports),
                    f"{spent:g}",
                    f"{100 * group.share:.1f} %",
                ]
            )
            number_of += 1
    heads = ["group", "budget", "epsilon a report", "reports a user", "spent", "users"]
    print_table(heads, rows)
