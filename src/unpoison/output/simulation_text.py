"""The outcome of a simulation on standard output: the truth, and every method beside it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence

import typer

from unpoison.datasets import Sample
from unpoison.output.tables import print_table
from unpoison.plan import Plan
from unpoison.simulation import Score, Simulation, Trial
from unpoison.simulation.trial import GROUPED, UNGROUPED

NO_VALUE = "–"


def print_simulation(
    scores: Sequence[Score],
    rows: Sequence[Trial],
    run: Simulation,
    sample: Sample,
    plan: Plan,
    *,
    as_json: bool,
) -> None:
    """Print what `unpoison simulate` prints, for people or as JSON.

    >>> import numpy as np
    >>> from unpoison.simulation import run_trials, score
    >>> plan, sample = Plan.new(low=0, high=1), Sample(np.full(2000, 0.25), 0.0, 1.0, "2000 alike")
    >>> rows, run = run_trials(plan, sample.values, "none", 0.0, ["ostrich"])
    >>> print_simulation(score(rows), rows, run, sample, plan, as_json=False)
    2000 alike; 4 groups, epsilon 1
    true mean of the honest users: 0.25
    ...
    """
    grouped = [row for row in rows if row.collection == GROUPED]
    truth = sum(row.truth for row in grouped) / len(grouped)
    floor = sum(row.floor for row in grouped) / len(grouped)
    bound = sum(row.cramer_rao for row in grouped) / len(grouped)
    if as_json:
        facts = {
            **({"frequencies": run.frequencies} if plan.categorical else {"truth": truth}),
            "floor": floor,
            "cramer_rao": bound,
            "source": sample.source,
            "plan": plan.to_dict(),
            "methods": [line.to_dict() for line in scores],
        }
        typer.echo(json.dumps(facts))
        return
    typer.echo(f"{sample.source}; {len(plan.all_groups)} groups, epsilon {plan.epsilon:g}")
    if plan.categorical:
        typer.echo("")
        _print_frequencies(scores, run)
        typer.echo("")
    else:
        unit = "" if plan.unit is None else f" {plan.unit}"
        typer.echo(f"true mean of the honest users: {truth:.6g}{unit}\n")
    print_scores(scores)
    _print_notes(scores, floor, bound, plan)


def _print_frequencies(scores: Sequence[Score], run: Simulation) -> None:
    """Truth and estimates of every category, in the last collection."""
    columns = [run.frequencies or {}, *(line.frequencies or {} for line in scores)]
    table = [
        [name, *(f"{100 * frequencies[name]:.2f} %" for frequencies in columns)]
        for name in columns[0]
    ]
    print_table(["category", "truth", *(line.label for line in scores)], table)


def _print_notes(scores: Sequence[Score], floor: float, bound: float, plan: Plan) -> None:
    """Explain the columns of the table."""
    trials = f"{scores[0].trials} trial(s)"
    if plan.group_mechanisms[0].unbiased:
        typer.echo(
            f"\nmse/floor: mean squared error over {trials}, divided by the oracle "
            f"floor {floor:.3g}\n(the Cramér-Rao bound is {bound / floor:.2f} of it)."
        )
    else:
        kind = " of a frequency" if plan.categorical else ""
        typer.echo(
            f"\nmse/floor: mean squared error{kind} over {trials}, divided by the Cramér-Rao bound "
            f"{floor:.3g}."
        )
    if plan.categorical:
        typer.echo("exact: how often exactly the categories that attackers send were found.")
    if any(line.collection == UNGROUPED for line in scores):
        typer.echo(
            "Rivals appear twice: on the grouped reports, and on an ungrouped collection with all "
            "of epsilon."
        )


def print_scores(scores: Sequence[Score]) -> None:
    """Print the table of methods, with the columns that there are numbers for.

    >>> line = Score("emf", GROUPED, 10, 0.5, 0.0, 0.125, 1.25, 0.25, side="right", seconds=0.1)
    >>> print_scores([line])
    method  mean  bias  mse/floor  attackers   side    time
    ──────  ────  ────  ─────────  ─────────  ─────  ──────
    emf      0.5    +0       1.25      0.250  right  0.10 s
    """
    columns = {
        "mean": [f"{line.mean:.6g}" for line in scores],
        "bias": [f"{line.bias:+.3g}" for line in scores],
        "mse": [f"{line.mse:.3g}" for line in scores],
        "mse/floor": [_number(line.mse_over_floor) for line in scores],
        "wasserstein": [f"{line.wasserstein:.4g}" for line in scores],
        "attackers": _if_estimated(scores, lambda line: f"{line.byzantine_fraction:.3f}"),
        "side": _if_estimated(scores, lambda line: line.side),
        "exact": _if_estimated(scores, lambda line: f"{line.located:.0%}"),
        "time": [f"{line.seconds:.2f} s" for line in scores],
    }
    of_categories = any(line.frequencies for line in scores)
    unused = {"mean", "bias"} if of_categories else {"mse", "exact"}
    if all(math.isnan(line.wasserstein) for line in scores):
        unused.add("wasserstein")
    columns = {name: column for name, column in columns.items() if name not in unused}
    rows = zip((line.label for line in scores), *columns.values(), strict=True)
    heads = ["poisoned" if name == "side" and of_categories else name for name in columns]
    print_table(["method", *heads], [list(row) for row in rows])


def _number(value: float) -> str:
    return NO_VALUE if math.isnan(value) else f"{value:.3g}"


def _if_estimated(scores: Sequence[Score], cell: Callable[[Score], str]) -> list[str]:
    """The cell of every method that estimates attackers, and a dash for the others."""
    return [cell(line) if _estimates_attackers(line) else NO_VALUE for line in scores]


def _estimates_attackers(line: Score) -> bool:
    """Whether the method says anything about attackers; of categories, that there are none too."""
    sees_attackers = line.side != "none" or line.byzantine_fraction > 0
    return sees_attackers or not math.isnan(line.located)
