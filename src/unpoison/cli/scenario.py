"""What `unpoison simulate` runs: an attack on a sample of users, and files of the outcome."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO

import numpy as np

from unpoison.datasets import Sample
from unpoison.errors import InvalidValue
from unpoison.estimate.methods import (
    default_method,
    estimates,
    method_names,
    methods,
)
from unpoison.estimate.statistic import Statistic
from unpoison.output.progress import progress
from unpoison.plan import Plan
from unpoison.protocols import FilterOptions
from unpoison.reports.writing import ReportWriter
from unpoison.simulation import Population, Score, Simulation, Trial, rivals_of, run_trials
from unpoison.simulation.faults import BrokenClients
from unpoison.simulation.simulate import DEFAULT_FAULTY_FRACTION
from unpoison.simulation.users import SimulatedUsers
from unpoison.system.atomic_files import whole_file


def random_streams(seeds: np.random.SeedSequence) -> list[np.random.Generator]:
    """Generators for the sample and for the trials, the same at every call.

    Reports are written after the trials, by drawing the last collection a second time: a generator
    that had been used would give others.
    """
    # Spawning changes a SeedSequence, so that it is made anew from its entropy.
    return np.random.default_rng(np.random.SeedSequence(seeds.entropy)).spawn(2)


@dataclass(frozen=True)
class Scenario:
    """A plan, a sample of users, and an attack on them, in `trials` independent collections."""

    plan: Plan
    sample: Sample
    attack: str
    byzantine_fraction: float
    trials: int
    seeds: np.random.SeedSequence
    options: FilterOptions
    statistic: Statistic
    fast: bool = False
    fault: str | None = None
    faulty_fraction: float = DEFAULT_FAULTY_FRACTION

    @cached_property
    def values(self) -> np.ndarray | Population:
        """One value a user, or a histogram of them where counts are drawn directly."""
        return Population.of(self.sample.values) if self.fast else self.sample.values

    def run(self, names: list[str]) -> tuple[list[Trial], Simulation]:
        """Run all methods of these names on all collections; also returns the last collection."""
        with progress("Simulating", self._simulated_users(names)) as advance:
            try:
                return run_trials(
                    self.plan,
                    self.values,
                    self.attack,
                    self.byzantine_fraction,
                    names,
                    trials=self.trials,
                    rng=random_streams(self.seeds)[1],
                    options=self.options,
                    statistic=self.statistic,
                    fault=self.fault,
                    faulty_fraction=self.faulty_fraction,
                    advance=advance,
                )
            except InvalidValue as fault:
                raise fault.at(self.sample.source, 0) from None

    def _simulated_users(self, names: list[str]) -> int:
        """The users that the progress bar counts; defences get ungrouped collections too."""
        grouped = len(self.plan.groups_of_user(0))
        ungrouped = 1 if rivals_of(self.plan, names) else 0
        return len(self.sample.values) * self.trials * (grouped + ungrouped)

    def write(
        self,
        run: Simulation,
        names: list[str],
        scores: list[Score] | None,
        reports: Path | None,
        summary: Path | None,
        plot: Path | None,
    ) -> None:
        """Write the outputs that were asked for: all of them appear, or none.

        The picture is that of the last fit, or of the `scores` where these are given.
        """
        with ExitStack() as outputs:
            if reports is not None:
                self._write_reports(outputs.enter_context(whole_file(reports)), reports)
            if summary is not None:
                outputs.enter_context(whole_file(summary)).write(run.summary.to_bytes())
            if plot is not None:
                self._draw(run, names, scores, plot)

    def _write_reports(self, file: IO[bytes], path: Path) -> None:
        """Write the last collection report by report, as the files of a collector would be."""
        whole = self.plan.group_mechanisms[0].discrete
        users = len(self.sample.values)
        with (
            ReportWriter(file, path, whole=whole) as writer,
            progress("Writing", users) as advance,
        ):
            for group, values, done in self.last_collection().reports():
                writer.write(np.full(len(values), group), values)
                advance(done)

    def last_collection(self) -> SimulatedUsers:
        """The last trial's users, drawn again from the stream that `run_trials` gave it."""
        stream = random_streams(self.seeds)[1].spawn(self.trials)[-1].spawn(2)[0]
        values, share = self.sample.values, self.byzantine_fraction
        broken = None
        if self.fault is not None:
            broken = BrokenClients.of(self.plan, self.fault, self.faulty_fraction)
        return SimulatedUsers.draw(
            self.plan, values, self.attack, share, stream, broken_clients=broken
        )

    def _draw(
        self, run: Simulation, names: list[str], scores: list[Score] | None, path: Path
    ) -> None:
        from unpoison.output.comparison_plot import draw_comparison
        from unpoison.output.estimate_plot import draw_estimate
        from unpoison.output.figure import save_figure

        with progress("Drawing"):
            if scores is not None:
                save_figure(draw_comparison(scores), path)
                return
            name = self._drawn_method(names)
            answer = estimates(run.summary, [name], self.options, self.statistic)[name]
            save_figure(draw_estimate(answer, run), path)

    def _drawn_method(self, names: list[str]) -> str:
        """The method whose fit is drawn: of those that ran and have one, the recommended."""
        drawable = [
            name for name in method_names() if name in names and methods[name].fits_histograms
        ]
        return max(
            drawable or [default_method(self.plan)], key=lambda name: methods[name].default_rank
        )
