"""Named families: mechanisms, attacks, defences and datasets are found by name."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

from unpoison.errors import InvalidParameter

Item = TypeVar("Item")
Registered = TypeVar("Registered")


class Registry(Generic[Item]):
    """Items by name, with an error that suggests the name that was meant.

    >>> colours: Registry[type] = Registry("colour")
    >>> @colours.register("red")
    ... class Red: ...
    >>> colours["red"].__name__
    'Red'
    >>> colours["rde"]
    Traceback (most recent call last):
        ...
    unpoison.errors.InvalidParameter: colour must be one of red; received 'rde', did you mean 'red'?
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._items: dict[str, Item] = {}

    def register(self, name: str) -> Callable[[Registered], Registered]:
        """Decorate a class to file it under `name`."""

        def file(item: Registered) -> Registered:
            self._items[name] = item  # type: ignore[assignment]
            return item

        return file

    def __getitem__(self, name: str) -> Item:
        check_name(self.kind, name, self)
        return self._items[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __contains__(self, name: object) -> bool:
        return name in self._items


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
