"""Plugins: a user's Python files that register attacks, defences, mechanisms or datasets."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterable
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

from unpoison.errors import InvalidFile

_loaded: dict[Path, None] = {}


class _UncachedLoader(SourceFileLoader):
    """Runs a file without leaving a compiled copy beside it: the folder is the user's."""

    def set_data(self, path: str, data: object, *, _mode: int = 0) -> None:
        """Write nothing."""


def load_plugins(paths: Iterable[Path]) -> None:
    """Run each file once; its classes register themselves under their names.

    >>> from tempfile import TemporaryDirectory
    >>> from unpoison.attacks import attacks
    >>> text = "from unpoison.attacks import Point, attacks\\nattacks.register('spot')(Point)"
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "spot.py")
    ...     _ = path.write_text(text)
    ...     load_plugins([path])
    >>> "spot" in attacks
    True
    >>> _ = _loaded.popitem()  # The file is gone: other processes could not run it.
    """
    for path in paths:
        target = path.resolve()
        if target not in _loaded:
            _run(path, target)
            _loaded[target] = None


def loaded_plugins() -> list[Path]:
    """The files that were run, for processes that must run them too.

    >>> isinstance(loaded_plugins(), list)
    True
    """
    return list(_loaded)


def _run(path: Path, target: Path) -> None:
    if not target.is_file():
        raise InvalidFile(path, "is no file")
    name = f"unpoison_plugin_{len(_loaded)}"
    if target.suffix != ".py":
        raise InvalidFile(path, "must be a Python file, NAME.py")
    loader = _UncachedLoader(name, str(target))
    spec = spec_from_loader(name, loader)
    if spec is None:
        raise InvalidFile(path, "must be a Python file, NAME.py")
    module = sys.modules[name] = module_from_spec(spec)
    try:
        loader.exec_module(module)
    except Exception as fault:
        raise InvalidFile(path, f"cannot be run: {_where(fault, target)}") from fault


def _where(fault: Exception, path: Path) -> str:
    """The fault in one line, with the line of the file that it comes from."""
    lines = [
        at.lineno for at in traceback.extract_tb(fault.__traceback__) if at.filename == str(path)
    ]
    said = f"{type(fault).__name__}: {fault}"
    return f"{said} (line {lines[-1]})" if lines else said
