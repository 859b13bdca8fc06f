"""An Estimate as text: what `unpoison estimate` prints without --json."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from unpoison.estimate import Estimate
    from unpoison.estimate.distribution import Distribution
    from unpoison.estimate.estimate import Byzantine
    from unpoison.estimate.value_format import ValueFormat
    from unpoison.plan import Plan

PRINTED_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
"""Quartiles and the ends of nine tenths of the users. All nine are in --json."""


def print_estimate(answer: Estimate, plan: Plan, top: int | None = None) -> None:
    """Print the statistic with its interval, the attackers, the groups and the verdict.

    Of many categories `top` are printed, and those that are pushed.
    """
    from unpoison.estimate.value_format import ValueFormat

    write = ValueFormat.of(plan, answer.interval)
    if answer.frequencies is None:
        _print_mean(answer, write)
    typer.echo(f"users     {answer.users:,.0f}, reports {answer.reports:,}")
    if answer.invalid:
        typer.echo(f"left out  {answer.invalid:,} invalid reports")
    if answer.groups:
        typer.echo(f"attackers {_attackers(answer.byzantine)}, {_poisoned_place(answer)}")
    if answer.frequencies is not None:
        _print_frequencies(answer, top)
    if answer.groups:
        _print_groups(answer, write)
    typer.echo(f"\n{answer.verdict}")


def _attackers(byzantine: Byzantine) -> str:
    share = f"{100 * byzantine.fraction:.1f} %"
    if byzantine.interval is None:
        return share
    low, high = byzantine.interval
    return f"{share} (95 %: {100 * low:.1f} to {100 * high:.1f})"


def _poisoned_place(answer: Estimate) -> str:
    from unpoison.estimate.wording import list_names

    byzantine = answer.byzantine
    if byzantine.categories is None:
        return f"side {byzantine.side}"
    return f"categories {list_names(byzantine.categories) or 'none'}"


def _print_mean(answer: Estimate, write: ValueFormat) -> None:
    interval = "" if answer.interval is None else f"   95 %: {write.between(answer.interval)}"
    typer.echo(f"mean      {write(answer.mean)}{interval}   ({answer.method})")
    if answer.distribution is not None:
        _print_distribution(answer.distribution, write)


def _print_distribution(distribution: Distribution, write: ValueFormat) -> None:
    """Quantiles, each on a line with its interval, or on one line; and the deviation."""
    quantiles = {share: write(distribution.quantile(share)) for share in PRINTED_QUANTILES}
    if distribution.cdf_low is None:
        listed = ", ".join(f"{share:.0%} {value}" for share, value in quantiles.items())
        typer.echo(f"quantiles {listed}")
    else:
        _print_quantiles(distribution, quantiles, write)
    deviation = write(distribution.variance**0.5)
    buckets = len(distribution.fractions)
    typer.echo(
        f"deviation {deviation}   (quantiles and this from {buckets} buckets, all in --json)"
    )


def _print_quantiles(
    distribution: Distribution, quantiles: dict[float, str], write: ValueFormat
) -> None:
    head, width = "quantiles", max(map(len, quantiles.values()))
    for share, value in quantiles.items():
        interval = distribution.quantile_interval(share)
        ends = "" if interval is None else f"   95 %: {write.between(interval)}"
        typer.echo(f"{head:9} {share:>3.0%} {value:>{width}}{ends}")
        head = ""


def _print_frequencies(answer: Estimate, top: int | None) -> None:
    from unpoison.estimate.ranking import shown_categories
    from unpoison.output.tables import print_table

    unfiltered = answer.fit.get("unfiltered_frequencies")
    poisoned = answer.byzantine.categories or ()
    intervals = answer.fit.get("frequency_intervals", {})
    heads = ["category", answer.method, *(["95 %"] if intervals else [])]
    heads += ["unfiltered", "poisoned"] if unfiltered else []
    rows = []
    frequencies, shown = answer.frequencies or {}, shown_categories(answer, top)
    for name in shown:
        row = [name, f"{100 * frequencies[name]:.2f} %"]
        if intervals:
            row.append(" to ".join(f"{100 * end:.2f}" for end in intervals[name]))
        if unfiltered:
            row += [f"{100 * unfiltered[name]:.2f} %", "yes" if name in poisoned else ""]
        rows.append(row)
    typer.echo("")
    print_table(heads, rows)
    if len(shown) < len(frequencies):
        typer.echo(f"{len(frequencies) - len(shown):,} more; all are in --json")


def _print_groups(answer: Estimate, write: ValueFormat) -> None:
    from unpoison.output.tables import print_table

    heads = ["group", "epsilon", "reports", "weight", "attackers", "iterations"]
    rows = [
        [
            str(group.group),
            f"{group.epsilon:g}",
            f"{group.reports:,}",
            f"{group.weight:.3f}",
            f"{100 * group.byzantine_fraction:.1f} %",
            str(group.iterations) + ("" if group.converged else " (bound)"),
        ]
        for group in answer.groups
    ]
    if answer.frequencies is None:
        heads.insert(3, "mean")
        for row, group in zip(rows, answer.groups, strict=True):
            row.insert(3, write(group.mean))
    typer.echo("")
    print_table(heads, rows)
