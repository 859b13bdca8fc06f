"""Counts of reports drawn directly, at a cost that does not grow with the number of reports."""

from __future__ import annotations

import numpy as np

from unpoison.types import FloatArray, IntArray


def draw_evenly(number: int, cells: int, rng: np.random.Generator) -> IntArray:
    """The counts of `number` reports, each in any cell with equal probability.

    >>> int(draw_evenly(1000, 8, np.random.default_rng(1)).sum())
    1000
    """
    return rng.multinomial(number, np.full(cells, 1 / cells))


def draw_windows(
    starts: FloatArray, width: float, numbers: IntArray, cells: int, rng: np.random.Generator
) -> IntArray:
    """The cells of reports that are uniform on [start, start + width], `numbers` for each start.

    Starts and width are in cells. A window is cut into nodes of a binary tree over the cells, some
    two a level, and the pieces of cells at its ends. Its reports are divided among these, then all
    windows' reports together are halved at random from node to node, down to the cells. That is the
    same as to draw every report.

    >>> counts = draw_windows(np.array([0.5]), 2.0, np.array([4000]), 4, np.random.default_rng(1))
    >>> [round(int(count) / 1000) for count in counts]
    [1, 2, 1, 0]
    """
    levels = max(1, (cells - 1).bit_length())
    nodes, lengths = _pieces(starts, width, cells, levels)
    total = lengths.sum(axis=1, keepdims=True)
    divided = rng.multinomial(numbers, lengths / total)
    tree = np.zeros(2 ** (levels + 1), dtype=np.int64)
    np.add.at(tree, nodes, divided)
    for level in range(levels):
        parents = tree[2**level : 2 ** (level + 1)]
        left = rng.binomial(parents, 0.5)
        tree[2 ** (level + 1) : 2 ** (level + 2) : 2] += left
        tree[2 ** (level + 1) + 1 : 2 ** (level + 2) : 2] += parents - left
    return tree[2**levels : 2**levels + cells]


def _pieces(
    starts: FloatArray, width: float, cells: int, levels: int
) -> tuple[IntArray, FloatArray]:
    """The nodes that each window is made of, and how much of it is in each.

    Node 1 is the root, node n has the children 2n and 2n + 1, and cell c is the leaf 2^levels + c.
    """
    ends = np.minimum(starts + width, cells)
    first = np.minimum(np.floor(starts), cells - 1).astype(np.int64)
    last = np.minimum(np.floor(ends), cells - 1).astype(np.int64)
    within = first == last
    leaves = 2**levels
    nodes = [leaves + first, leaves + last]
    lengths = [
        np.where(within, ends - starts, first + 1 - starts),
        np.where(within, 0.0, ends - last),
    ]
    left, right = leaves + first + 1, leaves + last
    for level in range(levels + 1):
        for taken, node in ((left % 2 == 1, left), (right % 2 == 1, right - 1)):
            used = taken & (left < right)
            nodes.append(np.where(used, node, 1))
            lengths.append(np.where(used, 2.0**level, 0.0))
            if node is left:
                left = np.where(used, left + 1, left)
            else:
                right = np.where(used, right - 1, right)
        left, right = left // 2, right // 2
    return np.stack(nodes, axis=1), np.maximum(np.stack(lengths, axis=1), 0.0)
