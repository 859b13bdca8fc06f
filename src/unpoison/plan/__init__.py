"""What is agreed before collection: the Plan, its JSON form, budgets, and who is in which group."""

from unpoison.plan.assignment import GroupAssigner
from unpoison.plan.budgets import Group, Tier
from unpoison.plan.plan import Plan

__all__ = ["Group", "GroupAssigner", "Plan", "Tier"]
