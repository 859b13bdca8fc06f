"""What makes two draws interchangeable, so that the first may be sent in place of the second."""

from __future__ import annotations

import hashlib
import json

from unpoison.plan import Plan


def draw_parameters(plan: Plan, groups: tuple[int, ...]) -> str:
    """A hash of all that a draw in these groups depends on, besides the value and chance.

    Cells drawn under equal parameters have one distribution for every value. Another budget, number
    of reports or range is another mechanism, whose cells say something else. Names and numbers of
    groups do not matter.

    >>> plan = Plan.new("piecewise-integer", epsilon=0.5, min_epsilon=0.25, low=0, high=1)
    >>> wider = Plan.new("piecewise-integer", epsilon=1.0, min_epsilon=0.25, low=0, high=1)
    >>> draw_parameters(plan, (0,)) == draw_parameters(plan, (1,))
    False
    >>> plan.groups[1].epsilon == wider.groups[2].epsilon, plan.groups[1].reports
    (True, 2)
    >>> draw_parameters(plan, (1,)) == draw_parameters(wider, (2,))
    False
    """
    drawn_in = [plan.all_groups[group] for group in groups]
    parameters = {
        "mechanism": plan.mechanism,
        "cells": plan.cells,
        "low": plan.low,
        "high": plan.high,
        "step": plan.step,
        "categories": plan.categories,
        "groups": [[group.epsilon, group.reports] for group in drawn_in],
    }
    return hashlib.sha256(json.dumps(parameters, sort_keys=True).encode()).hexdigest()


def possible_parameters(plan: Plan, tier: int) -> set[str]:
    """The parameters of every draw that a ticket of a tier may ask for.

    >>> plan = Plan.new("piecewise-integer", epsilon=0.5, min_epsilon=0.25, low=0, high=1)
    >>> len(possible_parameters(plan, 0))
    2
    """
    assignments = {tuple(plan.groups_of_user(group)) for group in plan.tier_groups(tier)}
    return {draw_parameters(plan, groups) for groups in assignments}
