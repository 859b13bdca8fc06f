"""Public names of a package that import their modules when they are first used (PEP 562)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any


def lazy_names(
    package: str, homes: Mapping[str, Iterable[str]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """A package's `__getattr__` and `__dir__`: `homes` has the names that each module defines.

    The package also has an `if TYPE_CHECKING:` block that imports these names, for type checkers
    and editors. Modules inside the package are attributes, too, as if they had been imported.

    >>> get, names = lazy_names("unpoison.plan", {"unpoison.plan.budgets": ["Group", "Tier"]})
    >>> get("Tier").__name__, "Group" in names()
    ('Tier', True)
    >>> get("Tyre")
    Traceback (most recent call last):
        ...
    AttributeError: module 'unpoison.plan' has no attribute 'Tyre'
    """
    home_of = {name: module for module, names in homes.items() for name in names}

    def get(name: str) -> Any:
        if name in home_of:
            value = getattr(import_module(home_of[name]), name)
        elif not name.startswith("_") and find_spec(f"{package}.{name}") is not None:
            value = import_module(f"{package}.{name}")
        else:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        # Kept: the next use finds it without this function.
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *home_of})

    return get, names
