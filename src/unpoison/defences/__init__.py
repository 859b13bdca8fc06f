"""Rival defences, one file each, found by name in `defences`."""

from unpoison.defences.base import Defence, Keeping, decoded_cells, defences
from unpoison.defences.ostrich import Ostrich
from unpoison.defences.trimming import Trimming

__all__ = ["Defence", "Keeping", "Ostrich", "Trimming", "decoded_cells", "defences"]
