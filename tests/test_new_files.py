"""A new attack, defence, dataset, mechanism, engine, method, … is one new file."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
FILES = {
    "attacks": """
        from dataclasses import dataclass
        import numpy as np
        from unpoison.attacks.base import Attack, attacks

        @attacks.register("dropped-in-attack")
        @dataclass(frozen=True)
        class DroppedInAttack(Attack):
            def poison(self, target, count, rng):
                return target.report(np.full(1, target.position("R")))  # not `count`
        """,
    "defences": """
        from dataclasses import dataclass
        from unpoison.defences.base import Defence, defences

        @defences.register("dropped-in-defence")
        @dataclass(frozen=True)
        class DroppedInDefence(Defence):
            def mean(self, summary):
                return 0.0

            def describe(self):
                return "The middle of the range."
        """,
    "datasets": """
        from unpoison.datasets.base import Dataset, Sample, datasets

        @datasets.register("dropped-in-dataset")
        class DroppedInDataset(Dataset):
            def draw(self, users, rng):
                return Sample(rng.random(users), 0.0, 1.0, f"{users} even numbers")
        """,
    "mechanisms": """
        from unpoison.mechanisms.base import mechanisms
        from unpoison.mechanisms.piecewise import PiecewiseMechanism

        @mechanisms.register("dropped-in-mechanism")
        class DroppedInMechanism(PiecewiseMechanism):
            pass
        """,
    "engines": """
        from unpoison.engines.base import Engine, engines
        from unpoison.engines.work import count

        @engines.register("dropped-in-engine")
        class DroppedInEngine(Engine):
            def run(self, job, parts):
                yield from (count(job, part) for part in parts)
        """,
    "simulation/faults": """
        from dataclasses import dataclass
        import numpy as np
        from unpoison.simulation.faults.base import Fault, faults

        @faults.register("dropped-in-fault")
        @dataclass(frozen=True)
        class DroppedInFault(Fault):
            def reports(self, plan, group, inputs, rng):
                return np.zeros(len(inputs))
        """,
    "experiments": """
        from unpoison.experiments.base import Experiment, experiments

        @experiments.register("dropped-in-experiment")
        class DroppedInExperiment(Experiment):
            title = "Nothing"

            def cells(self, quick):
                return []

            def panels(self, quick):
                return []
        """,
    "protocols": """
        from unpoison.estimate.methods import methods
        from unpoison.protocols.joint import JointMethod

        class DroppedInMethod(JointMethod):
            name = "dropped-in-method"
            default_rank = 0

        methods.register("dropped-in-method")(DroppedInMethod())
        """,
    "bench": """
        from unpoison.bench.result import benchmarks

        @benchmarks.register("dropped-in-benchmark")
        def nothing():
            return []
        """,
}
SUITES = {
    "attack": "tests/attacks/test_attack_contract.py",
    "defence": "tests/defences/test_defence_contract.py",
    "dataset": "tests/datasets/test_datasets.py",
    "mechanism": "tests/mechanisms/test_mechanism_contract.py",
    "engine": "tests/engines/test_engines.py",
    "fault": "tests/simulation/test_fault_contract.py",
    "method": "tests/estimate/test_method_contract.py",
    "experiment": "tests/experiments/test_experiments.py",
    "benchmark": "tests/test_docs.py",
}


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project with one more file in every folder of registered things."""
    root = tmp_path_factory.mktemp("project")
    # With what is compiled already: pytest takes longest to rewrite assertions.
    ignored = shutil.ignore_patterns("figures")
    for folder in ("src", "tests", "docs"):
        shutil.copytree(ROOT / folder, root / folder, ignore=ignored)
    for path in ROOT.iterdir():
        # Suites read some of the pages and settings at the top when they are collected.
        if path.is_file():
            shutil.copy(path, root)
    for folder, text in FILES.items():
        lines = [line.removeprefix(" " * 8) for line in text.splitlines()]
        (root / "src/unpoison" / folder / "dropped_in.py").write_text("\n".join(lines))
    return root


PLUGIN = """
import pytest

@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    print(*(item.nodeid for item in items), sep="\\n")
    items[:] = [
        item for item in items if "dropped-in-attack" in item.name and "as_requested" in item.name
    ]
"""
"""Prints the names of all tests that are selected, and leaves few of them to be run."""


@pytest.fixture(scope="module")
def printed(copy: Path) -> str:
    """What pytest prints in the copy."""
    (copy / "tests" / "few_tests.py").write_text(PLUGIN)
    environment = {**os.environ, "PYTHONPATH": str(copy / "src")}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "few_tests"]
    done = subprocess.run(
        [*command, "-k", "dropped-in", *SUITES.values()],
        cwd=copy,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout


def test_the_contract_suites_find_what_is_registered(printed: str) -> None:
    collected = printed.split("\n")
    for kind, suite in SUITES.items():
        tests = [line for line in collected if line.startswith(f"{suite}::")]
        assert any(f"dropped-in-{kind}" in line for line in tests), f"{suite} has no {kind}"


def test_a_new_attack_that_breaks_the_contract_fails(printed: str) -> None:
    assert "FAILED tests/attacks/test_attack_contract.py::test_an_attack_sends_as_many" in printed
    assert "dropped-in-attack-piecewise" in printed
