"""Cells of experiments on the joint filter, with the settings that these have in common."""

from __future__ import annotations

from typing import Any, TypeVar

from unpoison.experiments.cell import Cell
from unpoison.protocols.joint import JOINT

KindOfCell = TypeVar("KindOfCell", bound=Cell)


def joint_cell(kind: type[KindOfCell], **fields: Any) -> KindOfCell:
    """A cell of the joint filter alone, on PM, with counts drawn directly unless `fields` differ.

    The filter looks at counts only, so that drawing every report would take longer and show no
    more.

    >>> collection = {"dataset": "taxi", "users": 1000, "epsilon": 1.0}
    >>> cell = joint_cell(Cell, **collection, attack="none", gamma=0.0, trials=2)
    >>> cell.mechanism, cell.methods, cell.fast
    ('piecewise', ('joint',), True)
    """
    common: dict[str, Any] = {"mechanism": "piecewise", "methods": (JOINT,), "fast": True}
    return kind(**{**common, **fields})
