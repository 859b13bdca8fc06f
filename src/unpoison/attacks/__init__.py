"""Attacks, one file each, by name in `attacks`; every file of the folder is loaded."""

from unpoison.attacks.adaptive import Adaptive
from unpoison.attacks.base import Attack, attacks
from unpoison.attacks.beta import Beta
from unpoison.attacks.by_groups import AttackByGroups, PlacedAttack
from unpoison.attacks.categories import CategoryAttack
from unpoison.attacks.evasion import Evasion
from unpoison.attacks.expression import evaluate
from unpoison.attacks.fishing import Fishing
from unpoison.attacks.gaussian import Gaussian
from unpoison.attacks.imitator import Imitator
from unpoison.attacks.input_manipulation import InputManipulation
from unpoison.attacks.maximal_gain import MaximalGain
from unpoison.attacks.noise import Noise
from unpoison.attacks.none import NoAttack
from unpoison.attacks.opposite import Opposite
from unpoison.attacks.parsing import parse_attack
from unpoison.attacks.placement import Placement
from unpoison.attacks.point import Point
from unpoison.attacks.random_reports import RandomReports
from unpoison.attacks.ranges import RangeAttack
from unpoison.attacks.some_groups import SomeGroups
from unpoison.attacks.target import Collection, Target
from unpoison.attacks.targets import Targets
from unpoison.attacks.triangular import Triangular
from unpoison.attacks.uneven import Uneven
from unpoison.attacks.uniform import Uniform
from unpoison.registry import load_modules

__all__ = [
    "Adaptive",
    "Attack",
    "AttackByGroups",
    "Beta",
    "CategoryAttack",
    "Collection",
    "Evasion",
    "Fishing",
    "Gaussian",
    "Imitator",
    "InputManipulation",
    "MaximalGain",
    "NoAttack",
    "Noise",
    "Opposite",
    "PlacedAttack",
    "Placement",
    "Point",
    "RandomReports",
    "RangeAttack",
    "SomeGroups",
    "Target",
    "Targets",
    "Triangular",
    "Uneven",
    "Uniform",
    "attacks",
    "evaluate",
    "parse_attack",
]

load_modules(__name__)
