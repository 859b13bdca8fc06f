"""`unpoison plan --users`: plans beside one another, and the one to take."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import typer

from unpoison.cli.progress import progress
from unpoison.cli.tables import print_table
from unpoison.errors import InvalidParameter
from unpoison.planner import Comparison, Prediction, Setting, attacks_on, candidates, compare
from unpoison.planner.prediction import MOST_USERS
from unpoison.planner.reference import SHAPES
from unpoison.planner.utility import EVADING

HEADS = ["ε0", "shares", "reports a user", "error", "±", "price", "quiet", "detects", "blind spot"]


def compared(keys: dict[str, Any], setting: Setting, target_error: float | None) -> Comparison:
    """All candidates with these keys of a plan, while a bar shows how far it is."""
    given = {key: value for key, value in keys.items() if value is not None}
    plans = candidates(**given)
    with progress("Comparing plans", len(plans) * setting.work) as advance:
        return compare(plans, setting, target_error, advance)


def write(found: Comparison, output: Path | None, plot: Path | None) -> None:
    """The recommended plan, and the picture."""
    if plot is not None:
        from unpoison.plots import draw_plans, save

        save(draw_plans(found), plot)
    if output is not None:
        found.recommended.candidate.plan.save(output)


def check_files(output: Path | None, plot: Path | None) -> None:
    """Before anything is computed: two files that can be written."""
    from unpoison.files import check_output
    from unpoison.plots import FORMATS

    check_output(plot, "--plot", FORMATS)
    if plot is not None and output is not None and plot.resolve() == output.resolve():
        raise InvalidParameter("outputs", "must be different files", plot.name)


def show(found: Comparison) -> None:
    """The table, what its columns mean, and why one line is recommended."""
    setting, chosen = found.setting, found.recommended
    typer.echo(
        f"Plans for {setting.users:,} users of whom {_percent(setting.tolerate)} may attack "
        f"(* is recommended):"
    )
    print_table(HEADS, [_row(line, line is chosen) for line in found.lines])
    for text in (_meaning(found), _reason(found), _utilities(found)):
        if text:
            typer.echo("\n" + text)
    typer.echo()


def _row(line: Prediction, chosen: bool) -> list[str]:
    return [
        f"{line.candidate.plan.min_epsilon:g}{' *' if chosen else ''}",
        line.candidate.design,
        f"{line.candidate.reports_a_user:.1f}",
        f"{line.error:.3g}",
        f"{line.error_deviation:.1g}",
        f"{line.price:.2f}",
        f"{line.quiet_error:.3g}",
        "nobody" if math.isnan(line.detectable) else _percent(line.detectable),
        f"{line.blind_spot:.3g}",
    ]


def _meaning(found: Comparison) -> str:
    plan = found.recommended.candidate.plan
    of_what = "of a frequency" if plan.categorical else "in the units of the values"
    alone = "k-RR" if plan.categorical else "PM"
    share, number = _percent(found.setting.tolerate), len(SHAPES) * 3 * found.setting.trials
    tried = "; ".join(attacks_on(plan))
    return (
        f"error: root mean squared, {of_what}, of the joint filter in {number} simulated "
        f"collections ({', '.join(SHAPES)} values; {share} attack: {tried}).\n"
        f"±: its standard error. price: error over that of ungrouped {alone} with nobody "
        "attacking. quiet: error with nobody attacking.\n"
        "detects: smallest share of attackers noticed in 9 of 10 collections. "
        f"blind spot: largest shift that {share} of users could hide."
    )


def _reason(found: Comparison) -> str:
    chosen, target = found.recommended, found.target_error
    name = f"Recommended: {chosen.candidate.label}"
    if target is None:
        return f"{name}, the fewest reports a user with an error as small as the least, within ±."
    if found.met:
        return f"{name}, the fewest reports a user with an error of at most {target:g}."
    return (
        f"{name}, the least error. No plan meets {target:g}: it is missed by "
        f"{chosen.worst - target:.3g} ({chosen.worst / target:.3g} times the target). "
        f"{_enough(found.needed_users)}"
    )


def _enough(users: int | None) -> str:
    if users is None:
        return f"No number of users up to {MOST_USERS:,} was found to do; try a larger epsilon."
    return f"With this plan about {users:,} users would do."


def _utilities(found: Comparison) -> str:
    utilities = found.utilities
    if utilities is None:
        return ""
    share = _percent(found.setting.tolerate)
    return (
        f"U_max {utilities.most:.3g}: the shift of the mean if {share} of users all send the end "
        "of the report domain and nothing is removed.\n"
        f"U_eva {utilities.evasive:.3g}: the same if they spend {_percent(EVADING)} of their "
        "reports in the middle, to hide which side they are on."
    )


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"
