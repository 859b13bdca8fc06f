"""The plan file's keys: from what people write to the parts of a Plan, with every fault named."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from unpoison.errors import InvalidParameter
from unpoison.plan.budgets import (
    BASELINE,
    Group,
    Tier,
    baseline_groups,
    dap_groups,
    default_groups,
)
from unpoison.registry import suggest

PAPER, PAPER_MIN_EPSILON = "paper", 1 / 16
"""The name of the paper's setting, and ε0 of its experiments."""
MOST_UNIT_CHARACTERS = 16
"""The longest text of a unit: it stands behind every number, in headlines and on axes."""
MIN_CELLS = 2
"""One cell would be the same report for everybody."""
KEYS = (
    "mechanism",
    "protocol",
    "epsilon",
    "min_epsilon",
    "low",
    "high",
    "step",
    "unit",
    "categories",
    "cells",
    "groups",
    "tiers",
)


def once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object, unless it names a key twice.

    >>> once_each([("low", 0), ("high", 1), ("low", 2)])
    Traceback (most recent call last):
        ...
    unpoison.errors.InvalidParameter: plan must name each key once; received 'low' twice
    """
    keys = dict(pairs)
    if len(keys) < len(pairs):
        names = [name for name, _ in pairs]
        repeated = next(name for name in names if names.count(name) > 1)
        raise InvalidParameter("plan", "must name each key once", f"{repeated!r} twice")
    return keys


def refuse_unknown(keys: Mapping[str, Any], known: tuple[str, ...], where: str) -> None:
    """Refuse a key that is not known, and suggest the one that was meant.

    >>> refuse_unknown({"epsilom": 1.0}, ("epsilon",), "a tier")
    Traceback (most recent call last):
        ...
    unpoison.errors.InvalidParameter: a tier knows the keys epsilon; received 'epsilom', did you ...
    """
    for key in keys:
        if key not in known:
            raise InvalidParameter(where, f"knows the keys {', '.join(known)}", suggest(key, known))


def number(keys: Mapping[str, Any], key: str) -> float:
    """A finite number; adding 0 makes −0 plain, so that equal plans have one text.

    >>> number({"low": 3, "high": "ten"}, "low")
    3.0
    >>> number({"low": 3, "high": "ten"}, "high")
    Traceback (most recent call last):
        ...
    unpoison.errors.InvalidParameter: high must be a finite number; received 'ten'
    """
    value = keys[key]
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not abs(value) <= sys.float_info.max:
        raise InvalidParameter(key, "must be a finite number", repr(value))
    return float(value) + 0.0


def _whole(keys: Mapping[str, Any], key: str) -> int:
    value = number(keys, key)
    if value != int(value):
        raise InvalidParameter(key, "must be a whole number", value)
    return int(value)


def cells_of(keys: Mapping[str, Any]) -> int:
    """The given number of cells; 0 stands for the mechanism's own.

    >>> cells_of({"cells": 256}), cells_of({})
    (256, 0)
    """
    if "cells" not in keys:
        return 0
    cells = _whole(keys, "cells")
    if cells < MIN_CELLS:
        raise InvalidParameter("cells", f"must be at least {MIN_CELLS}", cells)
    return cells


def unit_text(unit: object) -> str:
    """The unit of the values, such as "s": a short text that may stand behind a number.

    >>> unit_text("km/h")
    'km/h'
    >>> unit_text("")
    Traceback (most recent call last):
        ...
    unpoison.errors.InvalidParameter: unit must be a text of 1 to 16 printable characters; ...
    """
    if (
        not isinstance(unit, str)
        or not 1 <= len(unit) <= MOST_UNIT_CHARACTERS
        or not unit.isprintable()
    ):
        rule = f"must be a text of 1 to {MOST_UNIT_CHARACTERS} printable characters"
        raise InvalidParameter("unit", rule, repr(unit))
    if unit != unit.strip() or unit[0].isdigit():
        # "3 100 km" would be read as another number.
        rule = "must not begin with a digit, nor have a space at either end"
        raise InvalidParameter("unit", rule, repr(unit))
    return unit


def category_names(names: object) -> tuple[str, ...]:
    """A list of names, none of them empty.

    >>> category_names(["tea", "coffee"])
    ('tea', 'coffee')
    """
    if isinstance(names, str) or not isinstance(names, list | tuple):
        raise InvalidParameter("categories", "must be a list of names", repr(names))
    if any(not isinstance(name, str) or not name for name in names):
        raise InvalidParameter("categories", "must be names, not empty", repr(names))
    return tuple(names)


def groups_of(keys: Mapping[str, Any], epsilon: float, protocol: str) -> tuple[Group, ...]:
    """The given groups, equal ones for ε and a given ε0, or the default.

    >>> [group.epsilon for group in groups_of({"min_epsilon": 0.25}, 1.0, "dap")]
    [1.0, 0.5, 0.25]
    >>> [group.epsilon for group in groups_of({}, 1.0, "dap")]
    [1.0, 0.5, 0.25, 0.125]
    >>> [group.epsilon for group in groups_of({"min_epsilon": "paper"}, 0.125, "dap")]
    [0.125, 0.0625]
    """
    if "groups" not in keys:
        if protocol == BASELINE:
            return baseline_groups(epsilon, _smallest_budget(keys, epsilon))
        if "min_epsilon" not in keys:
            return default_groups(epsilon)
        return dap_groups(epsilon, _smallest_budget(keys, epsilon))
    groups = keys["groups"]
    if not isinstance(groups, list | tuple) or not groups:
        raise InvalidParameter("groups", "must be a list with at least one group", repr(groups))
    parsed = tuple(_group(group) for group in groups)
    smallest = min(group.epsilon for group in parsed)
    if "min_epsilon" in keys and number(keys, "min_epsilon") != smallest:
        rule = f"must be the smallest epsilon of the groups, {smallest:g}"
        raise InvalidParameter("min_epsilon", rule, keys["min_epsilon"])
    return parsed


def _smallest_budget(keys: Mapping[str, Any], epsilon: float) -> float:
    """ε0 as given, or the paper's: by its name, and in the baseline, which is the paper's."""
    named = keys.get("min_epsilon", PAPER)
    return min(PAPER_MIN_EPSILON, epsilon) if named == PAPER else number(keys, "min_epsilon")


def _group(keys: Mapping[str, Any]) -> Group:
    if not isinstance(keys, Mapping):
        raise InvalidParameter("groups", "must hold objects", repr(keys))
    fields = ("epsilon", "reports", "share")
    refuse_unknown(keys, fields, "a group")
    for field in fields:
        if field not in keys:
            raise InvalidParameter("a group", f"needs the key {field!r}", sorted(keys))
    return Group(number(keys, "epsilon"), _whole(keys, "reports"), number(keys, "share"))


def tiers_of(tiers: object, protocol: str) -> tuple[Tier, ...]:
    """The tiers for smaller personal budgets, in short or full form.

    >>> tiers_of([{"epsilon": 0.25, "min_epsilon": 0.25}], "dap")
    (Tier(epsilon=0.25, groups=(Group(epsilon=0.25, reports=1, share=1.0),)),)
    """
    if not isinstance(tiers, list | tuple):
        raise InvalidParameter("tiers", "must be a list", repr(tiers))
    return tuple(_tier(tier, protocol) for tier in tiers)


def _tier(keys: Mapping[str, Any], protocol: str) -> Tier:
    if not isinstance(keys, Mapping):
        raise InvalidParameter("tiers", "must hold objects", repr(keys))
    refuse_unknown(keys, ("epsilon", "min_epsilon", "groups"), "a tier")
    if "epsilon" not in keys:
        raise InvalidParameter("a tier", "needs the key 'epsilon'", sorted(keys))
    epsilon = number(keys, "epsilon")
    return Tier(epsilon, groups_of(keys, epsilon, protocol))


def tier_dict(tier: Tier) -> dict[str, Any]:
    """A tier's full form.

    >>> tier_dict(Tier(0.25, (Group(0.25, 1, 1.0),)))
    {'epsilon': 0.25, 'groups': [{'epsilon': 0.25, 'reports': 1, 'share': 1.0}]}
    """
    return {"epsilon": tier.epsilon, "groups": [asdict(group) for group in tier.groups]}
