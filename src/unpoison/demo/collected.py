"""A collector, and 20,000 devices that report to it over HTTP, a quarter of which attack."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

from unpoison.collector.process import CollectorProcess, collector_process
from unpoison.datasets import Taxi
from unpoison.demo import say
from unpoison.demo.fleet import Fleet
from unpoison.output.progress import progress
from unpoison.output.tables import print_table
from unpoison.plan import Plan

DEVICES = 20_000
"""Few enough for the whole demonstration to take a minute and a half on two cores."""
BYZANTINE_FRACTION = 0.25
"""The paper's share of attackers."""
ATTACK = "uniform:3C/4,C"
"""The first of the paper's four ranges of poison."""
FOLDER = Path("demo")
DATABASE = "collector.db"


def main() -> None:
    """Serve, enrol, report, estimate, and print beside the truth."""
    started = time.perf_counter()
    FOLDER.mkdir(exist_ok=True)
    for old in FOLDER.glob(f"{DATABASE}*"):
        old.unlink()
    say("\nThe same over the network: a collector, and devices that report to it.\n")
    with collector_process(FOLDER, "--database", DATABASE, "--public") as server:
        _collect(server, _fleet(), started)
    say(f"\nTo look at it again: unpoison serve --public --database {FOLDER / DATABASE}")


def _fleet() -> Fleet:
    rng = np.random.default_rng(2023)
    sample = Taxi().draw(DEVICES, rng)
    plan = Plan.new("piecewise-integer", 1.0, 0.25, low=sample.low, high=sample.high)
    attackers = np.zeros(DEVICES, dtype=bool)
    attackers[rng.permutation(DEVICES)[: round(BYZANTINE_FRACTION * DEVICES)]] = True
    return Fleet(plan, sample.values, attackers, ATTACK)


def _collect(server: CollectorProcess, fleet: Fleet, started: float) -> None:
    body = {"name": "Ride starts", "plan": fleet.plan.to_dict(), "open": True}
    campaign = server.operator.post("/v1/campaigns", body)["id"]
    path = f"/v1/campaigns/{campaign}"
    say(f"Collector: {server.address}, page to watch: {server.address}/campaigns/{campaign}")
    say(f"{DEVICES:,} taxi meters enrol with an invite each and report under ε = 1, {_share()}.")
    invites = server.operator.post(f"{path}/invites", {"count": DEVICES})["invites"]
    with progress("Devices report", DEVICES) as advance:
        fleet.report(server.address, campaign, invites, advance)
    reported = time.perf_counter() - started
    joint = server.operator.get(f"{path}/estimate")
    plain = server.operator.get(f"{path}/estimate?method=ostrich")
    truth = fleet.plan.natural(fleet.truth.mean)
    say(f"All have been counted after {reported:.0f} s.\n")
    low, high = joint["interval"]
    rows = [
        ["truth (honest meters)", f"{truth:,.0f} s", "", ""],
        ["joint", f"{joint['mean']:,.0f} s", f"{low:,.0f} to {high:,.0f}", _gap(joint, truth)],
        ["plain average", f"{plain['mean']:,.0f} s", "", _gap(plain, truth)],
    ]
    print_table(["", "mean", "95 % interval", "off by"], rows)
    say(f"\nVerdict: {joint['verdict']}")


def _share() -> str:
    return f"{BYZANTINE_FRACTION:.0%} of them under one attacker's control"


def _gap(answer: dict[str, float], truth: float) -> str:
    return f"{answer['mean'] - truth:+,.0f} s"
