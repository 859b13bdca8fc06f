"""The picture of one estimate: reports, fitted honest part, poison, and the answer."""

from __future__ import annotations

from typing import Any

import numpy as np

from unpoison.errors import InvalidParameter
from unpoison.estimate import Estimate, GroupEstimate
from unpoison.estimate.distribution import Distribution
from unpoison.estimate.wording import list_names
from unpoison.output.figure import (
    HONEST,
    OBSERVED,
    POISON,
    axis_label,
    hide_frame,
    new_figure,
)
from unpoison.output.ranking_plot import draw_ranking
from unpoison.output.worst_case_plot import draw_worst_case
from unpoison.simulation import Simulation
from unpoison.types import FloatArray

MOST_CATEGORY_NAMES = 40
"""More names than this under one panel would overlap."""
NARROW = 0.9
"""Part of the usual width under which a bucket is drawn as a part of the next one."""


def draw_estimate(estimate: Estimate, run: Simulation | None = None, top: int | None = None) -> Any:
    """A figure with the reports of groups, the fitted honest part and the estimated poison.

    The first panel is the group with the smallest ε, where attackers show best; the second the one
    that weighs most in the mean. A distribution or frequencies come in a panel of their own, beside
    the truth where the `run` of a simulation gives it; a distribution with intervals in two, the
    second with its CDF. The last panel is the worst case against the share of attackers, where the
    estimate has it for several shares. Many categories are ranked instead, `top` of them.

    >>> from unpoison import Plan, estimate, simulate
    >>> plan = Plan.new(epsilon=0.5, min_epsilon=0.25, low=0, high=1)
    >>> run = simulate(plan, np.full(2000, 0.3), "uniform:3C/4,C", 0.3, np.random.default_rng(1))
    >>> draw_estimate(estimate(run.summary), run).axes[0].get_title()
    'group 1: ε = 0.25, 2,000 reports'
    """
    groups = _groups_to_draw(estimate)
    if not groups and estimate.fit.get("frequency_intervals"):
        return draw_ranking(estimate, _title(estimate, run), run, top)
    if not groups:
        rule = "needs a method with fitted histograms (joint, emf, …)"
        raise InvalidParameter("plot", rule, estimate.method)
    shown = groups[:1] if estimate.frequencies is not None else groups
    panels = len(shown) + _answer_panels(estimate) + _has_curve(estimate)
    figure, axes = new_figure(panels, width=5.2, height=3.9, across=panels)
    for axis, group in zip(axes, shown, strict=False):
        _draw_group(axis, group)
        if estimate.frequencies is not None:
            _name_categories(axis, list(estimate.frequencies))
    if estimate.distribution is not None:
        _draw_distribution(axes[len(shown)], estimate.distribution, run)
        if estimate.distribution.cdf_low is not None:
            _draw_cdf(axes[len(shown) + 1], estimate.distribution, run)
        for axis in axes[len(shown) : len(shown) + _answer_panels(estimate)]:
            axis.set_xlabel(axis_label("value", estimate.unit))
    if estimate.frequencies is not None:
        _draw_frequencies(axes[-1], estimate, run)
    if _has_curve(estimate):
        draw_worst_case(axes[panels - 1], estimate, run)
    for axis in axes:
        hide_frame(axis)
    axes[0].legend(frameon=False, fontsize=9)
    figure.suptitle(_title(estimate, run), fontsize=11)
    return figure


def _has_curve(estimate: Estimate) -> bool:
    return estimate.worst_case is not None and bool(estimate.worst_case.by_share)


def _answer_panels(estimate: Estimate) -> int:
    """One for frequencies or a distribution, and one more for a CDF with intervals."""
    if estimate.distribution is None:
        return int(estimate.frequencies is not None)
    return 1 if estimate.distribution.cdf_low is None else 2


