"""Rival defences, one file each, found by name in `defences`."""

from unpoison.defences.base import Defence, defences, pooled
from unpoison.defences.ostrich import Ostrich
from unpoison.defences.trimming import Trimming

__all__ = ["Defence", "Ostrich", "Trimming", "defences", "pooled"]
