"""How submissions a second grow with the number of a server's processes."""

from __future__ import annotations

from dataclasses import dataclass

from unpoison.bench.fleet import Fleet, served
from unpoison.bench.load import fire
from unpoison.bench.process_time import tree_seconds
from unpoison.bench.result import Result
from unpoison.bench.steady_rate import steady_results

DEVICES = 30_000
"""Submissions as fast as answers come: some ten seconds of one process."""
FAST_RATE = 2000.0
"""Submissions a second that two processes are to take."""
FAST_SECONDS = 30
"""As long as the load on one process."""


@dataclass(frozen=True)
class _Throughput:
    rate: float
    per_processor_second: float | None


def workers_compared(name: str, database: str | None) -> list[Result]:
    """Submissions as fast as answers come with one and two workers, and 2,000 a second with two."""
    alone, _ = _measured(name, database, 1, fast=False)
    together, fast = _measured(name, database, 2, fast=True)
    where = f"collector, {name}: submissions as fast as answers come"
    results = [
        Result(
            f"{where}, 2 workers against 1",
            f"{together.rate:,.0f} a second",
            f"{alone.rate:,.0f} a second",
            together.rate / alone.rate,
            "",
            None,
        )
    ]
    if alone.per_processor_second and together.per_processor_second:
        results.append(
            Result(
                f"{where}, for each second of the server's processor time, 2 workers against 1",
                f"{together.per_processor_second:,.0f}",
                f"{alone.per_processor_second:,.0f}",
                together.per_processor_second / alone.per_processor_second,
                "",
                None,
            )
        )
    return [*results, *fast]


def _measured(
    name: str, database: str | None, workers: int, fast: bool
) -> tuple[_Throughput, list[Result]]:
    with served(database, workers) as server:
        fleet = Fleet.enrolled(server, DEVICES)
        before = tree_seconds(server.pid)
        outcome = fire(server.port, fleet.requests())
        after = tree_seconds(server.pid)
        spent = None if before is None or after is None else after - before
        rate = outcome.good / outcome.seconds
        throughput = _Throughput(rate, outcome.good / spent if spent else None)
        if not fast:
            return throughput, []
        devices = Fleet.enrolled(server, int(FAST_RATE * FAST_SECONDS))
        return throughput, steady_results(f"collector, {name}, 2 workers", devices, FAST_RATE)
