"""Submissions at a steady rate: whether the server keeps up, how quickly, and at what cost."""

from __future__ import annotations

from unpoison.bench.fleet import Fleet
from unpoison.bench.load import fire
from unpoison.bench.process_time import tree_seconds
from unpoison.bench.result import Result, duration

MOST_P99 = 0.25
"""Seconds within which 99 % of single submissions are to be answered."""
REACHED = 0.99
"""The share of the rate that counts as the rate: the last answers come after the last request."""


def steady_results(name: str, fleet: Fleet, rate: float) -> list[Result]:
    """Send the submissions of a fleet, so many a second."""
    server = fleet.server
    before = tree_seconds(server.pid)
    outcome = fire(server.port, fleet.requests(), rate)
    after = tree_seconds(server.pid)
    sent = len(outcome.statuses)
    where = f"{name}: {rate:,.0f} submissions a second for {sent / rate:.0f} s"
    wrong = abs(sent - outcome.good) + abs(sent - fleet.counted())
    reached, slow = sent / outcome.seconds, outcome.percentile(99)
    half, least = duration(outcome.percentile(50)), REACHED * rate
    results = [
        Result(
            f"{where}: reached",
            f"{reached:,.0f} a second",
            "–",
            None,
            f"≥ {least:,.0f}",
            reached >= least,
        ),
        Result(
            f"{where}: 99 % answered within (half within {half})",
            duration(slow),
            "–",
            None,
            f"≤ {MOST_P99 * 1000:g} ms",
            slow <= MOST_P99,
        ),
        Result(f"{where}: lost, or counted twice", f"{wrong}", "–", None, "0", wrong == 0),
    ]
    if before is not None and after is not None:
        cost = duration((after - before) / sent)
        what = f"{where}: processor time of the server for each"
        results.append(Result(what, cost, "–", None, "", None))
    return results
