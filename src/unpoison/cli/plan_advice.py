"""The comparison that `unpoison plan --users` prints: a table of plans, and which one to take."""

from __future__ import annotations

import math
from pathlib import Path
from textwrap import fill
from typing import Any

import typer

from unpoison.cli.options import refuse_same_file
from unpoison.output.progress import progress
from unpoison.output.tables import print_table
from unpoison.plan import Plan
from unpoison.planner import Comparison, Prediction, Setting, attacks_on, candidates, compare
from unpoison.planner.reference import SHAPES
from unpoison.planner.setting import MOST_USERS
from unpoison.planner.utility import EVASIVE_SHARE
from unpoison.system.cores import usable_cores

HEADS = ["ε0", "shares", "groups", "reports", "error", "±", "quiet", "interval", "worst case"]
HEADS += ["detects"]
WIDTH = 100
"""Characters a line of explanation, as in the sources of the documentation."""


def compare_with_progress(
    keys: dict[str, Any], setting: Setting, target_error: float | None
) -> Comparison:
    """Compare all candidates with these keys of a plan on all cores, with a progress bar."""
    given = {key: value for key, value in keys.items() if value is not None}
    plans = candidates(**given)
    # How many collections there will be is not known: trials go on until errors are known.
    with progress("Comparing plans") as advance:
        return compare(plans, setting, target_error, advance, usable_cores())


def write_outputs(comparison: Comparison, output: Path | None, plot: Path | None) -> None:
    """Write the recommended plan, and the picture."""
    if plot is not None:
        from unpoison.output.figure import save_figure
        from unpoison.output.plans_plot import draw_plans

        save_figure(draw_plans(comparison), plot)
    if output is not None:
        comparison.recommended.candidate.plan.save(output)


def check_outputs(output: Path | None, plot: Path | None) -> None:
    """Refuse outputs that cannot be written, before half a minute of simulation."""
    from unpoison.output.figure import FORMATS
    from unpoison.system.paths import check_output

    check_output(plot, "--plot", FORMATS)
    refuse_same_file(output, plot)


def print_comparison(comparison: Comparison) -> None:
    """Print the table, what its columns mean, and what the recommended plan promises."""
    setting, recommended = comparison.setting, comparison.recommended
    typer.echo(
        f"Plans for {setting.users:,} users of whom {_percent(setting.tolerate)} may attack "
        f"(* is recommended):"
    )
    print_table(HEADS, [_row(line, line is recommended) for line in comparison.lines])
    typer.echo("\n" + _column_meanings(comparison))
    typer.echo("\n" + _wrapped(_recommendation(comparison)))
    typer.echo("\n" + _wrapped(_promise(comparison)) + "\n")
    for text in _utilities(comparison):
        typer.echo(_wrapped(text, "  "))
    if comparison.utilities is not None:
        typer.echo()


def _row(line: Prediction, recommended: bool) -> list[str]:
    return [
        f"{line.candidate.plan.min_epsilon:g}{' *' if recommended else ''}",
        line.candidate.design,
        str(len(line.candidate.plan.groups)),
        f"{line.candidate.reports_a_user:.1f}",
        f"{_figure(line.error)}{'' if line.complete else ' ?'}",
        _figure(line.standard_error),
        _figure(line.quiet_error),
        _figure(line.interval_width),
        _range(line.worst_case),
        _detected(line),
    ]


def _column_meanings(comparison: Comparison) -> str:
    plan, setting = comparison.recommended.candidate.plan, comparison.setting
    share = _percent(setting.tolerate)
    meanings = [
        "shares: how users are spread over the groups.",
        "reports: how many a user sends, on average.",
        f"error: {_error_meaning(plan)} under the worst attack and shape that were simulated: "
        f"values like {', '.join(SHAPES)}; {share} of users attack by "
        f"{', '.join(attacks_on(plan))}. With ? after it, from one "
        "collection of each shape by the second of these attacks: it may well be larger.",
        "±: standard error of that figure.",
        "quiet: error with nobody attacking.",
        f"interval: width of the 95 % interval{' (widest)' if plan.categorical else ''} under that "
        "attack.",
        f"worst case: what is possible, from the truth on, whatever {share} of users send.",
        "detects: smallest share of attackers that is noticed in 9 of 10 collections.",
    ]
    return "\n".join(_wrapped(text, "  ") for text in meanings)


def _error_meaning(plan: Plan) -> str:
    if plan.categorical:
        return "root mean squared error of a frequency"
    return f"root mean squared error in {plan.unit or 'the units of the values'}"


def _recommendation(comparison: Comparison) -> str:
    line, target = comparison.recommended, comparison.target_error
    tried = f"of {comparison.considered} plans, {len(comparison.lines)} of which were simulated"
    name = f"Recommended: {line.candidate.label} ({tried})"
    alone = len(comparison.finalists) == 1
    if target is None and alone:
        return f"{name}, the least error in the first round, and the only one tried in full."
    if target is None:
        return (
            f"{name}, the fewest reports a user with an error that is within a tenth of the least, "
            "or within what is known of it."
        )
    if comparison.met:
        reason = "the best of these" if alone else "the fewest reports a user"
        return f"{name}, {reason} with an error of at most {target:g}."
    return (
        f"{name}. No plan meets the target {target:g}. This one misses it by "
        f"{_figure(line.error - target)} ({line.error / target:.3g} times as much). "
        f"{_users_needed(comparison.needed_users)}"
    )


def _promise(comparison: Comparison) -> str:
    """A paragraph on what to expect of the recommended plan."""
    line, share = comparison.recommended, _percent(comparison.setting.tolerate)
    noticed = (
        "No share of attackers would be noticed"
        if math.isnan(line.detectable)
        else f"Attackers are noticed from {_detected(line)} on"
    )
    below, above = line.worst_case
    alone = "k-RR" if line.candidate.plan.categorical else "PM"
    return (
        f"Expect an error of {_figure(line.error)} ± {_figure(line.standard_error)} if "
        f"{share} of users attack in the worst way that was tried, {line.situation.attack} on "
        f"values like {line.situation.shape}, with an interval {_figure(line.interval_width)} "
        f"wide; that is {line.price:.3g} times the error of ungrouped {alone} with nobody "
        f"attacking. Expect {_figure(line.quiet_error)} if nobody attacks. Whatever {share} of "
        f"users send, the truth is in a range {_figure(line.worst_case_width)} wide that the "
        f"estimate states, {_figure(-below)} below to {_figure(above)} above what honest reports "
        f"would say. {noticed}."
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


def _range(ends: tuple[float, float]) -> str:
    return f"{_figure(ends[0])} to +{_figure(ends[1])}"


def _detected(line: Prediction) -> str:
    return "nobody" if math.isnan(line.detectable) else _percent(line.detectable)


def _figure(value: float) -> str:
    """Three digits, without an exponent where there need not be one."""
    return f"{value:.0f}" if 1000 <= abs(value) < 10**9 else f"{value:.3g}"


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"
