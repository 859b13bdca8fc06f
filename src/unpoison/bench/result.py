"""Results of benchmarks, and how they are timed."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Protocol

from unpoison.registry import Registry


class Row(Protocol):
    """One line of a benchmark's table. Rows with the same heads stand in one table."""

    HEADS: ClassVar[tuple[str, ...]]

    def cells(self) -> list[str]:
        """One text for each head."""

    def to_dict(self) -> dict[str, Any]:
        """The fields, as JSON has them."""


@dataclass(frozen=True)
class Result:
    """One line: our figure, the other's, their ratio, and the target that is aimed at."""

    HEADS: ClassVar[tuple[str, ...]] = ("what", "unpoison", "against", "ratio", "target", "")

    name: str
    ours: str
    theirs: str
    ratio: float | None
    target: str
    met: bool | None

    def cells(self) -> list[str]:
        """The texts of a table's row, one for each head."""
        ratio = "–" if self.ratio is None else f"{self.ratio:.3g}×"
        verdict = {True: "met", False: "MISSED", None: ""}[self.met]
        return [self.name, self.ours, self.theirs, ratio, self.target, verdict]

    def to_dict(self) -> dict[str, Any]:
        """The fields for JSON."""
        return asdict(self)


Benchmark = Callable[[], Sequence[Row]]
benchmarks: Registry[Benchmark] = Registry("benchmark")
ONLY_BY_NAME = frozenset({"joint-constants"})
"""Benchmarks that run only when they are named: they take longer than all others together."""


def default_benchmarks() -> list[str]:
    """Names of the benchmarks that run when none is named."""
    return [name for name in benchmarks if name not in ONLY_BY_NAME]


def race(
    ours: Callable[[], object],
    theirs: Callable[[], object],
    # Other programs can only slow a round down: of five, one is nearly undisturbed.
    rounds: int = 5,
) -> tuple[float, float]:
    """The best time of either, in seconds."""
    best = best_times({"ours": ours, "theirs": theirs}, rounds)
    return best["ours"], best["theirs"]


def best_times(runs: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """The best time of each function, taken in turns so that all meet the same machine load."""
    best = dict.fromkeys(runs, float("inf"))
    for _ in range(rounds):
        for name, function in runs.items():
            best[name] = min(best[name], seconds(function))
    return best


def seconds(function: Callable[[], object]) -> float:
    """Wall-clock time of one call."""
    started = time.perf_counter()
    function()
    return time.perf_counter() - started


def peak_memory(function: Callable[[], object]) -> int:
    """The most bytes that NumPy and Python held at once during a call."""
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def faster(name: str, ours: float, theirs: float, at_least: float) -> Result:
    """A result where theirs/ours should be at least so much."""
    ratio = theirs / ours
    target = f"≥ {at_least:g}×"
    return Result(name, duration(ours), duration(theirs), ratio, target, ratio >= at_least)


def same(name: str, gap: float, at_most: float) -> Result:
    """A result where our answer should be theirs, but for rounding."""
    return Result(name, f"{gap:.1e}", "0", None, f"≤ {at_most:g}", gap <= at_most)


def limit(name: str, ours: float, generator: Callable[[], object]) -> Result:
    """A result that compares our time with that of drawing the random numbers alone."""
    alone = min(seconds(generator) for _ in range(3))
    return Result(
        f"{name}: time against drawing the random numbers alone",
        duration(ours),
        duration(alone),
        alone / ours,
        "the limit is 1×",
        None,
    )


def duration(value: float) -> str:
    """Seconds in a fitting unit.

    >>> duration(0.00002), duration(1.5)
    ('20.0 µs', '1.50 s')
    """
    for factor, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if value >= factor:
            return (
                f"{value / factor:.3g} {unit}"
                if value / factor >= 100
                else _three(value, factor, unit)
            )
    return f"{value / 1e-9:.0f} ns"


def _three(value: float, factor: float, unit: str) -> str:
    scaled = value / factor
    return f"{scaled:.2f} {unit}" if scaled < 10 else f"{scaled:.1f} {unit}"
