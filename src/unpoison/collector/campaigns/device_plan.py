"""Which plans devices can follow: exact mechanisms, and sizes that the collector can hold."""

from __future__ import annotations

from typing import Any

from unpoison.collector.faults import Fault
from unpoison.errors import InvalidParameter
from unpoison.mechanisms import mechanisms
from unpoison.plan import Plan
from unpoison.plan.form import KEYS

MOST_COUNTS = 2**20
"""Cells over all groups: a Summary of so many 64-bit counts takes 8 MiB of memory."""
MOST_REPORTS = 2**15
"""Reports a user sends in one group. A device sends all in one request, in the baseline those of
two groups; this keeps it below the request's limit of 2**16 values."""


def device_plan(keys: Any) -> tuple[Plan, str | None]:
    """Parse a plan for real devices; also returns a notice if its mechanism had to be replaced.

    >>> plan, notice = device_plan({"mechanism": "piecewise", "epsilon": 1, "low": 0, "high": 9})
    >>> plan.mechanism, notice
    ('piecewise-integer', 'mechanism piecewise became piecewise-integer: devices draw ...')
    """
    try:
        plan, notice = _with_exact_mechanism(Plan.from_dict(keys))
        _check_size(plan)
        plan.to_json().encode()
    except InvalidParameter as fault:
        field = f"plan.{fault.parameter}" if fault.parameter in KEYS else "plan"
        raise Fault("invalid-plan", f"The plan cannot be used: {fault}.", field) from None
    except UnicodeEncodeError:
        # JSON may escape half of a surrogate pair, which no database stores as text.
        raise Fault("invalid-plan", "The plan's names must be Unicode text.", "plan") from None
    return plan, notice


def _with_exact_mechanism(plan: Plan) -> tuple[Plan, str | None]:
    """The plan with a mechanism that draws with integers: with floats, ε holds only roughly."""
    mechanism = mechanisms[plan.mechanism]
    if mechanism.for_devices:
        return plan, None
    twin = mechanism.device_twin
    if twin is None:
        raise InvalidParameter("mechanism", "must be one for devices", plan.mechanism)
    # The number of cells belongs to the mechanism: the twin has its own.
    keys = {key: value for key, value in plan.to_dict().items() if key != "cells"}
    notice = f"mechanism {plan.mechanism} became {twin}: devices draw with integers only"
    return Plan.from_dict({**keys, "mechanism": twin}), notice


def _check_size(plan: Plan) -> None:
    counts = len(plan.all_groups) * plan.cells
    if counts > MOST_COUNTS:
        rule = f"must have at most {MOST_COUNTS:,} cells over all groups"
        raise InvalidParameter("the plan", rule, f"{counts:,}")
    reports = max(group.reports for group in plan.all_groups)
    if reports > MOST_REPORTS:
        rule = f"must have at most {MOST_REPORTS:,} reports a user"
        raise InvalidParameter("the plan", rule, f"{reports:,}")