def _groups_to_draw(estimate: Estimate) -> list[GroupEstimate]:
    """The group with the smallest ε, then the heaviest; none of methods that fit nothing."""
    groups = [group for group in estimate.groups if group.picture is not None]
    if not groups:
        return []
    probing = min(groups, key=lambda group: group.epsilon)
    heaviest = max(groups, key=lambda group: group.weight)
    return [probing] if probing is heaviest else [probing, heaviest]


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


def _draw_distribution(axis: Any, estimate: Distribution, run: Simulation | None) -> None:
    edges = _even_edges(estimate)
    widths = np.diff(edges)
    if run is not None and run.honest is not None:
        true = np.diff(np.interp(edges, run.honest.edges, run.honest.cumulative))
        axis.stairs(true / widths, edges, fill=True, color=OBSERVED, alpha=0.45, label="truth")
    shares = np.diff(np.interp(edges, estimate.edges, estimate.cumulative))
    axis.stairs(shares / widths, edges, color=HONEST, linewidth=1.8, label="estimate")
    axis.set_title("honest users")
    axis.set_ylabel("density")
    axis.set_xlim(edges[0], edges[-1])
    axis.set_ylim(0, None)
    axis.legend(frameon=False, fontsize=9)


def _even_edges(distribution: Distribution) -> FloatArray:
    """Edges without the narrow buckets of single values, whose density would dwarf all others."""
    edges = np.array(distribution.edges)
    usual = np.median(np.diff(edges))
    kept = [edges[0]]
    for edge in edges[1:]:
        if edge - kept[-1] > usual * NARROW and (
            edge == edges[-1] or edges[-1] - edge > usual * NARROW
        ):
            kept.append(edge)
    return np.array(kept)


def _draw_cdf(axis: Any, estimate: Distribution, run: Simulation | None) -> None:
    edges = estimate.edges
    axis.fill_between(
        edges,
        estimate.cdf_low,
        estimate.cdf_high,
        color=HONEST,
        alpha=0.2,
        linewidth=0,
        label="95 % intervals",
    )
    axis.plot(edges, estimate.cumulative, color=HONEST, linewidth=1.8, label="estimate")
    if run is not None and run.honest is not None:
        axis.plot(
            run.honest.edges, run.honest.cumulative, "--", color="black", linewidth=1, label="truth"
        )
    axis.set_title("honest users up to a value")
    axis.set_ylabel("share of users")
    axis.set_xlim(edges[0], edges[-1])
    axis.set_ylim(0, 1)
    axis.legend(frameon=False, fontsize=9, loc="lower right")


def _draw_frequencies(axis: Any, estimate: Estimate, run: Simulation | None) -> None:
    frequencies = estimate.frequencies or {}
    positions = np.arange(len(frequencies)) + 0.5
    axis.bar(positions, list(frequencies.values()), 0.7, color=HONEST, alpha=0.75, label="estimate")
    if run is not None and run.frequencies is not None:
        truth = list(run.frequencies.values())
        axis.plot(positions, truth, "_", color="black", markersize=11, label="truth")
    _name_categories(axis, list(frequencies))
    axis.set_xlim(0, len(frequencies))
    axis.set_title("honest users")
    axis.set_ylabel("frequency")
    axis.legend(frameon=False, fontsize=9)


def _name_categories(axis: Any, names: list[str]) -> None:
    """Names under the bars; every second or third only, where all could not be read."""
    step = -(-len(names) // MOST_CATEGORY_NAMES)
    axis.set_xticks(np.arange(0, len(names), step) + 0.5, names[::step], rotation=90, fontsize=8)
    axis.set_xlabel("")


def _title(estimate: Estimate, run: Simulation | None) -> str:
    byzantine = estimate.byzantine
    share = f"attackers: {100 * byzantine.fraction:.1f} % of users"
    if byzantine.categories is not None:
        return f"{estimate.method}; {share} on {list_names(byzantine.categories) or 'no category'}"
    beside = "" if run is None else f" (truth {run.truth:.5g})"
    mean = f"{estimate.mean:.5g}" + ("" if estimate.unit is None else f" {estimate.unit}")
    return f"{estimate.method}: mean {mean}{beside}; {share} on the {byzantine.side}"
