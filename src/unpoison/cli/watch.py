"""`unpoison watch`: alarms and the onset of an attack in a folder of window summaries."""

from __future__ import annotations

import json as encoder
from typing import TYPE_CHECKING, Annotated

import typer

from unpoison.cli.alarm_options import (
    AttackersAbove,
    BalanceBelow,
    Doubt,
    PBelow,
    SilentMinutes,
)
from unpoison.cli.options import Json, option
from unpoison.errors import InvalidParameter, NotEnoughData

if TYPE_CHECKING:
    from unpoison.estimate import Estimate
    from unpoison.estimate.alarms import AlarmRules
    from unpoison.summary import Summary
    from unpoison.summary.windows import Window

ALARM = 3
"""Exit code while an alarm is active in the last window: 1 and 2 mean failures."""


def watch(
    data: Annotated[
        list[str],
        typer.Argument(help="Summaries of windows of time (see `summarise --window`), or folders."),
    ],
    attackers_above: AttackersAbove = None,
    p_below: PBelow = None,
    doubt: Doubt = False,
    balance_below: BalanceBelow = None,
    silent_minutes: SilentMinutes = None,
    method: Annotated[str | None, option("Another method than the default.")] = None,
    json: Json = False,
) -> None:
    """Estimate windows of time one by one, and print when alarms start and end.

    Exit code 3 says that an alarm is active in the last window.

    Example: unpoison watch windows/ --attackers-above 0.05 --p-below 0.001
    """
    from unpoison.estimate.alarms import AlarmRules

    rules = AlarmRules(attackers_above, p_below, doubt, balance_below, silent_minutes)
    if not rules.thresholds:
        raise InvalidParameter("--attackers-above", "or another rule must be given", "none")
    answers = _estimates(_windows(data), method)
    events, active = _alarms(rules, answers)
    onset = _onset(answers)
    if json:
        shown = {"windows": len(answers), "events": events, "active": active, "onset": onset}
        typer.echo(encoder.dumps(shown))
    else:
        _print_events(events, active, onset, len(answers))
    if active:
        raise typer.Exit(ALARM)


def _windows(data: list[str]) -> list[Summary]:
    """The summaries in the order of time; files of one window are added up."""
    from unpoison.cli.summarise import load_with_progress
    from unpoison.summary.store import SUMMARY_SUFFIX
    from unpoison.system.paths import expand

    tally = load_with_progress(expand(data, (SUMMARY_SUFFIX,)), by_window=True)
    windows = sorted(window for window in tally if window is not None)
    if len(windows) < len(tally):
        raise InvalidParameter("data", "must be summaries of windows of time", "others")
    return [tally[window] for window in windows]


def _estimates(summaries: list[Summary], method: str | None) -> list[tuple[Window, Estimate]]:
    """The estimate of each window; those with too few reports are left out."""
    from unpoison.estimate.methods import estimate_summary
    from unpoison.output.progress import progress

    answers = []
    with progress("Estimating", len(summaries)) as advance:
        for summary in summaries:
            try:
                answer = estimate_summary(summary, method)
            except NotEnoughData:
                continue
            finally:
                advance(1)
            if summary.window is not None:
                answers.append((summary.window, answer))
    if not answers:
        raise NotEnoughData("no window has enough reports for an estimate")
    return answers


def _alarms(
    rules: AlarmRules, answers: list[tuple[Window, Estimate]]
) -> tuple[list[dict[str, str]], list[str]]:
    """What starts and ends, each at the start of its window, and what is active in the last."""
    from unpoison.estimate.alarms import Observation
    from unpoison.summary.windows import PER_SECOND, utc_text

    events: list[dict[str, str]] = []
    active: set[str] = set()
    last_end = answers[0][0].start
    for window, answer in answers:
        observation = Observation(
            answer.byzantine.fraction,
            answer.fit.get("nobody_attacks_p_value"),
            answer.fit.get("doubt"),
            answer.fit.get("group_sizes_p_value"),
            (window.start - last_end) / PER_SECOND / 60,
        )
        now_active = rules.active(observation)
        if "silent_minutes" in now_active:
            # The silence ends with this window, which has reports.
            now_active.remove("silent_minutes")
            events.append(_event("silent_minutes", "started", utc_text(last_end)))
            events.append(_event("silent_minutes", "ended", utc_text(window.start)))
        start = utc_text(window.start)
        events += [_event(rule, "started", start) for rule in sorted(now_active - active)]
        events += [_event(rule, "ended", start) for rule in sorted(active - now_active)]
        active, last_end = now_active, window.end
    return events, sorted(active)


def _event(rule: str, state: str, at: str) -> dict[str, str]:
    return {"rule": rule, "state": state, "at": at}


def _onset(answers: list[tuple[Window, Estimate]]) -> str | None:
    """The start of the first window after the share of attackers rose, if it did."""
    from unpoison.estimate.onset import standard_error, step_up
    from unpoison.summary.windows import utc_text

    known = [
        (window, answer.byzantine.fraction, answer.byzantine.interval)
        for window, answer in answers
        if answer.byzantine.interval is not None
    ]
    errors = [standard_error(interval) for _, _, interval in known if interval is not None]
    index = step_up([share for _, share, _ in known], errors)
    return None if index is None else utc_text(known[index][0].start)


def _print_events(
    events: list[dict[str, str]], active: list[str], onset: str | None, windows: int
) -> None:
    for event in events:
        typer.echo(f"{event['at']}  {event['rule'].replace('_', ' ')}: {event['state']}")
    if onset is not None:
        typer.echo(f"The share of attackers rose at {onset}.")
    names = ", ".join(rule.replace("_", " ") for rule in active)
    typer.echo(f"{windows} windows; active at the end: {names or 'no alarm'}.")
