"""The Plan: what everybody agrees on before collection.

The same frozen value drives the client, the simulator, the collector, the file tools and the
estimators. Short plans expand to the full form, in which they are saved.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from unpoison.errors import InvalidFile, InvalidParameter
from unpoison.mechanisms.exact import exact
from unpoison.plan.budgets import BASELINE, DAP, PROTOCOLS, Group, Tier
from unpoison.plan.form import (
    KEYS,
    category_names,
    cells_of,
    groups_of,
    number,
    once_each,
    refuse_unknown,
    tier_dict,
    tiers_of,
)
from unpoison.plan.value_range import PlanValues
from unpoison.registry import check_name

__all__ = ["BASELINE", "DAP", "PROTOCOLS", "Plan"]


@dataclass(frozen=True)
class Plan(PlanValues):
    """Mechanism, budgets, groups and value range of one collection.

    >>> plan = Plan.new(mechanism="piecewise", epsilon=0.25, low=0, high=86400)
    >>> [(group.epsilon, group.reports) for group in plan.groups]
    [(0.25, 1), (0.125, 2), (0.0625, 4), (0.03125, 8)]
    >>> Plan.from_json(plan.to_json()) == plan
    True
    """

    mechanism: str
    epsilon: float
    groups: tuple[Group, ...]
    low: float | None = None
    high: float | None = None
    categories: tuple[str, ...] | None = None
    protocol: str = DAP
    cells: int = 0
    tiers: tuple[Tier, ...] = ()
    step: float | None = None
    """The distance between neighbouring values, if values are low, low + step, …, high alone."""
    unit: str | None = None
    """What values are measured in, such as "s" or "km": shown behind every number.

    It belongs to the fingerprint, because 30 s and 30 min are different values: summaries of both
    must not be added, and devices that agreed on one must not report under the other.
    """

    def __post_init__(self) -> None:
        check_name("protocol", self.protocol, PROTOCOLS)
        self.check_domain()
        object.__setattr__(self, "cells", self.checked_cells())
        main = Tier(self.epsilon, self.groups)
        main.check(self.protocol)
        for tier in self.tiers:
            self._check_tier(tier)
        _ = self.group_mechanisms

    @classmethod
    def new(
        cls,
        mechanism: str = "piecewise",
        epsilon: float = 1.0,
        min_epsilon: float | str | None = None,
        **keys: Any,
    ) -> Plan:
        """A plan from the keys of the short form; `min_epsilon` may be "paper": 1/16.

        Without it, ε0 is ε/8, and half of all users are in the first group.
        """
        named = {"mechanism": mechanism, "epsilon": epsilon, "min_epsilon": min_epsilon, **keys}
        return cls.from_dict({key: value for key, value in named.items() if value is not None})

    @classmethod
    def from_dict(cls, keys: Mapping[str, Any]) -> Plan:
        """A plan from a short or full form; unknown keys are errors."""
        if not isinstance(keys, Mapping):
            raise InvalidParameter("plan", "must be a JSON object", type(keys).__name__)
        refuse_unknown(keys, KEYS, "plan")
        for required in ("mechanism", "epsilon"):
            if required not in keys:
                raise InvalidParameter("plan", f"needs the key {required!r}", sorted(keys))
        epsilon = number(keys, "epsilon")
        protocol = str(keys.get("protocol", DAP))
        categories = keys.get("categories")
        return cls(
            mechanism=str(keys["mechanism"]),
            epsilon=epsilon,
            groups=groups_of(keys, epsilon, protocol),
            low=number(keys, "low") if "low" in keys else None,
            high=number(keys, "high") if "high" in keys else None,
            categories=None if categories is None else category_names(categories),
            protocol=protocol,
            cells=cells_of(keys),
            tiers=tiers_of(keys.get("tiers", ()), protocol),
            step=number(keys, "step") if "step" in keys else None,
            unit=keys.get("unit"),
        )

    def to_dict(self) -> dict[str, Any]:
        """The full form, with keys that do not apply left out."""
        full: dict[str, Any] = {
            "mechanism": self.mechanism,
            "protocol": self.protocol,
            "epsilon": self.epsilon,
            "min_epsilon": self.min_epsilon,
            "low": self.low,
            "high": self.high,
            "step": self.step,
            "unit": self.unit,
            "categories": list(self.categories) if self.categories else None,
            "cells": None if self.categories else self.cells,
            "groups": [asdict(group) for group in self.groups],
            "tiers": [tier_dict(tier) for tier in self.tiers] or None,
        }
        return {key: value for key, value in full.items() if value is not None}

    @classmethod
    def from_json(cls, text: str) -> Plan:
        """A plan from its JSON text."""
        try:
            keys = json.loads(text, object_pairs_hook=once_each)
        except InvalidParameter:
            raise
        except (ValueError, RecursionError) as fault:
            raise InvalidParameter("plan", "must be JSON", str(fault)) from None
        return cls.from_dict(keys)

    def to_json(self) -> str:
        """The full form as JSON text."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False)

    @classmethod
    def load(cls, path: str | Path) -> Plan:
        """Read a plan file."""
        try:
            text = Path(path).read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as fault:
            raise InvalidFile(path, f"cannot be read as a plan ({fault})") from None
        try:
            return cls.from_json(text)
        except InvalidParameter as fault:
            raise InvalidFile(path, str(fault)) from None

    def save(self, path: str | Path) -> None:
        """Write the full form to a file, whole or not at all."""
        from unpoison.system.atomic_files import whole_file

        with whole_file(path) as file:
            file.write((self.to_json() + "\n").encode())

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the full form: equal plans, and only those, have equal fingerprints."""
        # Sorted keys: two programs that write the same plan in another order agree on its hash.
        canonical = json.dumps(self.to_dict(), sort_keys=True)
        return hashlib.sha256(canonical.encode()).hexdigest()

    def _check_tier(self, tier: Tier) -> None:
        tier.check(self.protocol)
        budgets = [other.epsilon for other in self.all_tiers]
        if exact(tier.epsilon) >= exact(self.epsilon):
            raise InvalidParameter("tiers", "must have epsilon below the plan's", tier.epsilon)
        if budgets.count(tier.epsilon) > 1:
            raise InvalidParameter("tiers", "must have different epsilon", tier.epsilon)
