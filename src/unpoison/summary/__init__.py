"""The Summary: all that an estimator may look at, how it is counted, and how it is stored."""

from unpoison.summary.summary import Summary

__all__ = ["Summary"]
