"""Which categories to show where there are many: the most frequent, and those that are pushed."""

from __future__ import annotations

from unpoison.estimate.estimate import Estimate

ALL_SHOWN = 40
"""Categories up to which all are shown, in the plan's order: one screen."""
SHOWN = 20
"""Categories shown of more than that, unless another number is asked for."""
PUSHED_SHOWN = 20
"""Pushed categories shown besides: the most pushed ones; all of them are in the JSON."""


def shown_categories(estimate: Estimate, top: int | None = None) -> list[str]:
    """The names of the most frequent categories, then of pushed ones that are not among them.

    All, in the plan's order, if they are few and no number was asked for.

    >>> from unpoison.estimate.estimate import Byzantine
    >>> attackers = Byzantine(0.1, categories=("milk",))
    >>> frequencies = {"tea": 0.1, "coffee": 0.7, "milk": 0.0, "water": 0.2}
    >>> answer = Estimate("joint", 0.0, attackers, frequencies=frequencies)
    >>> shown_categories(answer), shown_categories(answer, top=1)
    (['tea', 'coffee', 'milk', 'water'], ['coffee', 'milk'])
    """
    frequencies = estimate.frequencies or {}
    if top is None and len(frequencies) <= ALL_SHOWN:
        return list(frequencies)
    ranked = sorted(frequencies, key=lambda name: -frequencies[name])[: top or SHOWN]
    pushed = (estimate.byzantine.categories or ())[:PUSHED_SHOWN]
    listed = set(ranked)
    return [*ranked, *(name for name in pushed if name not in listed)]
