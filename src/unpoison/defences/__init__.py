"""Rival defences, one file each, by name in `defences`; every file of the folder is loaded."""

from unpoison.defences.base import Defence, SelectingDefence, decoded_cells, defences
from unpoison.defences.boxplot import Boxplot
from unpoison.defences.emf_boxplot import EmfBoxplot
from unpoison.defences.emf_first import EmfFirst, EmfThenInliers
from unpoison.defences.emf_isolation_forest import EmfIsolationForest
from unpoison.defences.emf_k_means import EmfKMeans
from unpoison.defences.isolation_forest import IsolationForest
from unpoison.defences.k_means import KMeans
from unpoison.defences.ostrich import Ostrich
from unpoison.defences.robust_average import InlierAverage, InlierDefence, RobustAverage
from unpoison.defences.trimming import Trimming
from unpoison.registry import load_modules

__all__ = [
    "Boxplot",
    "Defence",
    "EmfBoxplot",
    "EmfFirst",
    "EmfIsolationForest",
    "EmfKMeans",
    "EmfThenInliers",
    "InlierAverage",
    "InlierDefence",
    "IsolationForest",
    "KMeans",
    "Ostrich",
    "RobustAverage",
    "SelectingDefence",
    "Trimming",
    "decoded_cells",
    "defences",
]

load_modules(__name__)
