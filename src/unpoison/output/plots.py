"""Pictures of estimates (needs the extra `plots`)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from unpoison.errors import InvalidParameter, MissingExtra
from unpoison.estimate import Estimate, GroupEstimate
from unpoison.estimate.distribution import Distribution
from unpoison.estimate.wording import list_names
from unpoison.planner import Comparison
from unpoison.simulation import Score, Simulation
from unpoison.summary.windows import Window, utc_datetime

OBSERVED, HONEST, POISON = "#9aa5b1", "#1f6feb", "#d1242f"
MOST_NAMES = 40
FORMATS = (".png", ".svg", ".pdf")


def draw_estimate(estimate: Estimate, run: Simulation | None = None) -> Any:
    """A figure with the reports of groups, the fitted honest part and the estimated poison.

    The first panel is the group with the smallest ε, where attackers show best; the second the one
    that weighs most in the mean. A distribution or frequencies come in a panel of their own, beside
    the truth where the `run` of a simulation gives it.

    >>> from unpoison import Plan, estimate, simulate
    >>> plan = Plan.new(epsilon=0.5, min_epsilon=0.25, low=0, high=1)
    >>> run = simulate(plan, np.full(2000, 0.3), "uniform:3C/4,C", 0.3, np.random.default_rng(1))
    >>> draw_estimate(estimate(run.summary), run).axes[0].get_title()
    'group 1: ε = 0.25, 2,000 reports'
    """
    groups = _panels(estimate)
    if not groups:
        raise InvalidParameter("plot", "needs a method that fits the reports", estimate.method)
    answered = estimate.distribution is not None or estimate.frequencies is not None
    shown = groups[:1] if estimate.frequencies is not None else groups
    panels = len(shown) + answered
    figure, axes = new_figure(panels, width=5.2, height=3.9, across=panels)
    for axis, group in zip(axes, shown, strict=False):
        _draw_group(axis, group)
        if estimate.frequencies is not None:
            _name_categories(axis, list(estimate.frequencies))
    if estimate.distribution is not None:
        _draw_distribution(axes[-1], estimate.distribution, run)
    if estimate.frequencies is not None:
        _draw_frequencies(axes[-1], estimate, run)
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].legend(frameon=False, fontsize=9)
    figure.suptitle(_title(estimate, run), fontsize=11)
    return figure


def draw_comparison(scores: Sequence[Score]) -> Any:
    """A figure with the error of every method, as a multiple of the floor.

    >>> from unpoison.simulation import Score
    >>> line = Score("emf", "grouped", 10, 0.5, 0.0, 0.125, 1.25, 0.25, side="right", seconds=0.1)
    >>> [text.get_text() for text in draw_comparison([line]).axes[0].get_yticklabels()]
    ['emf']
    """
    figure, (axis,) = new_figure(1, width=7.5, height=1.4 + 0.32 * len(scores), across=1)
    ranked = sorted(scores, key=lambda line: line.mse_over_floor, reverse=True)
    places = np.arange(len(ranked))
    grouped = [line.collection == "grouped" for line in ranked]
    colours = [HONEST if each else OBSERVED for each in grouped]
    bars = axis.barh(places, [line.mse_over_floor for line in ranked], color=colours)
    axis.bar_label(bars, [f"{line.mse_over_floor:.3g}" for line in ranked], padding=3, fontsize=8)
    axis.set_yticks(places, [line.label for line in ranked])
    axis.set_xscale("log")
    axis.axvline(1.0, color="black", linestyle=":")
    axis.set_xlabel("mean squared error / floor")
    axis.margins(x=0.15)
    axis.spines[["top", "right"]].set_visible(False)
    return figure


def draw_over_time(answers: Sequence[tuple[Window, Estimate]]) -> Any:
    """A figure with the mean and the attackers' share of every window, with their intervals.

    >>> from unpoison import Plan, estimate, simulate
    >>> plan = Plan.new(epsilon=0.5, min_epsilon=0.25, low=0, high=1)
    >>> run = simulate(plan, np.full(2000, 0.3), rng=np.random.default_rng(1))
    >>> figure = draw_over_time([(Window(0, 3_600_000_000), estimate(run.summary))])
    >>> [axis.get_ylabel() for axis in figure.axes]
    ['mean', 'attackers, %']
    """
    figure, axes = new_figure(2, width=9.0, height=2.8, across=1)
    middles = [utc_datetime((window.start + window.end) // 2) for window, _ in answers]
    means = [answer.mean for _, answer in answers]
    shares = [100 * answer.byzantine.fraction for _, answer in answers]
    sure = [answer.interval for _, answer in answers]
    share_ends = [answer.byzantine.interval for _, answer in answers]
    _draw_line(axes[0], middles, means, sure, HONEST)
    _draw_line(axes[1], middles, shares, share_ends, POISON, scale=100)
    plain = [answer.fit.get("unfiltered_mean") for _, answer in answers]
    if all(each is not None for each in plain):
        axes[0].plot(middles, plain, ":", color=OBSERVED, label="without a filter")
        axes[0].legend(frameon=False, fontsize=9)
    for axis, title in zip(axes, ("mean", "attackers, %"), strict=True):
        axis.set_ylabel(title)
        axis.tick_params(axis="x", labelrotation=20)
        axis.spines[["top", "right"]].set_visible(False)
    axes[1].set_ylim(bottom=0)
    return figure


def _draw_line(
    axis: Any,
    places: Sequence[Any],
    values: Sequence[float],
    intervals: Sequence[tuple[float, float] | None],
    colour: str,
    scale: float = 1.0,
) -> None:
    """A line in its band, as far as there are intervals."""
    known = [each is not None for each in intervals]
    lows = [scale * each[0] if each else np.nan for each in intervals]
    highs = [scale * each[1] if each else np.nan for each in intervals]
    if any(known):
        axis.fill_between(places, lows, highs, color=colour, alpha=0.2, linewidth=0)
    axis.plot(places, values, "o-", color=colour, markersize=3)


def draw_plans(found: Comparison) -> Any:
    """A figure with the error, the detectable share and the blind spot of every plan.

    The recommended one is in colour; dots are errors with nobody attacking.

    >>> from unpoison.planner import Prediction, Setting, candidates
    >>> plan = candidates(1.0, 0.5, low=0, high=1)[0]
    >>> line = Prediction(plan, 0.02, 0.018, 0.01, 2.0, 0.05, 0.25)
    >>> figure = draw_plans(Comparison((line,), Setting(1000, tolerate=0.25)))
    >>> [text.get_text() for text in figure.axes[0].get_yticklabels()]
    ['ε0 0.5, equal users']
    """
    lines = found.lines[::-1]
    figure, axes = new_figure(3, width=4.2, height=1.6 + 0.3 * len(lines), across=3)
    colours = [HONEST if line is found.recommended else OBSERVED for line in lines]
    places = np.arange(len(lines))
    share = f"{100 * found.setting.tolerate:.3g} %"
    columns = [
        ([line.error for line in lines], f"error with {share} attacking"),
        ([100 * line.detectable for line in lines], "smallest share that is noticed, %"),
        ([line.blind_spot for line in lines], f"shift that {share} could hide"),
    ]
    for axis, (lengths, title) in zip(axes, columns, strict=True):
        axis.barh(places, np.nan_to_num(lengths), color=colours)
        axis.set_xlabel(title)
        axis.set_yticks(places, [""] * len(lines))
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_yticks(places, [line.candidate.label for line in lines])
    quiet = [line.quiet_error for line in lines]
    axes[0].plot(quiet, places, "o", color="black", markersize=4, label="nobody attacks")
    if found.target_error is not None:
        axes[0].axvline(found.target_error, color=POISON, linestyle=":", label="target")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="upper left", ncols=2, frameon=False)
    figure.suptitle(f"{found.setting.users:,} users; recommended plan in blue", fontsize=11)
    return figure


def save(figure: Any, path: str | Path) -> None:
    """Write a figure, whole or not at all, in the format that its ending names.

    >>> from tempfile import TemporaryDirectory
    >>> from matplotlib.figure import Figure
    >>> with TemporaryDirectory() as folder:
    ...     save(Figure(), Path(folder, "estimate.svg"))
    ...     Path(folder, "estimate.svg").exists()
    True
    """
    from unpoison.system.atomic_files import whole_file

    ending = Path(path).suffix.lower()
    if ending not in FORMATS:
        raise InvalidParameter("plot", f"must end in {', '.join(FORMATS)}", path)
    with whole_file(path) as file:
        figure.savefig(file, format=ending[1:], dpi=150)


def _panels(estimate: Estimate) -> list[GroupEstimate]:
    groups = [group for group in estimate.groups if group.picture is not None]
    if not groups:
        return []
    probing = min(groups, key=lambda group: group.epsilon)
    heaviest = max(groups, key=lambda group: group.weight)
    return [probing] if probing is heaviest else [probing, heaviest]


def new_figure(count: int, width: float, height: float, across: int) -> tuple[Any, list[Any]]:
    """A figure with so many panels, at most `across` in a row; needs no display.

    >>> figure, axes = new_figure(5, width=4, height=3, across=4)
    >>> len(axes), figure.get_size_inches().tolist()
    (5, [16.0, 6.0])
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtra("drawing", "plots") from None
    rows, columns = -(-count // across), min(count, across)
    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    FigureCanvasAgg(figure)
    axes = list(figure.subplots(rows, columns, squeeze=False).flat)
    for unused in axes[count:]:
        unused.remove()
    return figure, axes[:count]


def _draw_group(axis: Any, group: GroupEstimate) -> None:
    picture = group.picture
    if picture is None:
        return
    edges = np.array(picture.edges)
    widths = np.diff(edges)
    observed, honest, poison = (
        np.array(part) / widths for part in (picture.observed, picture.honest, picture.poison)
    )
    axis.stairs(observed, edges, fill=True, color=OBSERVED, alpha=0.45, label="reports")
    axis.stairs(honest, edges, color=HONEST, linewidth=1.8, label="fitted honest part")
    axis.stairs(
        honest + poison,
        edges,
        baseline=honest,
        fill=True,
        color=POISON,
        alpha=0.55,
        label="estimated poison",
    )
    axis.set_title(f"group {group.group}: ε = {group.epsilon:g}, {group.reports:,} reports")
    axis.set_xlabel("report")
    axis.set_ylabel("density")
    axis.set_xlim(edges[0], edges[-1])
    axis.set_ylim(0, None)


def _draw_distribution(axis: Any, found: Distribution, run: Simulation | None) -> None:
    edges, widths = np.array(found.edges), np.diff(found.edges)
    if run is not None and run.honest is not None:
        true = np.diff(np.interp(edges, run.honest.edges, run.honest.cumulative))
        axis.stairs(true / widths, edges, fill=True, color=OBSERVED, alpha=0.45, label="truth")
    density = np.array(found.fractions) / widths
    axis.stairs(density, edges, color=HONEST, linewidth=1.8, label="estimate")
    axis.set_title("honest users")
    axis.set_xlabel("value")
    axis.set_ylabel("density")
    axis.set_xlim(edges[0], edges[-1])
    axis.set_ylim(0, None)
    axis.legend(frameon=False, fontsize=9)


def _draw_frequencies(axis: Any, estimate: Estimate, run: Simulation | None) -> None:
    frequencies = estimate.frequencies or {}
    places = np.arange(len(frequencies)) + 0.5
    axis.bar(places, list(frequencies.values()), 0.7, color=HONEST, alpha=0.75, label="estimate")
    if run is not None and run.frequencies is not None:
        truth = list(run.frequencies.values())
        axis.plot(places, truth, "_", color="black", markersize=11, label="truth")
    _name_categories(axis, list(frequencies))
    axis.set_xlim(0, len(frequencies))
    axis.set_title("honest users")
    axis.set_ylabel("frequency")
    axis.legend(frameon=False, fontsize=9)


def _name_categories(axis: Any, names: list[str]) -> None:
    """Names under the bars, as many as can be read."""
    step = -(-len(names) // MOST_NAMES)
    axis.set_xticks(np.arange(0, len(names), step) + 0.5, names[::step], rotation=90, fontsize=8)
    axis.set_xlabel("")


def _title(estimate: Estimate, run: Simulation | None) -> str:
    byzantine = estimate.byzantine
    share = f"attackers: {100 * byzantine.fraction:.1f} % of users"
    if byzantine.categories is not None:
        return f"{estimate.method}; {share} on {list_names(byzantine.categories) or 'no category'}"
    beside = "" if run is None else f" (truth {run.truth:.5g})"
    return f"{estimate.method}: mean {estimate.mean:.5g}{beside}; {share} on the {byzantine.side}"
