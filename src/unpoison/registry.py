"""Registries: classes and functions by name, and the import of every module that registers one."""

from __future__ import annotations

import difflib
import math
import sys
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from pkgutil import iter_modules
from typing import Generic, TypeVar

from unpoison.errors import InvalidParameter

Item = TypeVar("Item")
Registered = TypeVar("Registered")


class Registry(Generic[Item]):
    """Items by name, listed in a defined order, with an error that suggests a near name.

    Items are listed by the `order` that they were registered with. Those without one come after
    all others, by the alphabet, so that the order never depends on the names of files.

    >>> colours: Registry[type] = Registry("colour")
    >>> @colours.register("red", order=1)
    ... class Red: ...
    >>> @colours.register("blue")
    ... class Blue: ...
    >>> list(colours)
    ['red', 'blue']
    >>> colours["rde"]
    Traceback (most recent call last):
        ...
    unpoison.errors.InvalidParameter: colour must be one of red, blue; received 'rde', did you ...
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._items: dict[str, Item] = {}
        self._orders: dict[str, float] = {}
        self._filled = False

    def register(self, name: str, *, order: float = math.inf) -> Callable[[Registered], Registered]:
        """Decorate a class or function to register it under `name`."""

        def add(item: Registered) -> Registered:
            self._items[name] = item  # type: ignore[assignment]
            self._orders[name] = order
            return item

        return add

    def __getitem__(self, name: str) -> Item:
        check_name(self.kind, name, self)
        return self._items[name]

    def __iter__(self) -> Iterator[str]:
        self._fill()
        return iter(sorted(self._items, key=lambda name: (self._orders.get(name, math.inf), name)))

    def __contains__(self, name: object) -> bool:
        self._fill()
        return name in self._items

    def _fill(self) -> None:
        """Load what `fill_on_first_use` names for this kind."""
        if self._filled or self.kind not in _fillers:
            return
        items, orders = dict(self._items), dict(self._orders)
        _fillers[self.kind]()
        # A plugin may have replaced an item before the library's own was loaded.
        self._items.update(items)
        self._orders.update(orders)
        # Last: until here other threads wait for the same imports instead of seeing a part.
        self._filled = True


_fillers: dict[str, Callable[[], None]] = {}
"""By kind of registry, the function that imports all modules that register an item."""


def fill_on_first_use(kind: str, fill: Callable[[], None]) -> None:
    """Have the registry of this kind call `fill` before it is first looked at.

    This is for items that are registered in rooms above the registry's own.

    >>> fill_on_first_use("flavour", lambda: flavours.register("mint")(object) and None)
    >>> flavours: Registry[type] = Registry("flavour")
    >>> list(flavours)
    ['mint']
    """
    _fillers[kind] = fill


def load_modules(package: str) -> None:
    """Import every module in the folder of a package, so that what they define is registered.

    A package calls it at the end of its `__init__`: a new file in the folder needs no other line.

    >>> import unpoison.datasets
    >>> load_modules("unpoison.datasets")
    >>> "unpoison.datasets.taxi" in sys.modules
    True
    """
    for module in iter_modules(sys.modules[package].__path__):
        import_module(f"{package}.{module.name}")


def check_name(parameter: str, name: object, known: Iterable[str]) -> None:
    """Refuse a name that is not known.

    >>> check_name("side", "up", ["left", "right"])
    Traceback (most recent call last):
        ...
    unpoison.errors.InvalidParameter: side must be one of left, right; received 'up'
    """
    names = list(known)
    if name not in names:
        raise InvalidParameter(
            parameter, f"must be one of {', '.join(names)}", suggest(name, names)
        )


def suggest(name: object, known: Iterable[str]) -> str:
    """`name` quoted, with the nearest known name where one is near.

    >>> suggest("piecwise", ["piecewise", "k-rr"])
    "'piecwise', did you mean 'piecewise'?"
    """
    near = difflib.get_close_matches(str(name), list(known), n=1)
    return f"{name!r}, did you mean {near[0]!r}?" if near else repr(name)
