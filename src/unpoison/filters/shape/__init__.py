"""The honest users' distribution behind a joint fit: a smooth histogram, and a band of the CDF."""

from unpoison.filters.shape.cdf_band import cdf_band, widest_of_each_kind
from unpoison.filters.shape.grid import InputGrid
from unpoison.filters.shape.smooth_histogram import SmoothHistogram, smooth_histogram

__all__ = [
    "InputGrid",
    "SmoothHistogram",
    "cdf_band",
    "smooth_histogram",
    "widest_of_each_kind",
]
