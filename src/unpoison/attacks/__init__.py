"""Attacks, one file each, found by name in `attacks`."""

from unpoison.attacks.base import Attack, Target, attacks, parse_attack
from unpoison.attacks.evasion import Evasion
from unpoison.attacks.expression import evaluate
from unpoison.attacks.none import NoAttack
from unpoison.attacks.point import Point
from unpoison.attacks.uniform import Uniform

__all__ = [
    "Attack",
    "Evasion",
    "NoAttack",
    "Point",
    "Target",
    "Uniform",
    "attacks",
    "evaluate",
    "parse_attack",
]
