"""Statistics under local differential privacy that survive colluding poisoners."""

from unpoison._version import __version__
from unpoison.api import estimate, summarise
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
