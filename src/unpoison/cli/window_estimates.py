"""Estimates of windows of time, one below the other: what `unpoison estimate` does with a set."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import typer

from unpoison.errors import InvalidParameter, NotEnoughData


def estimate_windows(
    summaries: Sequence[Any], estimate: Callable[[Any], Any], plot: Path | None, json: bool
) -> None:
    """Estimate every window, and show all as a table, a picture or JSON."""
    from unpoison.output.plots import draw_over_time, save
    from unpoison.output.progress import progress

    if summaries[0].plan.categorical and plot is not None:
        rule = "needs numbers: frequencies over time are in the table and in --json"
        raise InvalidParameter("--plot", rule, plot)
    answers = []
    with progress("Estimating", len(summaries)) as advance:
        for summary in summaries:
            answers.append(_estimated(summary, estimate))
            advance(1)
    rows = [(summary, each) for summary, each in zip(summaries, answers, strict=True) if each]
    if not rows:
        raise NotEnoughData("no window has enough reports for an estimate")
    if plot is not None:
        save(draw_over_time([(summary.window, answer) for summary, answer in rows]), plot)
    if json:
        _print_json(rows)
    else:
        _show(rows, len(summaries) - len(rows))


def _estimated(summary: Any, estimate: Callable[[Any], Any]) -> Any:
    """None where a window has too few reports."""
    try:
        return estimate(summary)
    except NotEnoughData:
        return None


def _print_json(rows: Sequence[tuple[Any, Any]]) -> None:
    import json as encoder

    from unpoison.summary.windows import utc_text

    windows = [
        {
            "start": utc_text(summary.window.start),
            "end": utc_text(summary.window.end),
            **encoder.loads(answer.to_json()),
        }
        for summary, answer in rows
    ]
    typer.echo(encoder.dumps({"windows": windows}))


def _show(rows: Sequence[tuple[Any, Any]], empty: int) -> None:
    from unpoison.output.tables import print_table

    categorical = rows[0][0].plan.categorical
    heads = ["from", "users", *(["poisoned"] if categorical else ["mean", "95 %"])]
    print_table([*heads, "attackers", "95 %"], [_row(*row) for row in rows])
    if empty:
        windows = "1 window has" if empty == 1 else f"{empty} windows have"
        typer.echo(f"\n{windows} too few reports.")
    attacked = [row for row in rows if row[1].byzantine.fraction > 0]
    typer.echo(f"\nAttackers were found in {len(attacked)} of {len(rows)} windows.")
    summary, answer = max(rows, key=lambda row: row[1].byzantine.fraction)
    if attacked:
        from unpoison.summary.windows import utc_text

        typer.echo(f"Most in that from {utc_text(summary.window.start)}. {answer.verdict}")


def _row(summary: Any, answer: Any) -> list[str]:
    from unpoison.estimate.wording import format_value, list_names
    from unpoison.summary.windows import utc_text

    start, users = utc_text(summary.window.start), f"{answer.users:.0f}"
    share = [f"{100 * answer.byzantine.fraction:.1f} %", _percent(answer.byzantine.interval)]
    if answer.frequencies is not None:
        return [start, users, list_names(answer.byzantine.categories or ()) or "–", *share]
    ends = answer.interval
    sure = "–" if ends is None else " to ".join(format_value(end, summary.plan) for end in ends)
    return [start, users, format_value(answer.mean, summary.plan), sure, *share]


def _percent(interval: tuple[float, float] | None) -> str:
    return "–" if interval is None else " to ".join(f"{100 * end:.1f}" for end in interval)
