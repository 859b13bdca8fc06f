"""`unpoison plan`: makes a plan, shows what a plan file means, or recommends a plan."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unpoison.cli.options import (
    Json,
    Seed,
    flag_of,
    number_option,
    option,
    refuse_together,
    whole_number_option,
)
from unpoison.cli.plan_options import Epsilon, MechanismName, MinEpsilon
from unpoison.errors import InvalidParameter

if TYPE_CHECKING:
    from unpoison.plan import Plan

DEFAULT_TOLERATED = 0.25
"""The share of attackers in most of the paper's experiments."""


def plan(
    source: Annotated[
        Path | None,
        option("Show (or expand into --output) this plan file instead.", "--plan", "-p"),
    ] = None,
    mechanism: MechanismName = None,
    epsilon: Epsilon = None,
    min_epsilon: MinEpsilon = None,
    low: Annotated[float | None, number_option("Smallest value, in natural units.")] = None,
    high: Annotated[float | None, number_option("Largest value, in natural units.")] = None,
    step: Annotated[
        float | None,
        number_option(
            "Distance between neighbouring values, if values are low, low + step, …, high alone, "
            "such as 1 for whole numbers."
        ),
    ] = None,
    unit: Annotated[
        str | None, option("What values are measured in, such as s or km; shown with numbers.")
    ] = None,
    categories: Annotated[
        str | None, option("Category names for k-rr, with commas between.")
    ] = None,
    protocol: Annotated[str | None, option("dap, or the paper's baseline.", default="dap")] = None,
    tier: Annotated[
        list[float] | None,
        number_option("Budget of users who want less than epsilon; may be repeated."),
    ] = None,
    users: Annotated[
        int | None,
        whole_number_option("Compare plans for so many users, and recommend one.", "--users", "-n"),
    ] = None,
    tolerate: Annotated[
        float | None,
        number_option(
            "With --users: the share of attackers to withstand, below 1/2.",
            default=f"{DEFAULT_TOLERATED:g}",
        ),
    ] = None,
    target_error: Annotated[
        float | None,
        number_option("With --users: the root mean squared error to reach, in natural units."),
    ] = None,
    trials: Annotated[
        int | None,
        whole_number_option(
            "With --users: how often each simulation is repeated, for figures that are more exact.",
            default="1",
        ),
    ] = None,
    seed: Seed = None,
    plot: Annotated[
        Path | None, option("With --users: also draw the comparison (.png, .svg or .pdf).")
    ] = None,
    output: Annotated[
        Path | None, option("Where to write the plan (JSON).", "--output", "-o")
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
        "step": step,
        "unit": unit,
        "categories": None if categories is None else _split_names(categories),
        "protocol": protocol,
        "tiers": [_tier_keys(budget, min_epsilon) for budget in tier or []] or None,
    }
    advice_options: dict[str, Any] = {
        "users": users,
        "tolerate": tolerate,
        "target_error": target_error,
        "trials": trials,
        "seed": seed,
        "plot": plot,
    }
    if users is not None:
        _recommend(source, keys, advice_options, output, json)
        return
    _refuse_without_users(advice_options)
    agreed = _load_or_make(source, keys)
    if output is not None:
        agreed.save(output)
    if json:
        typer.echo(agreed.to_json())
    else:
        _print_plan(agreed, output)


def _refuse_without_users(advice_options: dict[str, Any]) -> None:
    for name, value in advice_options.items():
        if value is not None:
            raise InvalidParameter(flag_of(name), "must be given with --users", value)


def _recommend(
    source: Path | None,
    keys: dict[str, Any],
    advice_options: dict[str, Any],
    output: Path | None,
    json: bool,
) -> None:
    """Compare plans, write the recommended one, and print both."""
    from json import dumps

    from unpoison.cli.plan_advice import (
        check_outputs,
        compare_with_progress,
        print_comparison,
        write_outputs,
    )
    from unpoison.planner import Setting

    # The comparison chooses groups itself, for one tier of the DAP protocol.
    unused = {"plan": source, "protocol": keys.pop("protocol"), "tier": keys.pop("tiers")}
    refuse_together("--users", unused)
    check_outputs(output, advice_options["plot"])
    optional = {name: advice_options[name] for name in ("trials", "seed")}
    given = {name: value for name, value in optional.items() if value is not None}
    tolerate = advice_options["tolerate"]
    tolerate = DEFAULT_TOLERATED if tolerate is None else tolerate
    setting = Setting(advice_options["users"], tolerate, **given)
    comparison = compare_with_progress(keys, setting, advice_options["target_error"])
    write_outputs(comparison, output, advice_options["plot"])
    if json:
        typer.echo(dumps(comparison.to_dict(), indent=2, ensure_ascii=False))
        return
    print_comparison(comparison)
    _print_plan(comparison.recommended.candidate.plan, output)


def _load_or_make(source: Path | None, keys: dict[str, Any]) -> Plan:
    from unpoison.plan import Plan

    if source is None:
        return Plan.new(**{key: value for key, value in keys.items() if value is not None})
    # The plan's key is `tiers`, the option that repeats is `--tier`.
    refuse_together("--plan", {key.replace("tiers", "tier"): value for key, value in keys.items()})
    return Plan.load(source)


def _split_names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


def _tier_keys(epsilon: float, min_epsilon: float | str | None) -> dict[str, float | str]:
    """The keys of a tier; its smallest group budget cannot exceed its own."""
    if min_epsilon is None:
        return {"epsilon": epsilon}
    if isinstance(min_epsilon, str):
        return {"epsilon": epsilon, "min_epsilon": min_epsilon}
    return {"epsilon": epsilon, "min_epsilon": min(epsilon, min_epsilon)}


def _domain(plan: Plan) -> str:
    """The values that users may have."""
    if plan.categories is not None:
        return f"{len(plan.categories)} categories"
    low, high = plan.bounds
    steps = "" if plan.step is None else f" in steps of {plan.step:g}"
    unit = "" if plan.unit is None else f" {plan.unit}"
    return f"[{low:g}, {high:g}]{unit}{steps}"


def _print_plan(plan: Plan, output: Path | None) -> None:
    from unpoison.output.tables import print_table

    head = f"{plan.mechanism}, {plan.protocol}, epsilon {plan.epsilon:g}"
    typer.echo(f"{head}, values in {_domain(plan)}")
    groups = [(tier.epsilon, group) for tier in plan.all_tiers for group in tier.groups]
    rows = [
        [
            str(number),
            f"{budget:g}",
            f"{group.epsilon:g}",
            str(group.reports),
            f"{float(group.spent):g}",
            f"{100 * group.share:.1f} %",
        ]
        for number, (budget, group) in enumerate(groups)
    ]
    heads = ["group", "budget", "epsilon a report", "reports a user", "spent", "users"]
    print_table(heads, rows)
    if output is not None:
        typer.echo(f"Written to {output}.")
