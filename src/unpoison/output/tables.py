"""Tables on standard output."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def print_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print columns as wide as they need; the first aligned to the left, numbers to the right.

    >>> print_table(["method", "error"], [["emf", "0.5"]])
    method  error
    ──────  ─────
    emf       0.5
    """
    columns = range(len(heads))
    widths = [max(len(row[column]) for row in [heads, *rows]) for column in columns]
    for row in (heads, ["─" * width for width in widths], *rows):
        cells = [
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        sys.stdout.write("  ".join(cells).rstrip() + "\n")
