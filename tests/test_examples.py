"""Every public function and class has an example in its docstring."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from typing import Any

import pytest

import unpoison

WITHOUT_EXAMPLES = (
    "unpoison.__main__",
    "unpoison.bench",
    "unpoison.cli",
    "unpoison.collector.storage.migrations",
    "unpoison.demo",
)


ROUTES = tuple(
    f"unpoison.collector.http.routes.{part}"
    for part in ("alarms", "audit", "devices", "health", "operators", "pages")
)
"""Route functions: described by OpenAPI, and called by the web server alone."""


def modules() -> Iterator[str]:
    """All modules that a program may import; commands and benchmarks are for people to run."""
    yield unpoison.__name__
    for module in pkgutil.walk_packages(unpoison.__path__, "unpoison."):
        if not f"{module.name}.".startswith(tuple(f"{package}." for package in WITHOUT_EXAMPLES)):
            yield module.name


def needs_example(item: object) -> bool:
    """Functions and classes do, unless they only name a shape (protocols) or a fault (errors)."""
    if not inspect.isclass(item):
        return inspect.isroutine(item)
    return not (issubclass(item, BaseException) or getattr(item, "_is_protocol", False))


def public() -> dict[str, Any]:
    """Each public function and class by its full name, from the module that defines it."""
    return {
        f"{module}.{name}": item
        for module in modules()
        for name, item in vars(importlib.import_module(module)).items()
        if not name.startswith("_")
        and getattr(item, "__module__", None) == module
        and needs_example(item)
        and not (module in ROUTES and inspect.iscoroutinefunction(item))
    }


PUBLIC = public()


@pytest.mark.parametrize("name", PUBLIC)
def test_it_has_an_example(name: str) -> None:
    assert ">>> " in (PUBLIC[name].__doc__ or "")
