"""Tables on standard output."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def print_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Columns as wide as they need; numbers to the right, the first column to the left."""
    widths = [max(len(row[place]) for row in [heads, *rows]) for place in range(len(heads))]
    for row in (heads, ["─" * width for width in widths], *rows):
        cells = [
            cell.ljust(width) if place == 0 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        sys.stdout.write("  ".join(cells).rstrip() + "\n")
