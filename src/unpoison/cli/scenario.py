"""What `unpoison simulate` runs: a sample of users, an attack on them, and files of the outcome."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from unpoison.datasets import Sample, datasets
from unpoison.errors import InvalidFile, InvalidParameter, InvalidValue
from unpoison.estimate.methods import default_method, estimates, find_method
from unpoison.estimate.statistic import Statistic
from unpoison.output.progress import progress
from unpoison.plan import Plan
from unpoison.protocols import FilterOptions
from unpoison.reports.reading import read_batches
from unpoison.reports.values import fault_kind
from unpoison.reports.writing import ReportWriter
from unpoison.simulation import Simulation
from unpoison.simulation.population import Population
from unpoison.simulation.simulate import Crowd
from unpoison.simulation.trials import Score, Trial, run_trials
from unpoison.system.atomic_files import whole_file
from unpoison.system.paths import check_input

DEFAULT_USERS = 100_000
DRAWN = ("joint", "emf-star", "emf", "cemf-star", "baseline")
"""Methods whose fit can be drawn, the preferred first."""


def streams(seeds: np.random.SeedSequence) -> list[np.random.Generator]:
    """Generators for the sample and for the trials, the same at every call."""
    return np.random.default_rng(np.random.SeedSequence(seeds.entropy)).spawn(2)


def drawn_sample(
    dataset: str, users: int | None, column: str | None, rng: np.random.Generator
) -> Sample:
    """Users from a dataset."""
    users = DEFAULT_USERS if users is None else users
    if column is not None:
        raise InvalidParameter("--values", "must be given with --column", "nothing")
    if users < 1:
        raise InvalidParameter("--users", "must be at least 1", users)
    return datasets[dataset]().draw(users, rng)


def read_sample(path: Path, column: str | None, categorical: bool = False) -> Sample:
    """All rows of a file: numbers with their own range, or names of categories as they are."""
    if column is None:
        raise InvalidParameter("--column", "must be given with --values", "nothing")
    check_input(path)
    values = _read_column(path, column, categorical)
    if not len(values):
        raise InvalidFile(path, "holds no rows")
    source = f"{path.name}, column {column!r}, {len(values)} rows"
    if categorical:
        return Sample(values, np.nan, np.nan, source, tuple(np.unique(values).tolist()))
    return Sample(values, float(values.min()), float(values.max()), source)


def _read_column(path: Path, column: str, categorical: bool) -> np.ndarray:
    parts, seen = [], 0
    check = _named if categorical else _finite
    with progress("Reading", path.stat().st_size) as advance:
        for batch in read_batches(path, [column], [column] if categorical else []):
            try:
                parts.append(check(batch.columns[column]))
            except InvalidValue as fault:
                raise fault.at(f"{path}, column {column!r}", batch.rows_before) from None
            advance(batch.bytes_read - seen)
            seen = batch.bytes_read
    return np.concatenate(parts) if parts else np.empty(0)


def _finite(column: np.ndarray) -> np.ndarray:
    numbers = column.astype(np.float64)
    finite = np.isfinite(numbers)
    if not finite.all():
        row = int(finite.argmin())
        kind = fault_kind(numbers[row], low=-np.inf)
        raise InvalidValue("values must be finite numbers", kind, row + 1)
    return numbers


def _named(column: np.ndarray) -> np.ndarray:
    names = column.astype(str)
    empty = names == ""
    if empty.any():
        rule = "values must be names of categories"
        raise InvalidValue(rule, "nothing", int(empty.argmax()) + 1)
    return names


@dataclass(frozen=True)
class Scenario:
    """A plan, a sample, and an attack on it, in `trials` independent collections."""

    plan: Plan
    sample: Sample
    attack: str
    byzantine_fraction: float
    trials: int
    seeds: np.random.SeedSequence
    options: FilterOptions
    asked: Statistic
    fast: bool = False

    @cached_property
    def values(self) -> Any:
        """One value a user, or a histogram of them where counts are drawn directly."""
        return Population.of(self.sample.values) if self.fast else self.sample.values

    def run(self, methods: list[str]) -> tuple[list[Trial], Simulation]:
        """All methods on all collections, and the last collection."""
        with progress("Simulating", self._work(methods)) as advance:
            try:
                return run_trials(
                    self.plan,
                    self.values,
                    self.attack,
                    self.byzantine_fraction,
                    methods,
                    trials=self.trials,
                    rng=streams(self.seeds)[1],
                    options=self.options,
                    asked=self.asked,
                    advance=advance,
                )
            except InvalidValue as fault:
                raise fault.at(self.sample.source, 0) from None

    def _work(self, methods: list[str]) -> int:
        """How many users are simulated in all; rivals ask for ungrouped collections too."""
        grouped = 2 if self.plan.protocol == "baseline" else 1
        rivals = any(find_method(name).is_defence for name in methods)
        ungrouped = 1 if rivals and len(self.plan.all_groups) > 1 else 0
        return len(self.sample.values) * self.trials * (grouped + ungrouped)

    def write(
        self,
        run: Simulation,
        methods: list[str],
        scores: list[Score] | None,
        reports: Path | None,
        summary: Path | None,
        plot: Path | None,
    ) -> None:
        """The outputs that were asked for: all of them appear, or none.

        The picture is that of the last fit, or of the `scores` where these are given.
        """
        with ExitStack() as outputs:
            if reports is not None:
                self._write_reports(outputs.enter_context(whole_file(reports)), reports)
            if summary is not None:
                outputs.enter_context(whole_file(summary)).write(run.summary.to_bytes())
            if plot is not None:
                self._draw(run, methods, scores, plot)

    def _write_reports(self, file: Any, path: Path) -> None:
        """The last collection again, report by report: what a collector's files would look like."""
        whole = self.plan.group_mechanisms[0].discrete
        users = len(self.sample.values)
        with (
            ReportWriter(file, path, whole=whole) as writer,
            progress("Writing", users) as advance,
        ):
            for group, values, done in self.last_collection().reports():
                writer.write(np.full(len(values), group), values)
                advance(done)

    def last_collection(self) -> Crowd:
        """The last trial's users, drawn anew from the stream that `run_trials` gave it."""
        stream = streams(self.seeds)[1].spawn(self.trials)[-1].spawn(2)[0]
        values, share = self.sample.values, self.byzantine_fraction
        return Crowd.draw(self.plan, values, self.attack, share, stream)

    def _draw(
        self, run: Simulation, methods: list[str], scores: list[Score] | None, path: Path
    ) -> None:
        from unpoison.output.plots import draw_comparison, draw_estimate, save

        with progress("Drawing"):
            if scores is not None:
                save(draw_comparison(scores), path)
                return
            default = default_method(run.summary.plan)
            fitted = [name for name in DRAWN if name in methods] or [default]
            answer = estimates(run.summary, fitted[:1], self.options, self.asked)[fitted[0]]
            save(draw_estimate(answer, run), path)
