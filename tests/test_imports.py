"""Importing the package, asking for help or starting a server loads nothing that it may not need.

Names of the package load their modules when they are used, whatever was imported before.
"""

import subprocess
import sys
from importlib import import_module

import pytest

HEAVY = {
    *("scipy.linalg", "scipy.ndimage", "scipy.optimize", "scipy.sparse", "scipy.special"),
    *("scipy.stats", "pyarrow", "matplotlib", "dask", "numba", "pandas", "polars"),
    *("fastapi", "sqlalchemy", "uvicorn", "pydantic", "cryptography"),
}
"""Modules that take a tenth of a second or more to load: SciPy's parts load when they are used."""


SERVER_LIBRARIES = {"fastapi", "sqlalchemy", "uvicorn", "pydantic"}
UNUSED_BY_SERVERS = {
    *HEAVY - SERVER_LIBRARIES,
    # Upgrades of a database that is not empty, pages, PostgreSQL, tables and help on a terminal.
    *("alembic", "jinja2", "psycopg", "sqlalchemy.dialects.postgresql", "rich"),
    *("pydantic_settings", "dotenv", "threadpoolctl"),
    # Estimates are made in a process of their own.
    *(f"unpoison.{room}" for room in ("api", "filters", "protocols", "defences", "attacks")),
    *(f"unpoison.{room}" for room in ("simulation", "engines", "reports", "client.device")),
}
UNUSED_BY_HELP = {
    *HEAVY,
    *("numpy", "scipy", "alembic", "prometheus_client", "asyncio"),
    *(f"unpoison.{room}" for room in ("api", "plan", "mechanisms", "summary", "collector")),
}
UNUSED_BY_THE_PACKAGE = {*UNUSED_BY_HELP, "typer", "rich", "importlib.metadata"}


def printed_by(program: str) -> set[str]:
    """The words that a program prints in a process of its own."""
    finished = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return set(finished.stdout.split())


def loaded_by(statement: str, modules: set[str] = HEAVY) -> set[str]:
    """Those of some modules that are loaded once a statement has run in a process of its own."""
    return modules & printed_by(f"import sys\n{statement}\nprint(*sys.modules)")


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


HELP = "from unpoison.cli import main\ntry:\n    main(['--help'])\nexcept SystemExit:\n    pass"
FIRST_START = """
import os, signal
from contextlib import suppress
from tempfile import TemporaryDirectory
from threading import Thread
from urllib.request import urlopen
import unpoison.cli
from unpoison.collector.server import run
from unpoison.collector.settings import Settings

def check_and_stop(address):
    urlopen(f"{address}/healthz").close()
    os.kill(os.getpid(), signal.SIGINT)

def announce(address, prepared):
    Thread(target=check_and_stop, args=(address,)).start()

with TemporaryDirectory() as folder, suppress(KeyboardInterrupt):
    run(Settings.load(database=f"{folder}/reports.db", port=0, log_level="error"), announce)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("statement", "unused"),
    [
        ("import unpoison", UNUSED_BY_THE_PACKAGE),
        (HELP, UNUSED_BY_HELP),
        ("import unpoison.client", HEAVY),
        ("from unpoison.client import Device", HEAVY),
        (FIRST_START, UNUSED_BY_SERVERS),
    ],
    ids=["package", "help", "client", "device", "first start of a server"],
)
def test_an_import_loads_what_it_needs(statement: str, unused: set[str]) -> None:
    assert not loaded_by(statement, unused)


def test_a_server_loads_the_libraries_that_it_needs() -> None:
    assert loaded_by(FIRST_START, SERVER_LIBRARIES) == SERVER_LIBRARIES


@pytest.mark.parametrize("package", ["unpoison", "unpoison.client", "unpoison.estimate"])
def test_every_public_name_can_be_read_and_is_listed(package: str) -> None:
    module = import_module(package)
    for name in module.__all__:
        assert getattr(module, name) is not None
    assert set(module.__all__) <= set(dir(module))
    with pytest.raises(AttributeError, match="has no attribute 'estimator'"):
        _ = module.estimator


@pytest.mark.parametrize(
    "first",
    [
        "import unpoison",
        "import unpoison.estimate",
        "from unpoison.estimate.methods import methods",
    ],
)
def test_the_verb_estimate_is_not_hidden_by_the_folder_of_its_name(first: str) -> None:
    program = f"{first}\nimport unpoison\nprint(unpoison.estimate.__module__)"
    assert printed_by(program) == {"unpoison.api"}


def test_all_methods_are_known_whatever_was_imported() -> None:
    program = "from unpoison.estimate.methods import method_names\nprint(*method_names())"
    assert {"joint", "emf", "baseline", "trimming"} <= printed_by(program)


def test_a_method_that_a_plugin_replaces_stays_replaced() -> None:
    program = """
import sys
from unpoison.estimate.methods import methods
methods.register("joint")("replaced")
assert "unpoison.api" not in sys.modules
print(methods["joint"], "emf" in methods)
"""
    assert printed_by(program) == {"replaced", "True"}
