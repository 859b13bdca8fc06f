"""A small device for Node, as docs/protocol.md describes it, against vectors and a collector."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from client.vectors.make import FILE
from support.raw_http import NO_RATE_LIMITS, stored_counts
from support.running_collectors import InProcessCollector, RunningCampaign, in_process_collector
from support.waiting import HANG_SECONDS
from unpoison import Plan

FOLDER = Path(__file__).parent / "node_device"
PROTOCOL = Path(__file__).parents[2] / "docs" / "protocol.md"
MOST_LINES, LONGEST_LINE = 150, 100
NODE = shutil.which("node")
PLANS = (
    Plan.new("piecewise-integer", 1.0, 0.25, low=0, high=86400, tiers=[{"epsilon": 0.3}]),
    Plan.new("square-wave-integer", 0.00025, 0.00025, low=-1e-7, high=1e22),
    Plan.new("piecewise-integer", 0.3, 0.1, low=-1e16, high=123456789012345680, cells=64),
    Plan.new("piecewise-integer", 1.0, low=0, high=1, step=0.0001, protocol="baseline"),
    Plan.new("k-rr-integer", 1.0, 0.5, categories=["tea", "größe", '"\\\n\x7f', "\U0001f375"]),
)


@pytest.fixture(autouse=True)
def _node() -> None:
    if NODE is None and os.environ.get("UNPOISON_REQUIRE_ALL") == "1":
        pytest.fail("node is missing")
    if NODE is None:
        pytest.skip("node is not installed")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[InProcessCollector]:
    with in_process_collector(tmp_path, **NO_RATE_LIMITS) as running:
        yield running


def run(script: str, options: dict[str, Any]) -> dict[str, Any]:
    completed = subprocess.run(
        [str(NODE), str(FOLDER / script)],
        input=json.dumps(options),
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
        check=True,
    )
    answer: dict[str, Any] = json.loads(completed.stdout)
    return answer


def options(campaign: RunningCampaign, ledger: Path, value: object, **more: Any) -> dict[str, Any]:
    plan = campaign.plan.to_dict()
    domain = {key: plan[key] for key in ("low", "high", "step", "categories") if key in plan}
    where = {"collector": campaign.server.url, "campaign": campaign.id, "ledger": str(ledger)}
    return {**where, "value": value, "policy": {**domain, "maxEpsilon": 1}, **more}


@pytest.mark.server
def test_it_draws_the_test_vectors() -> None:
    plans = [(plan.to_dict(), plan.fingerprint) for plan in PLANS]
    checked = run("vectors.mjs", {"vectors": json.loads(FILE.read_text()), "plans": plans})
    assert checked["faults"] == []
    assert checked["checked"] > 2000


@pytest.mark.server
@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: f"{plan.mechanism}-{plan.protocol}")
def test_it_reports_to_a_real_collector(
    server: InProcessCollector, tmp_path: Path, plan: Plan
) -> None:
    campaign, ledger = server.create_campaign(plan.to_dict()), tmp_path / "ledger.json"
    value = plan.categories[1] if plan.categories else plan.low
    first = run("run.mjs", options(campaign, ledger, value, invite=campaign.invite()))
    assert "error" not in first
    assert all(0 <= cell < plan.cells for cell in first["values"])
    again = run("run.mjs", options(campaign, ledger, value))
    assert again == first
    assert stored_counts(campaign).submissions == 1


@pytest.mark.server
@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"invite": "0" * 32}, "invalid-invite"),
        ({"policy": {"low": 0, "high": 99, "maxEpsilon": 1}}, "plan-refused"),
        ({"policy": {"low": 0, "high": 100, "maxEpsilon": 0.5}}, "budget-exceeded"),
        ({"campaign": "000000000000"}, "not-found"),
    ],
)
def test_refusals_have_the_codes_of_the_page(
    server: InProcessCollector, tmp_path: Path, changes: dict[str, Any], code: str
) -> None:
    campaign = server.create_campaign()
    request = {"invite": campaign.invite(), **changes}
    answer = run("run.mjs", {**options(campaign, tmp_path / "ledger.json", 42.0), **request})
    assert answer == {"error": code}
    assert stored_counts(campaign).submissions == 0


def test_it_is_short() -> None:
    lines = (FOLDER / "device.mjs").read_text(encoding="utf-8").splitlines()
    assert len(lines) < MOST_LINES
    assert max(map(len, lines)) <= LONGEST_LINE, "lines are not joined to be fewer"


def test_the_page_s_example_has_the_fingerprint_that_it_says() -> None:
    """Also in its canonical form, which the page shows."""
    text = PROTOCOL.read_text(encoding="utf-8")
    blocks = re.findall(r"```json\n(.*?)```", text, re.DOTALL)
    plan = Plan.from_dict(next(json.loads(block) for block in blocks if '"groups"' in block))
    assert f"`{plan.fingerprint}`" in text
    assert json.dumps(plan.to_dict(), sort_keys=True) in text
