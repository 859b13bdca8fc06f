"""Values to reports, and report files: reading and writing them."""

from unpoison.reports.perturbation import Reporter, Reports, perturb

__all__ = ["Reporter", "Reports", "perturb"]
