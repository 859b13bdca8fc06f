"""The Plan: what everybody agrees on before collection.

The same frozen value drives the client, the simulator, the collector, the file tools and the
estimators. Short plans expand to the full form, in which they are saved.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from unpoison.errors import InvalidFile, InvalidParameter
from unpoison.mechanisms import Mechanism, make, mechanisms
from unpoison.mechanisms.exact import exact
from unpoison.plan.budgets import Group, Tier
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
    unit_text,
)
from unpoison.plan.lattice import nearest_shares, step_count
from unpoison.registry import check_name
from unpoison.types import FloatArray

DAP, BASELINE = "dap", "baseline"
PROTOCOLS = (DAP, BASELINE)
MIN_CATEGORIES = 2
"""The fewest categories: of one there is nothing to report."""


@dataclass(frozen=True)
class Plan:
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
    protocol: str = "dap"
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
        self._check_domain()
        object.__setattr__(self, "cells", self._checked_cells())
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
        protocol = str(keys.get("protocol", "dap"))
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

    @property
    def min_epsilon(self) -> float:
        """The smallest budget of a group: ε0 (ε_α in the baseline)."""
        return min(group.epsilon for group in self.groups)

    @property
    def all_tiers(self) -> tuple[Tier, ...]:
        """The plan's own tier, then those for smaller personal budgets."""
        return (Tier(self.epsilon, self.groups), *self.tiers)

    @property
    def all_groups(self) -> tuple[Group, ...]:
        """Every group in the order that reports number them: tier by tier."""
        return tuple(group for tier in self.all_tiers for group in tier.groups)

    @cached_property
    def group_mechanisms(self) -> tuple[Mechanism, ...]:
        """The mechanism of each group, at its budget."""
        return tuple(make(self.mechanism, g.epsilon, self.cells) for g in self.all_groups)

    @property
    def categorical(self) -> bool:
        """Whether values are categories rather than numbers."""
        return mechanisms[self.mechanism].categorical

    def tier_groups(self, tier: int) -> range:
        """The numbers of the groups of one tier."""
        sizes = [len(tier.groups) for tier in self.all_tiers]
        first = sum(sizes[:tier])
        return range(first, first + sizes[tier])

    def tier_of(self, group: int) -> int:
        """The tier that a group belongs to."""
        tiers = range(len(self.all_tiers))
        return next(tier for tier in tiers if group in self.tier_groups(tier))

    def groups_of_user(self, group: int) -> tuple[int, ...]:
        """The numbers of all groups in which a user of `group` reports.

        That is `group` alone, or both groups of its tier in the baseline, where every user reports
        once with either budget.

        >>> plan = Plan.new(epsilon=1.0, min_epsilon=0.25, low=0, high=1, protocol="baseline")
        >>> plan.groups_of_user(1)
        (0, 1)
        """
        if self.protocol == BASELINE:
            return tuple(self.tier_groups(self.tier_of(group)))
        return (group,)

    @property
    def groups_that_count_users(self) -> tuple[int, ...]:
        """Groups that hold every user exactly once: their sizes add up to the number of users.

        >>> plan = Plan.new(epsilon=1.0, min_epsilon=0.25, low=0, high=1, protocol="baseline")
        >>> plan.groups_that_count_users
        (0,)
        """
        groups = range(len(self.all_groups))
        return tuple(group for group in groups if self.groups_of_user(group)[0] == group)

    def tier_for_budget(self, budget: float) -> int | None:
        """The tier with the largest ε that a personal budget allows, if there is one."""
        allowed = [(t.epsilon, i) for i, t in enumerate(self.all_tiers) if t.epsilon <= budget]
        return max(allowed)[1] if allowed else None

    @property
    def bounds(self) -> tuple[float, float]:
        """The value range in natural units; of categories, their first and last number."""
        if self.low is None or self.high is None:
            return 0.0, float(self.cells - 1)
        return self.low, self.high

    @cached_property
    def steps(self) -> int | None:
        """The number of steps from low to high; None where values may lie anywhere between.

        >>> Plan.new(low=1, high=5, step=1).steps
        4
        """
        if self.step is None:
            return None
        return step_count(*self.bounds, self.step)

    def normalise(self, values: FloatArray) -> FloatArray:
        """Natural units to the mechanism's input domain; categories are numbers already."""
        if self.categories is not None:
            return np.asarray(values, dtype=np.float64)
        return self._inputs_at(self.shares_of_range(values))

    def inputs_of(self, values: FloatArray) -> FloatArray:
        """Users' values, normalised; with a step, each counts as the nearest that users can have.

        >>> Plan.new(low=1, high=5, step=1).inputs_of(np.array([1.0, 3.2, 9.0])).tolist()
        [-1.0, 0.0, 1.0]
        """
        if self.steps is None:
            return self.normalise(values)
        return self._inputs_at(nearest_shares(self.shares_of_range(values), self.steps))

    def shares_of_range(self, values: FloatArray) -> FloatArray:
        """Places of numbers between low (0) and high (1); those beyond are at the nearest end."""
        low, high = self.bounds
        share = (np.asarray(values, dtype=np.float64) - low) / (high - low)
        return np.clip(share, 0.0, 1.0)

    def _inputs_at(self, shares: FloatArray) -> FloatArray:
        mechanism = self.group_mechanisms[0]
        width = mechanism.input_high - mechanism.input_low
        return np.asarray(mechanism.input_low + shares * width)

    def normalise_one(self, value: float) -> float:
        """One natural value in the mechanism's input domain."""
        return float(self.normalise(np.array([value]))[0])

    def natural(self, inputs: float) -> float:
        """A normalised value in natural units."""
        (low, high), mechanism = self.bounds, self.group_mechanisms[0]
        share = (inputs - mechanism.input_low) / (mechanism.input_high - mechanism.input_low)
        return low + share * (high - low)

    @property
    def natural_scale(self) -> float:
        """The size of one normalised unit in natural units."""
        return self.natural(1.0) - self.natural(0.0)

    def _check_domain(self) -> None:
        if self.categorical:
            self._check_categories()
        elif self.categories is not None:
            raise InvalidParameter("categories", "go with k-rr only", self.mechanism)
        elif self.low is None or self.high is None:
            raise InvalidParameter("plan", "needs the value range low and high", self.mechanism)
        elif not 0 < self.high - self.low < math.inf:
            rule = "must be below high, by a finite difference"
            raise InvalidParameter("low", rule, f"{self.low} and {self.high}")
        _ = self.steps
        if self.unit is not None:
            unit_text(self.unit)

    def _check_categories(self) -> None:
        if self.low is not None or self.high is not None:
            raise InvalidParameter("low and high", "do not go with categories", self.mechanism)
        if self.step is not None:
            raise InvalidParameter("step", "does not go with categories", self.step)
        if self.unit is not None:
            raise InvalidParameter("unit", "does not go with categories", repr(self.unit))
        if self.categories is None:
            raise InvalidParameter("plan", "needs categories", self.mechanism)
        if len(self.categories) < MIN_CATEGORIES:
            raise InvalidParameter("categories", "must be at least 2 names", len(self.categories))
        repeated = [name for name, times in Counter(self.categories).items() if times > 1]
        if repeated:
            received = f"{sorted(repeated)[0]!r} twice"
            raise InvalidParameter("categories", "must be different names", received)

    def _checked_cells(self) -> int:
        if self.categories is None:
            return self.cells or mechanisms[self.mechanism].default_cells
        if self.cells not in (0, len(self.categories)):
            raise InvalidParameter("cells", "must be the number of categories", self.cells)
        return len(self.categories)

    def _check_tier(self, tier: Tier) -> None:
        tier.check(self.protocol)
        budgets = [other.epsilon for other in self.all_tiers]
        if exact(tier.epsilon) >= exact(self.epsilon):
            raise InvalidParameter("tiers", "must have epsilon below the plan's", tier.epsilon)
        if budgets.count(tier.epsilon) > 1:
            raise InvalidParameter("tiers", "must have different epsilon", tier.epsilon)
