"""Rival defences, one file each, by name in `defences`; every file of the folder is loaded."""

from unpoison.defences.base import Defence, Keeping, decoded_cells, defences
from unpoison.defences.boxplot import Boxplot
from unpoison.defences.by_value import Averaging, Judging, KeepingByValue
from unpoison.defences.emf_boxplot import EmfBoxplot
from unpoison.defences.emf_isolation_forest import EmfIsolationForest
from unpoison.defences.emf_k_means import EmfKMeans
from unpoison.defences.isolation_forest import IsolationForest
from unpoison.defences.k_means import KMeans
from unpoison.defences.ostrich import Ostrich
from unpoison.defences.probed import Probed, ProbedJudging
from unpoison.defences.trimming import Trimming
from unpoison.registry import load_modules

__all__ = [
    "Averaging",
    "Boxplot",
    "Defence",
    "EmfBoxplot",
    "EmfIsolationForest",
    "EmfKMeans",
    "IsolationForest",
    "Judging",
    "KMeans",
    "Keeping",
    "KeepingByValue",
    "Ostrich",
    "Probed",
    "ProbedJudging",
    "Trimming",
    "decoded_cells",
    "defences",
]

load_modules(__name__)
