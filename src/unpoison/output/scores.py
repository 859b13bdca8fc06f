"""What a simulation showed, for people and as JSON."""

from __future__ import annotations

import math
from typing import Any

import typer


def print_outcome(scores: Any, rows: Any, run: Any, sample: Any, plan: Any, json: bool) -> None:
    """What `unpoison simulate` prints: the truth, and every method beside it."""
    grouped = [row for row in rows if row.collection == "grouped"]
    truth = sum(row.truth for row in grouped) / len(grouped)
    floor = sum(row.floor for row in grouped) / len(grouped)
    bound = sum(row.cramer_rao for row in grouped) / len(grouped)
    if json:
        _print_json(scores, truth, floor, bound, run, sample, plan)
        return
    typer.echo(f"{sample.source}; {len(plan.all_groups)} groups, epsilon {plan.epsilon:g}")
    if plan.categorical:
        typer.echo("")
        _print_frequencies(scores, run)
        typer.echo("")
    else:
        typer.echo(f"true mean of the honest users: {truth:.6g}\n")
    print_scores(scores)
    _print_notes(scores, floor, bound, plan)


def _print_json(
    scores: Any, truth: float, floor: float, bound: float, run: Any, sample: Any, plan: Any
) -> None:
    import json as encoder

    facts = {
        **({"frequencies": run.frequencies} if plan.categorical else {"truth": truth}),
        "floor": floor,
        "cramer_rao": bound,
        "source": sample.source,
        "plan": plan.to_dict(),
        "methods": [each.to_dict() for each in scores],
    }
    typer.echo(encoder.dumps(facts))


def _print_frequencies(scores: Any, run: Any) -> None:
    """Truth and estimates of every category, in the last collection."""
    from unpoison.output.tables import print_table

    table = [
        [
            name,
            f"{100 * truth:.2f} %",
            *(f"{100 * each.frequencies[name]:.2f} %" for each in scores),
        ]
        for name, truth in run.frequencies.items()
    ]
    print_table(["category", "truth", *(each.label for each in scores)], table)


def _print_notes(scores: Any, floor: float, bound: float, plan: Any) -> None:
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
    if any(each.collection == "ungrouped" for each in scores):
        typer.echo(
            "Rivals appear twice: on the grouped reports, and on an ungrouped collection with all "
            "of epsilon."
        )


def print_scores(scores: Any) -> None:
    """The table of methods, with the columns that there are numbers for."""
    from unpoison.output.tables import print_table

    columns = {
        "mean": [f"{each.mean:.6g}" for each in scores],
        "bias": [f"{each.bias:+.3g}" for each in scores],
        "mse": [f"{each.mse:.3g}" for each in scores],
        "mse/floor": [_number(each.mse_over_floor) for each in scores],
        "wasserstein": [f"{each.wasserstein:.4g}" for each in scores],
        "attackers": [f"{each.byzantine_fraction:.3f}" if _finds(each) else "–" for each in scores],
        "side": [each.side if _finds(each) else "–" for each in scores],
        "exact": [f"{each.located:.0%}" if _finds(each) else "–" for each in scores],
        "time": [f"{each.seconds:.2f} s" for each in scores],
    }
    of_categories = any(each.frequencies for each in scores)
    unused = {"mean", "bias"} if of_categories else {"mse", "exact"}
    if all(math.isnan(each.wasserstein) for each in scores):
        unused.add("wasserstein")
    columns = {name: column for name, column in columns.items() if name not in unused}
    rows = zip((each.label for each in scores), *columns.values(), strict=True)
    heads = ["poisoned" if name == "side" and of_categories else name for name in columns]
    print_table(["method", *heads], [list(row) for row in rows])


def _number(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.3g}"


def _finds(line: Any) -> bool:
    """Whether the method says anything about attackers; of categories, that there are none too."""
    found = line.side != "none" or line.byzantine_fraction > 0
    return bool(found or not math.isnan(line.located))
