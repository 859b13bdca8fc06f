"""Devices under way: who asked, who was answered, and who has to ask again."""

from __future__ import annotations

import json
import secrets
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any

from support.database_audit import Books, books
from support.running_collectors import CampaignFace
from unpoison.bench.load import BROKEN, Outcome, fire, post

CONNECTIONS = 32
BATCH = 8
LATER = (BROKEN, 503)
"""What a device may be told when something is wrong: nothing, or to come back."""


@dataclass
class Member:
    """A device with an invite; `counted` once it was told so."""

    invite: str
    device: str
    ticket: dict[str, Any] | None = None
    values: list[int] = field(default_factory=list)
    counted: bool = False

    @property
    def number(self) -> int:
        """The number of its ticket, which stands in it."""
        assert self.ticket is not None
        return int(str(self.ticket["ticket"]).split(".")[1])

    @property
    def submission(self) -> dict[str, Any]:
        """What it sends: the same bytes each time."""
        assert self.ticket is not None
        return {"ticket": self.ticket["ticket"], "device": self.device, "values": self.values}

    def seated(self, ticket: dict[str, Any], random: Random, cells: int) -> None:
        """Take the ticket; it is the same one each time."""
        assert self.ticket in (None, ticket), "a ticket has changed"
        if self.ticket is None:
            self.ticket = ticket
            reports = sum(part["reports"] for part in ticket["groups"])
            self.values = [random.randrange(cells) for _ in range(reports)]


@dataclass(frozen=True)
class Shot:
    """A request, and whose it is."""

    request: bytes
    kind: str
    members: tuple[Member, ...]


class Crew:
    """Devices of one campaign, as many as have been needed so far."""

    def __init__(self, campaign: CampaignFace, random: Random, most: int = 20_000) -> None:
        self.campaign, self.random = campaign, random
        made = campaign.face.operator.post(f"{campaign.path}/invites", {"count": most})
        self.invites = list(made["invites"])
        self.members: list[Member] = []
        self.statuses: Counter[int] = Counter()

    @property
    def waiting(self) -> list[Member]:
        """Those who have a ticket and were not told that they are counted."""
        return [each for each in self.members if each.ticket is not None and not each.counted]

    @property
    def counted(self) -> list[Member]:
        """Those who were."""
        return [each for each in self.members if each.counted]

    def volley(self, enrolments: int = 300) -> list[Shot]:
        """Requests of all kinds, in any order: new ones, and what was not answered before."""
        seatless = [each for each in self.members if each.ticket is None]
        missing = enrolments - len(seatless)
        fresh = [Member(self.invites.pop(), secrets.token_hex(32)) for _ in range(missing)]
        self.members += fresh
        seatless += fresh
        again = self.random.sample(self.counted, min(20, len(self.counted)))
        waiting = self.waiting
        half = len(waiting) // 2
        shots = [self.enrolment(each) for each in seatless]
        shots += [self.single(each) for each in [*waiting[:half], *again]]
        shots += [self.batch(waiting[at : at + BATCH]) for at in range(half, len(waiting), BATCH)]
        self.random.shuffle(shots)
        return shots

    def enrolment(self, member: Member) -> Shot:
        wish = {"device": member.device, "invite": member.invite}
        return Shot(post(f"{self.campaign.path}/tickets", wish), "enrol", (member,))

    def single(self, member: Member) -> Shot:
        request = post(f"{self.campaign.path}/reports", member.submission)
        return Shot(request, "submit", (member,))

    def batch(self, members: Sequence[Member]) -> Shot:
        wish = {"submissions": [each.submission for each in members]}
        return Shot(post(f"{self.campaign.path}/reports/batch", wish), "batch", tuple(members))

    def learn(self, shots: Iterable[Shot], outcome: Outcome) -> None:
        """What was answered; anything but yes and later is a fault."""
        for shot, status, answer in zip(shots, outcome.statuses, outcome.answers, strict=True):
            assert status == 200 or status in LATER, (status, answer)
            self.statuses[status] += 1
            if status == 200:
                self._learn(shot, json.loads(answer))
            elif status == 503:
                assert json.loads(answer)["error"]["code"] == "unavailable"

    def _learn(self, shot: Shot, answer: dict[str, Any]) -> None:
        if shot.kind == "enrol":
            shot.members[0].seated(answer, self.random, self.campaign.plan.cells)
            return
        results = answer["results"] if shot.kind == "batch" else [answer]
        assert results == [{"status": "accepted"}] * len(shot.members)
        for member in shot.members:
            member.counted = True

    @contextmanager
    def at_work(self, shots: Sequence[Shot], connections: int = CONNECTIONS) -> Iterator[None]:
        """While requests are under way; at the end all are answered, or will not be."""
        requests = [shot.request for shot in shots]
        port = self.campaign.face.port
        with ThreadPoolExecutor(1) as thread:
            firing: Future[Outcome] = thread.submit(fire, port, requests, None, connections)
            yield
            self.learn(shots, firing.result())

    def ask(self, shots: Sequence[Shot]) -> None:
        """Requests that must all be answered well."""
        outcome = fire(self.campaign.face.port, [shot.request for shot in shots], None, CONNECTIONS)
        assert set(outcome.statuses) <= {200}, Counter(outcome.statuses)
        self.learn(shots, outcome)

    def finish(self) -> None:
        """Everybody asks for a ticket, again or for the first time, and then reports, likewise."""
        self.ask([self.enrolment(each) for each in self.members])
        self.ask([self.single(each) for each in self.members])

    def check(self, database: str) -> Books:
        """Who was told something finds it in the database, exactly so."""
        found = books(database, self.campaign.id)
        found.check()
        for member in self.members:
            if member.ticket is not None:
                assert found.groups[member.number] == member.ticket["groups"][0]["group"]
                stored = found.cells.get(member.number)
                assert stored == tuple(member.values) or (stored is None and not member.counted)
        return found
