"""Estimates of several windows of time, as a table, a picture or JSON."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from unpoison.errors import InvalidParameter, NotEnoughData

if TYPE_CHECKING:
    from unpoison.estimate import Estimate
    from unpoison.plan import Plan
    from unpoison.summary import Summary
    from unpoison.summary.windows import Window

    WindowEstimate = tuple[Window, Estimate]


def estimate_windows(
    summaries: Sequence[Summary],
    estimate_one: Callable[[Summary], Estimate],
    plot: Path | None,
    json: bool,
) -> None:
    """Estimate the summary of every window, and print all of them in the order of time."""
    from unpoison.output.figure import save_figure
    from unpoison.output.progress import progress
    from unpoison.output.windows_plot import draw_over_time

    plan = summaries[0].plan
    if plan.categorical and plot is not None:
        rule = "needs numbers: frequencies over time are in the table and in --json"
        raise InvalidParameter("--plot", rule, plot)
    answers: list[WindowEstimate] = []
    with progress("Estimating", len(summaries)) as advance:
        for summary in summaries:
            answer = _estimate_or_none(summary, estimate_one)
            if summary.window is not None and answer is not None:
                answers.append((summary.window, answer))
            advance(1)
    if not answers:
        raise NotEnoughData("no window has enough reports for an estimate")
    if plot is not None:
        save_figure(draw_over_time(answers), plot)
    if json:
        _print_json(answers)
    else:
        _print_table(answers, plan, without_answer=len(summaries) - len(answers))


def _estimate_or_none(
    summary: Summary, estimate_one: Callable[[Summary], Estimate]
) -> Estimate | None:
    """None where a window has too few reports: one quiet hour must not hide all others."""
    try:
        return estimate_one(summary)
    except NotEnoughData:
        return None


def _print_json(answers: Sequence[WindowEstimate]) -> None:
    import json as encoder

    from unpoison.summary.windows import utc_text

    windows = [
        {
            "start": utc_text(window.start),
            "end": utc_text(window.end),
            **encoder.loads(answer.to_json()),
        }
        for window, answer in answers
    ]
    typer.echo(encoder.dumps({"windows": windows}))


def _print_table(answers: Sequence[WindowEstimate], plan: Plan, without_answer: int) -> None:
    from unpoison.output.tables import print_table

    heads = ["from", "users", *(["poisoned"] if plan.categorical else ["mean", "95 %"])]
    rows = [_row(window, answer, plan) for window, answer in answers]
    print_table([*heads, "attackers", "95 %"], rows)
    if without_answer:
        windows = "1 window has" if without_answer == 1 else f"{without_answer} windows have"
        typer.echo(f"\n{windows} too few reports.")
    attacked = [answer for _, answer in answers if answer.byzantine.fraction > 0]
    typer.echo(f"\nAttackers were found in {len(attacked)} of {len(answers)} windows.")
    if attacked:
        from unpoison.summary.windows import utc_text

        window, worst = max(answers, key=lambda pair: pair[1].byzantine.fraction)
        typer.echo(f"Most in that from {utc_text(window.start)}. {worst.verdict}")


def _row(window: Window, answer: Estimate, plan: Plan) -> list[str]:
    from unpoison.estimate.value_format import ValueFormat
    from unpoison.estimate.wording import list_names
    from unpoison.summary.windows import utc_text

    start, users = utc_text(window.start), f"{answer.users:,.0f}"
    share = [f"{100 * answer.byzantine.fraction:.1f} %", _percentages(answer.byzantine.interval)]
    if answer.frequencies is not None:
        return [start, users, list_names(answer.byzantine.categories or ()) or "–", *share]
    write = ValueFormat.of(plan, answer.interval)
    interval = "–" if answer.interval is None else write.between(answer.interval)
    return [start, users, write(answer.mean), interval, *share]


def _percentages(interval: tuple[float, float] | None) -> str:
    return "–" if interval is None else " to ".join(f"{100 * end:.1f}" for end in interval)
