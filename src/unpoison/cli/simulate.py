"""`unpoison simulate`: simulates an attack, and scores what each method makes of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from unpoison.cli.estimation_options import (
    InitialMean,
    PostProcessing,
    SideRule,
    StatisticName,
    Weights,
    chosen_options,
)
from unpoison.cli.options import (
    Json,
    Seed,
    check_at_least_one,
    flag_of,
    number_option,
    option,
    refuse_same_file,
    refuse_together,
    whole_number_option,
)
from unpoison.cli.plan_options import Epsilon, MechanismName, MinEpsilon
from unpoison.errors import InvalidParameter

if TYPE_CHECKING:
    from unpoison.datasets import Sample
    from unpoison.plan import Plan

DEFAULT_DATASET = "taxi"
DEFAULT_USERS = 100_000
"""Enough for the paper's effects to be seen, few enough for a run of seconds."""
DEFAULT_BYZANTINE_FRACTION = 0.25
"""The default of `simulation.simulate`, which is not imported for the sake of a quick --help."""
DEFAULT_CATEGORY_ATTACK = "maximal-gain"


def simulate(
    dataset: Annotated[
        str | None, option("{datasets}.", "--dataset", "-d", default=DEFAULT_DATASET)
    ] = None,
    values: Annotated[
        Path | None, option("Your own values instead: a Parquet or CSV file.")
    ] = None,
    column: Annotated[str | None, option("The column of --values.", "--column", "-c")] = None,
    users: Annotated[
        int | None,
        whole_number_option(
            "Users drawn from the dataset.", "--users", "-n", default=str(DEFAULT_USERS)
        ),
    ] = None,
    plan: Annotated[Path | None, option("Plan file (see `unpoison plan`).", "--plan", "-p")] = None,
    epsilon: Epsilon = None,
    min_epsilon: MinEpsilon = None,
    mechanism: MechanismName = None,
    attack: Annotated[
        str | None,
        option(
            "On numbers {attacks_on_numbers}, with positions in terms of C (end of the report "
            "domain), O (true mean), b (square wave); on categories {attacks_on_categories}. "
            "Most parameters may be left out.",
            "--attack",
            "-a",
            default="uniform on the outer quarter of the upper half; on categories maximal-gain",
        ),
    ] = None,
    byzantine_fraction: Annotated[
        float,
        number_option(
            "Share of attackers, γ, from 0 to less than 1/2.", "--byzantine-fraction", "-g"
        ),
    ] = DEFAULT_BYZANTINE_FRACTION,
    fault: Annotated[
        str | None,
        option(
            "Some honest users' clients are broken: {faults}. Then nobody attacks, unless "
            "--attack is given too."
        ),
    ] = None,
    faulty_fraction: Annotated[
        float | None,
        number_option("Share of the honest users with --fault, from 0 to 1.", default="0.25"),
    ] = None,
    methods: Annotated[
        str | None,
        option(
            "Methods of `unpoison estimate`, with commas between.", default="all that fit the plan"
        ),
    ] = None,
    compare: Annotated[
        bool,
        option(
            "All methods and defences that fit, beside an oracle that knows who attacks; "
            "--plot then draws their errors.",
            "--compare",
        ),
    ] = False,
    fast: Annotated[
        bool, option("Draw counts directly instead of every report.", "--fast")
    ] = False,
    statistic: StatisticName = None,
    post_processing: PostProcessing = None,
    side_rule: SideRule = None,
    weights: Weights = None,
    initial_mean: InitialMean = None,
    trials: Annotated[int, whole_number_option("Independent collections.")] = 1,
    seed: Seed = None,
    reports: Annotated[
        Path | None, option("Also write the last collection's reports (.parquet or .csv).")
    ] = None,
    summary: Annotated[Path | None, option("Also write the last collection's summary.")] = None,
    plot: Annotated[
        Path | None, option("Also draw the last collection's fit (.png, .svg or .pdf).")
    ] = None,
    json: Json = False,
) -> None:
    """Simulate a poisoned collection and estimate it by several methods, beside the truth.

    Mechanism and budgets come from --plan, or from their own options without it.

    Example: unpoison simulate --dataset taxi --attack point:C --trials 5 --seed 1
    """
    import numpy as np

    from unpoison.cli.sample import draw_sample, read_sample
    from unpoison.cli.scenario import Scenario, random_streams
    from unpoison.estimate.statistic import Statistic
    from unpoison.output.simulation_text import print_simulation
    from unpoison.protocols import FilterOptions
    from unpoison.simulation import score
    from unpoison.simulation.simulate import DEFAULT_FAULTY_FRACTION

    _check_outputs(reports, summary, plot)
    options = chosen_options(weights=weights, side_rule=side_rule, initial_mean=initial_mean)
    check_at_least_one("--trials", trials)
    if fault is None and faulty_fraction is not None:
        raise InvalidParameter("--faulty-fraction", "must be given with --fault", faulty_fraction)
    # Kept as a sequence, also without --seed: reports are drawn from it a second time.
    seeds = np.random.SeedSequence(seed)
    if values is None:
        size = DEFAULT_USERS if users is None else users
        sample = draw_sample(dataset or DEFAULT_DATASET, size, column, random_streams(seeds)[0])
    else:
        refuse_together("--values", {"dataset": dataset, "users": users})
        sample = read_sample(values, column, _reads_categories(plan, mechanism))
    agreed = _load_or_make_plan(plan, sample, mechanism, epsilon, min_epsilon)
    if compare:
        refuse_together("--compare", {"methods": methods})
    if fast:
        refuse_together("--fast", {"reports": reports})
    names = _all_fitting_methods(agreed, statistic) if compare else _methods(methods, agreed)
    _refuse_unused_options(options, names)
    scenario = Scenario(
        agreed,
        sample,
        attack or (_default_attack(agreed) if fault is None else "none"),
        byzantine_fraction,
        trials,
        seeds,
        FilterOptions(**options),
        Statistic.of(agreed, statistic, post_processing),
        fast,
        fault,
        DEFAULT_FAULTY_FRACTION if faulty_fraction is None else faulty_fraction,
    )
    rows, run = scenario.run(names)
    scores = score(rows)
    scenario.write(run, names, scores if compare else None, reports, summary, plot)
    print_simulation(scores, rows, run, sample, agreed, as_json=json)


