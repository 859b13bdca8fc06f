"""`unpoison plan`: decide what everybody agrees on, and write it down."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from unpoison.cli.app import Json, Seed, number, refuse_beside, whole
from unpoison.cli.plan_options import Epsilon, Mechanism, MinEpsilon
from unpoison.errors import InvalidParameter

TOLERATED = 0.25


def plan(
    source: Annotated[
        Path | None,
        typer.Option("--plan", "-p", help="Show (or expand into --output) this plan file instead."),
    ] = None,
    mechanism: Mechanism = None,
    epsilon: Epsilon = None,
    min_epsilon: MinEpsilon = None,
    low: Annotated[
        float | None,
        typer.Option(parser=number, metavar="NUMBER", help="Smallest value, in natural units."),
    ] = None,
    high: Annotated[
        float | None,
        typer.Option(parser=number, metavar="NUMBER", help="Largest value, in natural units."),
    ] = None,
    categories: Annotated[
        str | None, typer.Option(help="Category names for k-rr, with commas between.")
    ] = None,
    protocol: Annotated[
        str | None, typer.Option(show_default="dap", help="dap, or the paper's baseline.")
    ] = None,
    tier: Annotated[
        list[float] | None,
        typer.Option(
            parser=number,
            metavar="NUMBER",
            help="Budget of users who want less than epsilon; may be repeated.",
        ),
    ] = None,
    users: Annotated[
        int | None,
        typer.Option(
            "--users",
            "-n",
            parser=whole,
            metavar="INTEGER",
            help="Compare plans for so many users, and recommend one.",
        ),
    ] = None,
    tolerate: Annotated[
        float | None,
        typer.Option(
            parser=number,
            metavar="NUMBER",
            show_default="0.25",
            help="With --users: the share of attackers to withstand, below 1/2.",
        ),
    ] = None,
    target_error: Annotated[
        float | None,
        typer.Option(
            parser=number,
            metavar="NUMBER",
            help="With --users: the root mean squared error to reach, in natural units.",
        ),
    ] = None,
    trials: Annotated[
        int | None,
        typer.Option(
            parser=whole,
            metavar="INTEGER",
            show_default="1",
            help="With --users: collections of each kind that a plan is tried on.",
        ),
    ] = None,
    seed: Seed = None,
    plot: Annotated[
        Path | None,
        typer.Option(help="With --users: also draw the comparison (.png, .svg or .pdf)."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where to write the plan (JSON).")
    ] = None,
    json: Json = False,
) -> None:
    """Make a plan: mechanism, budgets, groups and value range; or show what a plan file means.

    With --users, plans are compared by what they promise, and the recommended one is made.

    Example: unpoison plan --epsilon 1 --low 0 --high 86400 -o plan.json
    """
    from unpoison.system.paths import check_output

    check_output(output, "--output")
    keys: dict[str, Any] = {
        "mechanism": mechanism,
        "epsilon": epsilon,
        "min_epsilon": min_epsilon,
        "low": low,
        "high": high,
        "categories": None if categories is None else _names(categories),
        "protocol": protocol,
        "tiers": [_tier(each, min_epsilon) for each in tier or []] or None,
    }
    wishes: dict[str, Any] = {
        "users": users,
        "tolerate": tolerate,
        "target_error": target_error,
        "trials": trials,
        "seed": seed,
        "plot": plot,
    }
    if users is not None:
        _recommend(source, keys, wishes, output, json)
        return
    _refuse_without_users(wishes)
    made = _made(source, keys)
    if output is not None:
        made.save(output)
    if json:
        typer.echo(made.to_json())
    else:
        _show(made, output)


def _refuse_without_users(wishes: dict[str, Any]) -> None:
    for name, value in wishes.items():
        if value is not None:
            flag = "--" + name.replace("_", "-")
            raise InvalidParameter(flag, "must be given with --users", value)


def _recommend(
    source: Path | None,
    keys: dict[str, Any],
    wishes: dict[str, Any],
    output: Path | None,
    json: bool,
) -> None:
    """Compare plans, write the recommended one, and show both."""
    from json import dumps

    from unpoison.cli.plan_advice import check_files, compared, show, write
    from unpoison.planner import Setting

    unused = {"plan": source, "protocol": keys.pop("protocol"), "tier": keys.pop("tiers")}
    refuse_beside("--users", unused)
    check_files(output, wishes["plot"])
    given = {name: wishes[name] for name in ("trials", "seed") if wishes[name] is not None}
    tolerate = TOLERATED if wishes["tolerate"] is None else wishes["tolerate"]
    setting = Setting(wishes["users"], tolerate, **given)
    found = compared(keys, setting, wishes["target_error"])
    write(found, output, wishes["plot"])
    if json:
        typer.echo(dumps(found.to_dict(), indent=2, ensure_ascii=False))
        return
    show(found)
    _show(found.recommended.candidate.plan, output)


def _made(source: Path | None, keys: dict[str, Any]) -> Any:
    from unpoison.plan import Plan

    if source is None:
        return Plan.new(**{key: value for key, value in keys.items() if value is not None})
    refuse_beside("--plan", {key.replace("tiers", "tier"): value for key, value in keys.items()})
    return Plan.load(source)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


def _tier(epsilon: float, min_epsilon: float | None) -> dict[str, float]:
    if min_epsilon is None:
        return {"epsilon": epsilon}
    return {"epsilon": epsilon, "min_epsilon": min(epsilon, min_epsilon)}


def _show(made: Any, output: Path | None) -> None:
    from unpoison.output.tables import print_table

    low, high = made.bounds
    domain = f"{len(made.categories)} categories" if made.categories else f"[{low:g}, {high:g}]"
    typer.echo(f"{made.mechanism}, {made.protocol}, epsilon {made.epsilon:g}, values in {domain}")
    groups = [(tier.epsilon, group) for tier in made.all_tiers for group in tier.groups]
    rows = [
        [
            str(place),
            f"{budget:g}",
            f"{group.epsilon:g}",
            str(group.reports),
            f"{float(group.spent):g}",
            f"{100 * group.share:.1f} %",
        ]
        for place, (budget, group) in enumerate(groups)
    ]
    heads = ["group", "budget", "epsilon a report", "reports a user", "spent", "users"]
    print_table(heads, rows)
    if output is not None:
        typer.echo(f"Written to {output}.")
