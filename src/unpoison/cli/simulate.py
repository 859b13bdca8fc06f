"""`unpoison simulate`: what an attack would do to a metric, and what each method would say."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from unpoison.cli.app import Json, PlanFile, Seed, number
from unpoison.errors import InvalidParameter

METHODS = "ostrich,trimming,emf,emf-star,cemf-star"


def simulate(
    dataset: Annotated[
        str, typer.Option("--dataset", "-d", help="beta-2-5, beta-5-2 or taxi.")
    ] = "taxi",
    values: Annotated[
        Path | None, typer.Option(help="Your own values instead: a Parquet or CSV file.")
    ] = None,
    column: Annotated[
        str | None, typer.Option("--column", "-c", help="The column of --values.")
    ] = None,
    users: Annotated[int, typer.Option("--users", "-n", help="Users drawn from the dataset.")] = (
        100_000
    ),
    plan: PlanFile = None,
    epsilon: Annotated[
        float, typer.Option("--epsilon", "-e", parser=number, help="Without --plan: the budget.")
    ] = 1.0,
    min_epsilon: Annotated[
        float | None, typer.Option(parser=number, help="Without --plan: ε0. [1/16]")
    ] = None,
    mechanism: Annotated[
        str, typer.Option("--mechanism", "-m", help="Without --plan: the mechanism.")
    ] = "piecewise",
    attack: Annotated[
        str,
        typer.Option(
            "--attack",
            "-a",
            help="none, uniform:LOW,HIGH, point:AT or evasion:SHARE; positions in terms of C "
            "(end of the report domain), O (true mean), b (square wave).",
        ),
    ] = "uniform:3C/4,C",
    byzantine_fraction: Annotated[
        float, typer.Option("--byzantine-fraction", "-g", help="Share of attackers, γ.")
    ] = 0.25,
    methods: Annotated[str, typer.Option(help="Methods, with commas between.")] = METHODS,
    trials: Annotated[int, typer.Option(help="Independent collections.", min=1)] = 1,
    seed: Seed = None,
    reports: Annotated[
        Path | None,
        typer.Option(help="Also write the last collection's reports (.parquet, .csv)."),
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

    Example: unpoison simulate --dataset taxi --attack point:C --trials 5 --seed 1
    """
    import numpy as np

    from unpoison.cli.progress import progress
    from unpoison.methods import estimates
    from unpoison.trials import run_trials, score

    rng = np.random.default_rng(seed)
    sample_stream, trial_stream, report_stream = rng.spawn(3)
    sample = _sample(dataset, values, column, users, sample_stream)
    agreed = _plan(plan, mechanism, epsilon, min_epsilon, sample)
    names = [each.strip() for each in methods.split(",") if each.strip()]
    if not names:
        raise InvalidParameter("methods", "must name at least one method", repr(methods))
    total = 2 * len(sample.values) * trials
    with progress("Simulating", total) as advance:
        rows, run = run_trials(
            agreed,
            sample.values,
            attack,
            byzantine_fraction,
            names,
            trials=trials,
            rng=trial_stream,
            advance=advance,
        )
    if reports is not None:
        _write_reports(reports, agreed, sample.values, attack, byzantine_fraction, report_stream)
    if summary is not None:
        from unpoison.cli.summarise import save as save_summary

        save_summary(run.summary, summary)
    if plot is not None:
        from unpoison.plots import draw_estimate, save

        best = [name for name in ("emf-star", "emf", "cemf-star") if name in names] or ["emf-star"]
        save(draw_estimate(estimates(run.summary, best[:1])[best[0]], run.truth), plot)
    _print(score(rows), rows, sample, agreed, json)


def _sample(dataset: str, values: Path | None, column: str | None, users: int, rng: Any) -> Any:
    """Users from a dataset, or all rows of a file with their own range."""
    from unpoison.datasets import Sample, datasets

    if values is None:
        if users < 1:
            raise InvalidParameter("users", "must be at least 1", users)
        return datasets[dataset]().draw(users, rng)
    if column is None:
        raise InvalidParameter("--column", "must be given with --values", None)
    numbers = _read_column(values, column)
    source = f"{values.name}, column {column!r}, {len(numbers)} rows"
    return Sample(numbers, float(numbers.min()), float(numbers.max()), source)


def _read_column(path: Path, column: str) -> Any:
    import numpy as np

    from unpoison.errors import InvalidFile
    from unpoison.files import read_batches

    if not path.exists():
        raise InvalidFile(path, "does not exist")
    parts = [batch.columns[column] for batch in read_batches(path, [column])]
    numbers = np.concatenate(parts).astype(np.float64) if parts else np.empty(0)
    if not len(numbers) or not np.isfinite(numbers).all():
        raise InvalidFile(path, f"must hold finite numbers in column {column!r}")
    return numbers


def _plan(
    plan: Path | None, mechanism: str, epsilon: float, min_epsilon: float | None, sample: Any
) -> Any:
    from unpoison.plan import Plan

    if plan is not None:
        return Plan.load(plan)
    return Plan.new(mechanism, epsilon, min_epsilon, low=sample.low, high=sample.high)


def _write_reports(
    path: Path, plan: Any, values: Any, attack: str, byzantine_fraction: float, rng: Any
) -> None:
    """One more collection, report by report: what a collector's files would look like."""
    import numpy as np

    from unpoison.files import ReportWriter, whole_file
    from unpoison.simulation import Crowd

    crowd = Crowd.draw(plan, values, attack, byzantine_fraction, rng)
    with whole_file(path) as file:
        writer = ReportWriter(file, path)
        for group, reports, _ in crowd.reports():
            writer.write(np.full(len(reports), group), reports)
        writer.close()


def _print(scores: Any, rows: Any, sample: Any, plan: Any, json: bool) -> None:
    truth = sum(row.truth for row in rows) / len(rows)
    floor = sum(row.floor for row in rows) / len(rows)
    if json:
        import json as encoder

        facts = {
            "truth": truth,
            "floor": floor,
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
        f"floor {floor:.3g}.\nRivals appear twice: on the grouped reports, and on an ungrouped "
        "collection with all of epsilon."
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
