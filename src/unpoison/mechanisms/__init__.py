"""ε-LDP mechanisms, one file each, by name in `mechanisms`; every file here is loaded."""

from unpoison.mechanisms.base import Mechanism, make, mechanisms
from unpoison.mechanisms.integer import (
    IntegerPiecewise,
    IntegerRandomizedResponse,
    IntegerSquareWave,
    IntegerWindowMechanism,
)
from unpoison.mechanisms.k_rr import CategoricalMechanism, RandomizedResponse
from unpoison.mechanisms.piecewise import PiecewiseMechanism
from unpoison.mechanisms.square_wave import SquareWaveMechanism, square_wave_half_width
from unpoison.mechanisms.transition import (
    DiagonalTransition,
    StackedTransition,
    Transition,
    WindowTransition,
)
from unpoison.mechanisms.window import WindowMechanism
from unpoison.registry import load_modules

__all__ = [
    "CategoricalMechanism",
    "DiagonalTransition",
    "IntegerPiecewise",
    "IntegerRandomizedResponse",
    "IntegerSquareWave",
    "IntegerWindowMechanism",
    "Mechanism",
    "PiecewiseMechanism",
    "RandomizedResponse",
    "SquareWaveMechanism",
    "StackedTransition",
    "Transition",
    "WindowMechanism",
    "WindowTransition",
    "make",
    "mechanisms",
    "square_wave_half_width",
]

load_modules(__name__)
