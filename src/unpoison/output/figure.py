"""What all pictures share: new figures, their colours, and saving (needs the extra `plots`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from unpoison.errors import InvalidParameter, MissingExtra

OBSERVED, HONEST, POISON = "#9aa5b1", "#1f6feb", "#d1242f"
"""Grey, blue and red: what was reported, what is honest, what attackers sent."""
FORMATS = (".png", ".svg", ".pdf")
DOTS_PER_INCH = 150
"""Resolution of PNG pictures: one of three panels is some 2300 pixels wide."""


def new_figure(count: int, width: float, height: float, across: int) -> tuple[Any, list[Any]]:
    """A figure with `count` panels, at most `across` in a row; needs no display.

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
    # Without pyplot: it would keep every figure alive, and look for a display.
    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    FigureCanvasAgg(figure)
    axes = list(figure.subplots(rows, columns, squeeze=False).flat)
    for unused in axes[count:]:
        unused.remove()
    return figure, axes[:count]


def axis_label(name: str, unit: str | None) -> str:
    r"""What an axis shows, with its unit.

    >>> axis_label("mean", "km"), axis_label("mean", None), axis_label("mean", "US$")
    ('mean, km', 'mean', 'mean, US\\$')
    """
    # Two dollar signs in a text would make it a formula.
    return name if unit is None else f"{name}, {unit}".replace("$", r"\$")


def hide_frame(axis: Any) -> None:
    """Leave only the lower and the left line of a panel's frame.

    >>> figure, (axis,) = new_figure(1, width=4, height=3, across=1)
    >>> hide_frame(axis)
    >>> axis.spines["top"].get_visible()
    False
    """
    axis.spines[["top", "right"]].set_visible(False)


def save_figure(figure: Any, path: str | Path) -> None:
    """Write a figure, whole or not at all, in the format that its ending names.

    >>> from tempfile import TemporaryDirectory
    >>> from matplotlib.figure import Figure
    >>> with TemporaryDirectory() as folder:
    ...     save_figure(Figure(), Path(folder, "estimate.svg"))
    ...     Path(folder, "estimate.svg").exists()
    True
    """
    from unpoison.system.atomic_files import whole_file

    ending = Path(path).suffix.lower()
    if ending not in FORMATS:
        raise InvalidParameter("plot", f"must end in {', '.join(FORMATS)}", path)
    with whole_file(path) as file:
        figure.savefig(file, format=ending[1:], dpi=DOTS_PER_INCH)
