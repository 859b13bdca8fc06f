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


ESTIMATE = """
import numpy as np
from unpoison import Plan, estimate, simulate
values, rng = np.full(2000, 0.25), np.random.default_rng(1)
estimate(simulate(Plan.new(epsilon=1.0, low=0, high=1), values, "point:C", 0.2, rng).summary)
"""


@pytest.mark.slow
def test_an_estimate_does_without_the_statistics_of_scipy() -> None:
    """Its distributions take a second to load; the functions behind them are in scipy.special."""
    assert "scipy.stats" not in loaded_by(ESTIMATE)


@pytest.mark.slow
def test_heavy_modules_are_noticed() -> None:
    assert loaded_by("import scipy.special") == {"scipy.special"}


@pytest.mark.slow
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
