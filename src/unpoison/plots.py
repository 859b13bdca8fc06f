"""Pictures of estimates (needs the extra `plots`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from unpoison.errors import InvalidParameter, MissingExtra
from unpoison.estimate import Estimate, GroupEstimate

OBSERVED, HONEST, POISON = "#9aa5b1", "#1f6feb", "#d1242f"
FORMATS = (".png", ".svg", ".pdf")


def draw_estimate(estimate: Estimate, truth: float | None = None) -> Any:
    """A figure with the reports of two groups, the fitted honest part and the estimated poison.

    The first panel is the group with the smallest ε, where attackers show best; the second the one
    that weighs most in the mean.

    >>> from unpoison import Plan, estimate, simulate
    >>> plan = Plan.new(epsilon=0.5, min_epsilon=0.25, low=0, high=1)
    >>> run = simulate(plan, np.full(2000, 0.3), "uniform:3C/4,C", 0.3, np.random.default_rng(1))
    >>> draw_estimate(estimate(run.summary), run.truth).axes[0].get_title()
    'group 1: ε = 0.25, 2,000 reports'
    """
    shown = _panels(estimate)
    if not shown:
        raise InvalidParameter("plot", "needs a method that fits the reports", estimate.method)
    figure, axes = _subplots(len(shown))
    for axis, group in zip(axes, shown, strict=True):
        _draw_group(axis, group)
    axes[0].legend(frameon=False, fontsize=9)
    figure.suptitle(_title(estimate, truth), fontsize=11)
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
    from unpoison.files import whole_file

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


def _subplots(count: int) -> tuple[Any, list[Any]]:
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtra("drawing", "plots") from None
    figure = Figure(figsize=(5.2 * count, 3.9), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(1, count, squeeze=False)[0]
    return figure, list(axes)


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
    axis.spines[["top", "right"]].set_visible(False)


def _title(estimate: Estimate, truth: float | None) -> str:
    share = f"{100 * estimate.byzantine.fraction:.1f} % of users on the {estimate.byzantine.side}"
    beside = "" if truth is None else f" (truth {truth:.5g})"
    return f"{estimate.method}: mean {estimate.mean:.5g}{beside}; attackers: {share}"
