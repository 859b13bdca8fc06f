"""`unpoison simulate`: what an attack would do to a metric, and what each method would say."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from unpoison.cli.app import Json, Seed, number, refuse_beside, whole
from unpoison.cli.filtering import InitialMean, SideRule, Weights, given_options
from unpoison.cli.planning import Epsilon, Mechanism, MinEpsilon
from unpoison.errors import InvalidParameter

METHODS = {
    "dap": ("ostrich", "trimming", "emf", "emf-star", "cemf-star"),
    "baseline": ("ostrich", "trimming", "baseline"),
}


def simulate(
    dataset: Annotated[
        str | None,
        typer.Option("--dataset", "-d", show_default="taxi", help="beta-2-5, beta-5-2 or taxi."),
    ] = None,
    values: Annotated[
        Path | None, typer.Option(help="Your own values instead: a Parquet or CSV file.")
    ] = None,
    column: Annotated[
        str | None, typer.Option("--column", "-c", help="The column of --values.")
    ] = None,
    users: Annotated[
        int | None,
        typer.Option(
            "--users",
            "-n",
            parser=whole,
            metavar="INTEGER",
            show_default="100000",
            help="Users drawn from the dataset.",
        ),
    ] = None,
    plan: Annotated[
        Path | None, typer.Option("--plan", "-p", help="Plan file (see `unpoison plan`).")
    ] = None,
    epsilon: Epsilon = None,
    min_epsilon: MinEpsilon = None,
    mechanism: Mechanism = None,
    attack: Annotated[
        str | None,
        typer.Option(
            "--attack",
            "-a",
            show_default="uniform on the outer quarter of the upper half",
            help="none, uniform:LOW,HIGH, point:AT or evasion:SHARE; positions in terms of C "
            "(end of the report domain), O (true mean), b (square wave).",
        ),
    ] = None,
    byzantine_fraction: Annotated[
        float,
        typer.Option(
            "--byzantine-fraction",
            "-g",
            parser=number,
            metavar="NUMBER",
            help="Share of attackers, γ, from 0 to less than 1/2.",
        ),
    ] = 0.25,
    methods: Annotated[
        str | None,
        typer.Option(
            show_default="all that fit the plan",
            help="Methods of `unpoison estimate`, with commas between.",
        ),
    ] = None,
    side_rule: SideRule = None,
    weights: Weights = None,
    initial_mean: InitialMean = None,
    trials: Annotated[
        int, typer.Option(parser=whole, metavar="INTEGER", help="Independent collections.")
    ] = 1,
    seed: Seed = None,
    reports: Annotated[
        Path | None,
        typer.Option(help="Also write the last collection's reports (.parquet or .csv)."),
    ] = None,
    summary: Annotated[
        Path | None, typer.Option(help="Also write the last collection's summary.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Also draw the last collection's fit (.png, .svg or .pdf).")
    ] = None,
    json: Json = False,
) -> None:
    """Simulate a poisoned collection and estimate it by several methods, beside the truth.

    Mechanism and budgets come from --plan, or from their own options without it.

    Example: unpoison simulate --dataset taxi --attack point:C --trials 5 --seed 1
    """
    import numpy as np

    from unpoison.cli.scenario import Scenario, drawn_sample, read_sample, streams
    from unpoison.protocols import FilterOptions
    from unpoison.trials import score

    _check_outputs(reports, summary, plot)
    options = given_options(weights=weights, side_rule=side_rule, initial_mean=initial_mean)
    if trials < 1:
        raise InvalidParameter("--trials", "must be at least 1", trials)
    seeds = np.random.SeedSequence(seed)
    if values is None:
        sample = drawn_sample(dataset or "taxi", users, column, streams(seeds)[0])
    else:
        refuse_beside("--values", {"dataset": dataset, "users": users})
        sample = read_sample(values, column)
    agreed = _plan(plan, sample, mechanism, epsilon, min_epsilon)
    names = _methods(methods, agreed)
    scenario = Scenario(
        agreed,
        sample,
        attack or "uniform:" + ",".join(agreed.group_mechanisms[0].outer_range),
        byzantine_fraction,
        trials,
        seeds,
        FilterOptions(**options),
    )
    rows, run = scenario.run(names)
    scenario.write(run, names, reports, summary, plot)
    _print(score(rows), rows, sample, agreed, json)


def _check_outputs(reports: Path | None, summary: Path | None, plot: Path | None) -> None:
    """Before anything is simulated: three outputs must be three files that can be written."""
    from unpoison.files import SUFFIXES, check_output
    from unpoison.plots import FORMATS

    check_output(reports, "--reports", SUFFIXES)
    check_output(summary, "--summary")
    check_output(plot, "--plot", FORMATS)
    paths = [path.resolve() for path in (reports, summary, plot) if path is not None]
    if len(set(paths)) < len(paths):
        raise InvalidParameter("outputs", "must be different files", paths[-1].name)


def _plan(
    plan: Path | None,
    sample: Any,
    mechanism: str | None,
    epsilon: float | None,
    min_epsilon: float | None,
) -> Any:
    from unpoison.plan import Plan

    keys = {"mechanism": mechanism, "epsilon": epsilon, "min_epsilon": min_epsilon}
    given: dict[str, Any] = {key: value for key, value in keys.items() if value is not None}
    if plan is None:
        return Plan.new(**given, low=sample.low, high=sample.high)
    refuse_beside("--plan", given)
    return Plan.load(plan)


def _methods(text: str | None, plan: Any) -> list[str]:
    """The chosen methods, or all that fit the plan."""
    from unpoison.methods import canonical

    if text is None:
        return list(METHODS[plan.protocol])
    names = [canonical(each.strip()) for each in text.split(",") if each.strip()]
    if not names:
        raise InvalidParameter("--methods", "must name at least one method", repr(text))
    return list(dict.fromkeys(names))


def _print(scores: Any, rows: Any, sample: Any, plan: Any, json: bool) -> None:
    grouped = [row for row in rows if row.collection == "grouped"]
    truth = sum(row.truth for row in grouped) / len(grouped)
    floor = sum(row.floor for row in grouped) / len(grouped)
    bound = sum(row.cramer_rao for row in grouped) / len(grouped)
    if json:
        import json as encoder

        facts = {
            "truth": truth,
            "floor": floor,
            "cramer_rao": bound,
            "source": sample.source,
            "plan": plan.to_dict(),
            "methods": [each.to_dict() for each in scores],
        }
        typer.echo(encoder.dumps(facts))
        return
    typer.echo(f"{sample.source}; {len(plan.all_groups)} groups, epsilon {plan.epsilon:g}")
    typer.echo(f"true mean of the honest users: {truth:.6g}\n")
    print_scores(scores)
    typer.echo(
        f"\nmse/floor: mean squared error over {scores[0].trials} trial(s), divided by the oracle "
        f"floor {floor:.3g}\n(the Cramér-Rao bound is {bound / floor:.2f} of it)."
    )
    if any(each.collection == "ungrouped" for each in scores):
        typer.echo(
            "Rivals appear twice: on the grouped reports, and on an ungrouped collection with all "
            "of epsilon."
        )


def print_scores(scores: Any) -> None:
    """The table of methods."""
    from unpoison.cli.tables import print_table

    table = [
        [
            each.method if each.collection == "grouped" else f"{each.method} (ungrouped)",
            f"{each.mean:.6g}",
            f"{each.bias:+.3g}",
            f"{each.mse_over_floor:.3g}",
            f"{each.byzantine_fraction:.3f}" if each.side != "none" else "–",
            each.side if each.side != "none" else "–",
            f"{each.seconds:.2f} s",
        ]
        for each in scores
    ]
    heads = ["method", "mean", "bias", "mse/floor", "attackers", "side", "time"]
    print_table(heads, table)
