"""An Estimate for people: what `unpoison estimate` prints without --json."""

from __future__ import annotations

from typing import Any

import typer

SHOWN_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def show(answer: Any, summary: Any) -> None:
    """The answer, where it came from, and what to make of it."""
    if answer.frequencies is None:
        _show_mean(answer, summary)
    typer.echo(f"users     {answer.users:.0f}, reports {answer.reports}")
    if answer.invalid:
        typer.echo(f"left out  {answer.invalid} invalid reports")
    if answer.groups:
        typer.echo(f"attackers {_attackers(answer.byzantine)}, {_place(answer)}")
    if answer.frequencies is not None:
        _show_frequencies(answer)
    if answer.groups:
        _show_groups(answer, summary)
    typer.echo(f"\n{answer.verdict}")


def _attackers(byzantine: Any) -> str:
    share = f"{100 * byzantine.fraction:.1f} %"
    if byzantine.interval is None:
        return share
    low, high = byzantine.interval
    return f"{share} (95 %: {100 * low:.1f} to {100 * high:.1f})"


def _place(answer: Any) -> str:
    byzantine = answer.byzantine
    if byzantine.categories is None:
        return f"side {byzantine.side}"
    return f"categories {byzantine.where}"


def _show_mean(answer: Any, summary: Any) -> None:
    from unpoison.estimate.wording import format_value

    sure = ""
    if answer.interval is not None:
        low, high = (format_value(end, summary.plan) for end in answer.interval)
        sure = f"   95 %: {low} to {high}"
    typer.echo(f"mean      {format_value(answer.mean, summary.plan)}{sure}   ({answer.method})")
    found = answer.distribution
    if found is not None:
        quantiles = ", ".join(
            f"{share:.0%} {format_value(found.quantile(share), summary.plan)}"
            for share in SHOWN_QUANTILES
        )
        typer.echo(f"quantiles {quantiles}")
        deviation = format_value(found.variance**0.5, summary.plan)
        typer.echo(
            f"deviation {deviation}   (quantiles and this from {len(found.fractions)} buckets, "
            "all in --json)"
        )


def _show_frequencies(answer: Any) -> None:
    from unpoison.output.tables import print_table

    plain = answer.fit.get("unfiltered_frequencies")
    poisoned = answer.byzantine.categories or ()
    sure = answer.fit.get("frequency_intervals", {})
    heads = ["category", answer.method, *(["95 %"] if sure else [])]
    heads += ["unfiltered", "poisoned"] if plain else []
    rows = []
    for name, frequency in answer.frequencies.items():
        row = [name, f"{100 * frequency:.2f} %"]
        if sure:
            row.append(" to ".join(f"{100 * end:.2f}" for end in sure[name]))
        if plain:
            row += [f"{100 * plain[name]:.2f} %", "yes" if name in poisoned else ""]
        rows.append(row)
    typer.echo("")
    print_table(heads, rows)


def _show_groups(answer: Any, summary: Any) -> None:
    from unpoison.estimate.wording import format_value
    from unpoison.output.tables import print_table

    heads = ["group", "epsilon", "reports", "weight", "attackers", "iterations"]
    rows = [
        [
            str(group.group),
            f"{group.epsilon:g}",
            str(group.reports),
            f"{group.weight:.3f}",
            f"{100 * group.byzantine_fraction:.1f} %",
            str(group.iterations) + ("" if group.converged else " (bound)"),
        ]
        for group in answer.groups
    ]
    if answer.frequencies is None:
        heads.insert(3, "mean")
        for row, group in zip(rows, answer.groups, strict=True):
            row.insert(3, format_value(group.mean, summary.plan))
    typer.echo("")
    print_table(heads, rows)
