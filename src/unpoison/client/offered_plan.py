"""The plan that a collector offers: parsed within bounds, and taken only if a device may use it."""

from __future__ import annotations

import json
from fractions import Fraction
from functools import lru_cache
from typing import Any

from unpoison.client.policy import Policy
from unpoison.client.responses import printable_excerpt
from unpoison.errors import BudgetExceeded, CollectorNotTrusted
from unpoison.mechanisms.exact import exact
from unpoison.plan import Plan

MAX_LIST = 64
"""The most tiers, and the most groups of a tier. Halving the largest epsilon that a plan may have
down to the smallest gives 19 groups; a longer list would only keep a device busy."""
CACHED_PLANS = 8
"""Parsed plans that are kept. Parsing takes about ten times as long as drawing a report, and a
process that simulates many devices is offered the same plan every time."""


def offered_plan(keys: dict[str, Any], policy: Policy) -> Plan:
    """The plan, if it is one for devices and has the policy's range and step, or categories.

    >>> short = {"mechanism": "piecewise-integer", "epsilon": 0.25, "low": 0, "high": 10}
    >>> len(offered_plan(short, Policy(low=0, high=10)).groups)
    4
    >>> offered_plan(short, Policy(low=0, high=20))
    Traceback (most recent call last):
        ...
    unpoison.errors.CollectorNotTrusted: the plan is for values in [0, 10], the policy for [0, 20]
    """
    # Before the plan is parsed: parsing is what a long list would make expensive.
    _check_list_lengths(keys)
    plan = _parsed_plan(_canonical_text(keys))
    if plan.categories != policy.categories:
        raise CollectorNotTrusted("the plan's categories are not exactly the policy's")
    if plan.bounds != policy.bounds:
        theirs, ours = (f"[{low:g}, {high:g}]" for low, high in (plan.bounds, policy.bounds))
        raise CollectorNotTrusted(f"the plan is for values in {theirs}, the policy for {ours}")
    if plan.step != policy.step:
        theirs, ours = (_step_words(step) for step in (plan.step, policy.step))
        raise CollectorNotTrusted(f"the plan is for values {theirs}, the policy {ours}")
    return plan


def chosen_tier(plan: Plan, most: Fraction) -> int:
    """The tier with the largest budget of at most `max_epsilon`, compared exactly.

    It depends on the plan and that setting alone. If it followed what is left of other budgets, the
    tier that a device asks for would tell its collector how much it has spent elsewhere.

    >>> plan = Plan.new(epsilon=1.0, low=0, high=1, tiers=[{"epsilon": 0.3}])
    >>> chosen_tier(plan, Fraction(1)), chosen_tier(plan, Fraction("0.3"))
    (0, 1)
    >>> chosen_tier(plan, Fraction("0.2"))
    Traceback (most recent call last):
        ...
    unpoison.errors.BudgetExceeded: max_epsilon leaves epsilon 0.2, and the report needs 0.3
    """
    budgets = [exact(tier.epsilon) for tier in plan.all_tiers]
    affordable = [budget for budget in budgets if budget <= most]
    if not affordable:
        raise BudgetExceeded("max_epsilon", min(budgets), most)
    return budgets.index(max(affordable))


def _step_words(step: float | None) -> str:
    return "without a step" if step is None else f"in steps of {step:g}"


def _canonical_text(keys: dict[str, Any]) -> str:
    """The plan's keys as sorted JSON: hashable, so that it can be the key of a cache."""
    try:
        return json.dumps(keys, sort_keys=True)
    except RecursionError:
        raise CollectorNotTrusted("the plan is nested too deeply") from None


@lru_cache(CACHED_PLANS)
def _parsed_plan(text: str) -> Plan:
    """A plan of integer mechanisms; a Plan checks itself that no tier exceeds its budget."""
    try:
        plan = Plan.from_dict(json.loads(text))
    except Exception as fault:
        # Whatever a hostile plan breaks in the parser, the fault is the collector's.
        raise CollectorNotTrusted(f"the plan is not valid: {printable_excerpt(fault)}") from None
    # Floating-point noise leaks the value in its low bits, so that epsilon would not hold.
    if not all(mechanism.for_devices for mechanism in plan.group_mechanisms):
        raise CollectorNotTrusted(
            f"the plan's mechanism {plan.mechanism} is not one for devices, which draw integers"
        )
    return plan


def _check_list_lengths(keys: dict[str, Any]) -> None:
    tiers = keys.get("tiers", [])
    tier_forms = [keys, *tiers[: MAX_LIST + 1]] if isinstance(tiers, list) else [keys]
    group_lists = [tier.get("groups", []) for tier in tier_forms if isinstance(tier, dict)]
    lists = [entry for entry in (tiers, *group_lists) if isinstance(entry, list)]
    if any(len(entries) > MAX_LIST for entries in lists):
        raise CollectorNotTrusted(f"the plan has more than {MAX_LIST} tiers, or groups in one")
