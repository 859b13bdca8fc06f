"""The comparison that `unpoison plan --users` prints: a table of plans, and which one to take."""

from __future__ import annotations

import math
from pathlib import Path
from textwrap import fill
from typing import Any

import typer

from unpoison.errors import InvalidParameter
from unpoison.output.progress import progress
from unpoison.output.tables import print_table
from unpoison.plan import Plan
from unpoison.planner import Comparison, Prediction, Setting, attacks_on, candidates, compare
from unpoison.planner.prediction import MOST_USERS
from unpoison.planner.reference import SHAPES
from unpoison.planner.utility import EVASIVE_SHARE

HEADS = ["ε0", "shares", "reports", "error", "seen", "price", "quiet", "detects", "worst case"]
WIDTH = 100
"""Characters a line of explanation, as in the sources of the documentation."""


def compare_with_progress(
    keys: dict[str, Any], setting: Setting, target_error: float | None
) -> Comparison:
    """Compare all candidates with these keys of a plan, with a progress bar."""
    chosen = {key: value for key, value in keys.items() if value is not None}
    plans = candidates(**chosen)
    collections = sum(setting.collections(candidate.plan) for candidate in plans)
    with progress("Comparing plans", collections) as advance:
        return compare(plans, setting, target_error, advance)


def write_outputs(comparison: Comparison, output: Path | None, plot: Path | None) -> None:
    """Write the recommended plan, and the picture."""
    if plot is not None:
        from unpoison.output.figure import save_figure
        from unpoison.output.plans_plot import draw_plans

        save_figure(draw_plans(comparison), plot)
    if output is not None:
        comparison.recommended.candidate.plan.save(output)


def check_outputs(output: Path | None, plot: Path | None) -> None:
    """Refuse outputs that cannot be written, before a minute of simulation."""
    from unpoison.output.figure import FORMATS
    from unpoison.system.paths import check_output

    check_output(plot, "--plot", FORMATS)
    if plot is not None and output is not None and plot.resolve() == output.resolve():
        raise InvalidParameter("outputs", "must be different files", plot.name)


def print_comparison(comparison: Comparison) -> None:
    """Print the table, what its columns mean, and why one line is recommended."""
    setting, chosen = comparison.setting, comparison.recommended
    typer.echo(
        f"Plans for {setting.users:,} users of whom {_percent(setting.tolerate)} may attack "
        f"(* is recommended):"
    )
    rows = [_row(line, line is chosen) for line in comparison.lines]
    columns = [index for index, head in enumerate(HEADS) if not _is_redundant(head, comparison)]
    heads, *cells = [[row[index] for index in columns] for row in [HEADS, *rows]]
    print_table(heads, cells)
    typer.echo("\n" + _column_meanings(comparison))
    typer.echo("\n" + _wrapped(_recommendation(comparison)) + "\n")
    for text in _utilities(comparison):
        typer.echo(_wrapped(text, "  "))
    if comparison.utilities is not None:
        typer.echo()


def _row(line: Prediction, chosen: bool) -> list[str]:
    return [
        f"{line.candidate.plan.min_epsilon:g}{' *' if chosen else ''}",
        line.candidate.design,
        f"{line.candidate.reports_a_user:.1f}",
        _figure(line.error),
        _figure(line.seen_error),
        f"{line.price:.2f}",
        _figure(line.quiet_error),
        "nobody" if math.isnan(line.detectable) else _percent(line.detectable),
        _figure(line.worst_case),
    ]


def _is_redundant(head: str, comparison: Comparison) -> bool:
    """Whether a column repeats another: of categories the expected error is the one seen."""
    return head == "seen" and comparison.recommended.candidate.plan.categorical


def _column_meanings(comparison: Comparison) -> str:
    plan, setting = comparison.recommended.candidate.plan, comparison.setting
    share, alone = _percent(setting.tolerate), "k-RR" if plan.categorical else "PM"
    collections = len(SHAPES) * len(attacks_on(plan)) * setting.trials
    meanings = [
        "shares: how users are spread over the groups.",
        "reports: how many a user sends, on average.",
        f"error: {_error_meaning(plan)} in {collections} simulated collections: values like "
        f"{', '.join(SHAPES)}; {share} of users attack by {', '.join(attacks_on(plan))}.",
        "seen: what the error was in these few collections.",
        f"price: error over that of ungrouped {alone} with nobody attacking.",
        "quiet: error with nobody attacking.",
        "detects: smallest share of attackers that is noticed in 9 of 10 collections.",
        f"worst case: largest error that {share} of users could cause, whatever they send.",
    ]
    shown = [text for text in meanings if not _is_redundant(text.partition(":")[0], comparison)]
    return "\n".join(_wrapped(text, "  ") for text in shown)


def _error_meaning(plan: Plan) -> str:
    if plan.categorical:
        return "root mean squared error of a frequency by the joint filter"
    return (
        "root mean squared error in the units of the values, by the joint filter's own standard "
        "errors (unless more than twice of that was seen, or less than a third)"
    )


def _recommendation(comparison: Comparison) -> str:
    chosen, target = comparison.recommended, comparison.target_error
    name = f"Recommended: {chosen.candidate.label}"
    if target is None:
        return f"{name}, the fewest reports a user with an error within a tenth of the least."
    if comparison.met:
        return f"{name}, the fewest reports a user with an error of at most {target:g}."
    return (
        f"{name}. No plan meets the target {target:g}. This one misses it by "
        f"{_figure(chosen.worst - target)} ({chosen.worst / target:.3g} times as much). "
        f"{_users_needed(comparison.needed_users)}"
    )


def _users_needed(users: int | None) -> str:
    if users is None:
        return (
            f"No number of users up to {MOST_USERS:,} was found that would do: try a larger "
            "epsilon, or withstand fewer attackers."
        )
    return f"With this plan about {users:,} users would do."


def _utilities(comparison: Comparison) -> list[str]:
    utilities = comparison.utilities
    if utilities is None:
        return []
    share = _percent(comparison.setting.tolerate)
    return [
        f"U_max {_figure(utilities.most)}: how far {share} of users move the mean who all send the "
        "end of the report domain, if nothing is removed.",
        f"U_eva {_figure(utilities.evasive)}: the same if they spend {_percent(EVASIVE_SHARE)} of "
        "their reports in the middle, to hide their side.",
    ]


def _wrapped(text: str, indent: str = "") -> str:
    """Lines of a readable length, none of which begins with a percent sign."""
    # A no-break space holds a number and its percent sign together while lines are filled.
    joined = text.replace(" %", "\N{NO-BREAK SPACE}%")
    lines = fill(joined, WIDTH, subsequent_indent=indent, break_long_words=False)
    return lines.replace("\N{NO-BREAK SPACE}", " ")


def _figure(value: float) -> str:
    """Three digits, without an exponent where there need not be one."""
    return f"{value:.0f}" if 1000 <= value < 10**9 else f"{value:.3g}"


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"
