"""Statistics under local differential privacy that survive colluding poisoners.

Names load their modules when they are first used: a device, a server or `unpoison --help` needs few
of them, and all together take longer to load than most commands run.
"""

import sys
from types import ModuleType
from typing import TYPE_CHECKING

from unpoison._version import __version__
from unpoison.errors import (
    BadFiles,
    BudgetExceeded,
    CollectorNotTrusted,
    CollectorRefused,
    CollectorUnreachable,
    ConvergenceWarning,
    IncompatibleSummaries,
    InvalidFile,
    InvalidParameter,
    InvalidReport,
    InvalidRow,
    InvalidValue,
    IssuerNotTrusted,
    IssuerRefused,
    MissingExtra,
    NotEnoughData,
    UnpoisonError,
)
from unpoison.lazy_names import lazy_names
from unpoison.registry import fill_on_first_use

if TYPE_CHECKING:
    from unpoison.api import estimate, summarise
    from unpoison.estimate import Estimate
    from unpoison.plan import Plan
    from unpoison.reports import Reports, perturb
    from unpoison.simulation import Simulation, simulate
    from unpoison.summary import Summary

__all__ = [
    "BadFiles",
    "BudgetExceeded",
    "CollectorNotTrusted",
    "CollectorRefused",
    "CollectorUnreachable",
    "ConvergenceWarning",
    "Estimate",
    "IncompatibleSummaries",
    "InvalidFile",
    "InvalidParameter",
    "InvalidReport",
    "InvalidRow",
    "InvalidValue",
    "IssuerNotTrusted",
    "IssuerRefused",
    "MissingExtra",
    "NotEnoughData",
    "Plan",
    "Reports",
    "Simulation",
    "Summary",
    "UnpoisonError",
    "__version__",
    "estimate",
    "perturb",
    "simulate",
    "summarise",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "unpoison.api": ["estimate", "summarise"],
        "unpoison.estimate": ["Estimate"],
        "unpoison.plan": ["Plan"],
        "unpoison.reports": ["Reports", "perturb"],
        "unpoison.simulation": ["Simulation", "simulate"],
        "unpoison.summary": ["Summary"],
    },
)


class _Package(ModuleType):
    """This package: its attribute `estimate` is the function, not the folder of that name."""

    def __setattr__(self, name: str, value: object) -> None:
        # The import system makes each folder that it loads an attribute of the package.
        if name != "estimate" or not isinstance(value, ModuleType):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def _load_methods() -> None:
    import unpoison.api  # noqa: F401  (files all methods)


fill_on_first_use("method", _load_methods)
