"""The plan that a collector offers: parsed within bounds, and only if a device can follow it."""

from __future__ import annotations

import json
from fractions import Fraction
from functools import lru_cache
from typing import Any

from unpoison.client.policy import Policy
from unpoison.client.responses import shown
from unpoison.errors import BudgetExceeded, CollectorNotTrusted
from unpoison.mechanisms.exact import exact
from unpoison.plan import Plan

MAX_PARTS = 64
"""The most tiers, and groups in a list of them: more would only keep a device busy."""
REMEMBERED = 8


def offered_plan(keys: dict[str, Any], policy: Policy) -> Plan:
    """The plan, if it is one for devices and has the policy's range or categories.

    >>> short = {"mechanism": "piecewise-integer", "epsilon": 0.25, "low": 0, "high": 10}
    >>> len(offered_plan(short, Policy(low=0, high=10)).groups)
    3
    >>> offered_plan(short, Policy(low=0, high=20))
    Traceback (most recent call last):
        ...
    unpoison.errors.CollectorNotTrusted: the plan is for values in [0, 10], the policy for [0, 20]
    """
    _check_size(keys)
    plan = _parsed(_text(keys))
    if plan.categories != policy.categories:
        raise CollectorNotTrusted("the plan's categories are not exactly the policy's")
    if plan.bounds != policy.bounds:
        theirs, ours = (f"[{low:g}, {high:g}]" for low, high in (plan.bounds, policy.bounds))
        raise CollectorNotTrusted(f"the plan is for values in {theirs}, the policy for {ours}")
    return plan


def chosen_tier(plan: Plan, left: Fraction, limit: str) -> int:
    """The tier with the largest budget that does not exceed what is left, to the last digit.

    >>> plan = Plan.new(epsilon=1.0, low=0, high=1, tiers=[{"epsilon": 0.3}])
    >>> chosen_tier(plan, Fraction(1), "max_epsilon"), chosen_tier(plan, Fraction("0.3"), "")
    (0, 1)
    >>> chosen_tier(plan, Fraction("0.2"), "max_epsilon")
    Traceback (most recent call last):
        ...
    unpoison.errors.BudgetExceeded: max_epsilon leaves epsilon 0.2, and the report needs 0.3
    """
    budgets = [exact(tier.epsilon) for tier in plan.all_tiers]
    allowed = [budget for budget in budgets if budget <= left]
    if not allowed:
        raise BudgetExceeded(limit, min(budgets), left)
    return budgets.index(max(allowed))


def _text(keys: dict[str, Any]) -> str:
    try:
        return json.dumps(keys, sort_keys=True)
    except RecursionError:
        raise CollectorNotTrusted("the plan is nested too deeply") from None


@lru_cache(REMEMBERED)
def _parsed(text: str) -> Plan:
    """A plan of an integer mechanism; that each tier keeps to its budget is what a Plan checks."""
    try:
        plan = Plan.from_dict(json.loads(text))
    except Exception as fault:
        raise CollectorNotTrusted(f"the plan is not valid: {shown(fault)}") from None
    if not all(hasattr(mechanism, "integer") for mechanism in plan.group_mechanisms):
        raise CollectorNotTrusted(
            f"the plan's mechanism {plan.mechanism} is not one for devices, which draw integers"
        )
    return plan


def _check_size(keys: dict[str, Any]) -> None:
    tiers = keys.get("tiers", [])
    parts = [keys, *tiers[: MAX_PARTS + 1]] if isinstance(tiers, list) else [keys]
    groups = [part.get("groups", []) for part in parts if isinstance(part, dict)]
    if any(isinstance(each, list) and len(each) > MAX_PARTS for each in [tiers, *groups]):
        raise CollectorNotTrusted(f"the plan has more than {MAX_PARTS} tiers, or groups in one")
