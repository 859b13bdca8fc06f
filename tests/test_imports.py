"""Importing the package, or asking for help, loads no library that it may not need."""

import subprocess
import sys

import pytest

HEAVY = {
    *("scipy.linalg", "scipy.ndimage", "scipy.optimize", "scipy.sparse", "scipy.special"),
    *("scipy.stats", "pyarrow", "matplotlib", "dask", "numba", "pandas", "polars"),
    *("fastapi", "sqlalchemy", "uvicorn", "pydantic", "cryptography"),
}
"""Modules that take a tenth of a second or more to load: SciPy's parts load when they are used."""


def loaded_by(statement: str) -> set[str]:
    """The heavy modules that are loaded once a statement has run in a process of its own."""
    program = f"import sys\n{statement}\nprint(*sys.modules)"
    finished = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return HEAVY & set(finished.stdout.split())


def test_heavy_modules_are_noticed() -> None:
    assert loaded_by("import scipy.special") == {"scipy.special"}


@pytest.mark.parametrize(
    "statement",
    [
        "import unpoison",
        "from unpoison.cli import main\ntry:\n    main(['--help'])\nexcept SystemExit:\n    pass",
        "import unpoison.client",
    ],
    ids=["package", "help", "client"],
)
def test_an_import_loads_what_it_needs(statement: str) -> None:
    assert not loaded_by(statement)
