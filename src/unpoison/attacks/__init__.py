"""Attacks, one file each, found by name in `attacks`."""

from unpoison.attacks.base import Attack, Target, attacks, parse_attack
from unpoison.attacks.categories import CategoryAttack
from unpoison.attacks.evasion import Evasion
from unpoison.attacks.expression import evaluate
from unpoison.attacks.maximal_gain import MaximalGain
from unpoison.attacks.none import NoAttack
from unpoison.attacks.point import Point
from unpoison.attacks.random_reports import RandomReports
from unpoison.attacks.targets import Targets
from unpoison.attacks.uniform import Uniform

__all__ = [
    "Attack",
    "CategoryAttack",
    "Evasion",
    "MaximalGain",
    "NoAttack",
    "Point",
    "RandomReports",
    "Target",
    "Targets",
    "Uniform",
    "attacks",
    "evaluate",
    "parse_attack",
]
