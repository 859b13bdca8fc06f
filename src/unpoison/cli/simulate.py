"""`unpoison simulate`: what an attack would do to a metric, and what each method would say."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from unpoison.cli.app import Json, Seed, number, refuse_beside, whole
from unpoison.cli.plan_options import Epsilon, Mechanism, MinEpsilon
from unpoison.cli.scheme_options import (
    InitialMean,
    PostProcessing,
    SideRule,
    StatisticName,
    Weights,
    given_options,
)
from unpoison.errors import InvalidParameter

METHODS = {
    "dap": ("ostrich", "trimming", "emf", "emf-star", "cemf-star", "joint"),
    "baseline": ("ostrich", "trimming", "baseline"),
}
ON_NUMBERS_ONLY = ("trimming",)
DEFAULT_CATEGORY_ATTACK = "maximal-gain"


def simulate(
    dataset: Annotated[
        str | None,
        typer.Option(
            "--dataset",
            "-d",
            show_default="taxi",
            help="beta-2-5, beta-5-2, taxi, retirement or covid-19.",
        ),
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
            show_default="uniform on the outer quarter of the upper half; on categories "
            "maximal-gain",
            help="On numbers none, uniform:LOW,HIGH, gaussian, beta, triangular (the same ends), "
            "point:AT, evasion:SHARE, noise, input:VALUE, adaptive:GROUPS or opposite:LOW,HIGH, "
            "with positions in terms of C (end of the report domain), O (true mean), b (square "
            "wave); on categories none, targets:NAME,NAME, maximal-gain:COUNT, random or "
            "input:NAME.",
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
    compare: Annotated[
        bool,
        typer.Option(
            "--compare",
            help="All methods and defences that fit, beside an oracle that knows who attacks; "
            "--plot then draws their errors.",
        ),
    ] = False,
    fast: Annotated[
        bool,
        typer.Option("--fast", help="Draw counts directly instead of every report."),
    ] = False,
    statistic: StatisticName = None,
    post_processing: PostProcessing = None,
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
    from unpoison.estimate.statistic import Statistic
    from unpoison.output.scores import print_outcome
    from unpoison.protocols import FilterOptions
    from unpoison.simulation.trials import score

    _check_outputs(reports, summary, plot)
    options = given_options(weights=weights, side_rule=side_rule, initial_mean=initial_mean)
    if trials < 1:
        raise InvalidParameter("--trials", "must be at least 1", trials)
    seeds = np.random.SeedSequence(seed)
    if values is None:
        sample = drawn_sample(dataset or "taxi", users, column, streams(seeds)[0])
    else:
        refuse_beside("--values", {"dataset": dataset, "users": users})
        sample = read_sample(values, column, _wants_categories(plan, mechanism))
    agreed = _plan(plan, sample, mechanism, epsilon, min_epsilon)
    if compare:
        refuse_beside("--compare", {"methods": methods})
    if fast:
        refuse_beside("--fast", {"reports": reports})
    names = _all_methods(agreed, statistic) if compare else _methods(methods, agreed)
    _check_used(options, names)
    scenario = Scenario(
        agreed,
        sample,
        attack or _default_attack(agreed),
        byzantine_fraction,
        trials,
        seeds,
        FilterOptions(**options),
        Statistic.of(agreed, statistic, post_processing),
        fast,
    )
    rows, run = scenario.run(names)
    scores = score(rows)
    scenario.write(run, names, scores if compare else None, reports, summary, plot)
    print_outcome(scores, rows, run, sample, agreed, json)


def _check_used(options: dict[str, Any], names: list[str]) -> None:
    """Options of the paper's schemes do nothing for other methods."""
    from unpoison.protocols import SCHEMES

    if options and not {*SCHEMES, "baseline"} & {*names}:
        flag = "--" + next(iter(options)).replace("_", "-")
        raise InvalidParameter(flag, "goes with the paper's schemes", ", ".join(names))


def _check_outputs(reports: Path | None, summary: Path | None, plot: Path | None) -> None:
    """Before anything is simulated: three outputs must be three files that can be written."""
    from unpoison.output.plots import FORMATS
    from unpoison.reports.writing import REPORT_SUFFIXES
    from unpoison.system.paths import check_output

    check_output(reports, "--reports", REPORT_SUFFIXES)
    check_output(summary, "--summary")
    check_output(plot, "--plot", FORMATS)
    paths = [path.resolve() for path in (reports, summary, plot) if path is not None]
    if len(set(paths)) < len(paths):
        raise InvalidParameter("outputs", "must be different files", paths[-1].name)


def _wants_categories(plan: Path | None, mechanism: str | None) -> bool:
    """Whether a column is to be read as names."""
    from unpoison.mechanisms import mechanisms
    from unpoison.plan import Plan

    if plan is not None:
        return Plan.load(plan).categorical
    return mechanism is not None and mechanisms[mechanism].categorical


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
    if plan is not None:
        refuse_beside("--plan", given)
        agreed = Plan.load(plan)
    elif sample.categories is None:
        agreed = Plan.new(**given, low=sample.low, high=sample.high)
    else:
        agreed = Plan.new(**{"mechanism": "k-rr", **given}, categories=sample.categories)
    if agreed.categorical != (sample.categories is not None):
        kind = "categories" if sample.categories is not None else "numbers"
        raise InvalidParameter("mechanism", f"must be one for {kind}", agreed.mechanism)
    return agreed


def _default_attack(plan: Any) -> str:
    if plan.categorical:
        return DEFAULT_CATEGORY_ATTACK
    return "uniform:" + ",".join(plan.group_mechanisms[0].outer_range)


def _all_methods(plan: Any, statistic: str | None) -> list[str]:
    """The oracle, and every method that can be run here on such a plan."""
    from unpoison.estimate.methods import method_names, methods
    from unpoison.simulation.trials import ORACLE

    return [ORACLE, *(name for name in method_names() if methods[name].fits(plan, statistic))]


def _methods(text: str | None, plan: Any) -> list[str]:
    """The chosen methods, or all that fit the plan."""
    from unpoison.estimate.methods import find_method

    if text is None:
        fitting = METHODS[plan.protocol]
        return [name for name in fitting if not (plan.categorical and name in ON_NUMBERS_ONLY)]
    names = [find_method(each.strip()).name for each in text.split(",") if each.strip()]
    if not names:
        raise InvalidParameter("--methods", "must name at least one method", repr(text))
    return list(dict.fromkeys(names))