def _refuse_unused_options(options: dict[str, Any], names: list[str]) -> None:
    """Refuse options of the paper's schemes where none of them is run."""
    from unpoison.estimate.methods import methods

    if options and not any(name in methods and methods[name].of_the_paper for name in names):
        flag = flag_of(next(iter(options)))
        raise InvalidParameter(flag, "goes with the paper's schemes", ", ".join(names))


def _check_outputs(reports: Path | None, summary: Path | None, plot: Path | None) -> None:
    """Refuse outputs that cannot be written, or are one file, before anything is simulated."""
    from unpoison.output.figure import FORMATS
    from unpoison.reports.writing import REPORT_SUFFIXES
    from unpoison.system.paths import check_output

    check_output(reports, "--reports", REPORT_SUFFIXES)
    check_output(summary, "--summary")
    check_output(plot, "--plot", FORMATS)
    refuse_same_file(reports, summary, plot)


def _reads_categories(plan: Path | None, mechanism: str | None) -> bool:
    """Whether a column is to be read as names of categories."""
    from unpoison.mechanisms import mechanisms
    from unpoison.plan import Plan

    if plan is not None:
        return Plan.load(plan).categorical
    return mechanism is not None and mechanisms[mechanism].categorical


def _load_or_make_plan(
    plan: Path | None,
    sample: Sample,
    mechanism: str | None,
    epsilon: float | None,
    min_epsilon: float | str | None,
) -> Plan:
    from unpoison.plan import Plan

    keys = {"mechanism": mechanism, "epsilon": epsilon, "min_epsilon": min_epsilon}
    given: dict[str, Any] = {key: value for key, value in keys.items() if value is not None}
    if plan is not None:
        refuse_together("--plan", given)
        agreed = Plan.load(plan)
    elif sample.categories is None:
        agreed = Plan.new(**given, low=sample.low, high=sample.high)
    else:
        # The default mechanism of a plan is for numbers.
        agreed = Plan.new(**{"mechanism": "k-rr", **given}, categories=sample.categories)
    if agreed.categorical != (sample.categories is not None):
        kind = "categories" if sample.categories is not None else "numbers"
        raise InvalidParameter("mechanism", f"must be one for {kind}", agreed.mechanism)
    return agreed


def _default_attack(plan: Plan) -> str:
    """The paper's attack on numbers, at the outer part of the domain, or maximal-gain."""
    if plan.categorical:
        return DEFAULT_CATEGORY_ATTACK
    return "uniform:" + ",".join(plan.group_mechanisms[0].outer_range)


def _all_fitting_methods(plan: Plan, statistic: str | None) -> list[str]:
    """The oracle, and every method that can be run here on such a plan."""
    from unpoison.estimate.methods import method_names, methods
    from unpoison.simulation import ORACLE

    return [ORACLE, *(name for name in method_names() if methods[name].fits(plan, statistic))]


def _default_methods(plan: Plan) -> list[str]:
    """The rivals that take no time, then the filters, of those that fit the plan."""
    from unpoison.estimate.methods import method_names, methods

    rivals = [name for name in method_names() if methods[name].is_defence]
    # The recommended one is first in the registry, and last in a comparison: next to the floor.
    recommended, *filters = [name for name in method_names() if not methods[name].is_defence]
    return [
        name
        for name in (*rivals, *filters, recommended)
        if methods[name].runs_by_default and methods[name].fits(plan)
    ]


def _methods(text: str | None, plan: Plan) -> list[str]:
    """The methods of `--methods`, or the default ones that fit the plan."""
    from unpoison.estimate.methods import find_method

    if text is None:
        return _default_methods(plan)
    names = [find_method(name.strip()).name for name in text.split(",") if name.strip()]
    if not names:
        raise InvalidParameter("--methods", "must name at least one method", repr(text))
    # A method that is named twice runs once.
    return list(dict.fromkeys(names))
