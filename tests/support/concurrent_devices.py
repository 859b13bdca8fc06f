"""Many devices that enrol and report at once, and repeat what was not answered."""

from __future__ import annotations

import json
import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any

from support.database_audit import CampaignRows, count_rows, open_database, read_campaign_rows
from support.running_collectors import RunningCampaign
from support.waiting import eventually
from unpoison.bench.load import BROKEN, Outcome, fire, post

CONNECTIONS = 32
BATCH = 8
"""Submissions in one request of `reports/batch`."""
REPEATS = 20
"""Submissions in a set of mixed requests that were acknowledged before and are sent again."""
RETRYABLE = (BROKEN, 503)
"""What a device may get when something is wrong: no answer, or the request to come back."""


@dataclass
class Device:
    """A device with an invite; `counted` once its submission was acknowledged."""

    invite: str
    secret: str
    ticket: dict[str, Any] | None = None
    values: list[int] = field(default_factory=list)
    counted: bool = False

    @property
    def number(self) -> int:
        """The number of its ticket, the second field of the ticket's text."""
        assert self.ticket is not None
        return int(str(self.ticket["ticket"]).split(".")[1])

    @property
    def submission(self) -> dict[str, Any]:
        """What it sends, the same each time."""
        assert self.ticket is not None
        return {"ticket": self.ticket["ticket"], "device": self.secret, "values": self.values}

    def take_ticket(self, ticket: dict[str, Any], random: Random, cells: int) -> None:
        """Keep the first ticket and draw values for it; later ones must be the same."""
        assert self.ticket in (None, ticket), "a ticket has changed"
        if self.ticket is None:
            self.ticket = ticket
            reports = sum(group["reports"] for group in ticket["groups"])
            self.values = [random.randrange(cells) for _ in range(reports)]


@dataclass(frozen=True)
class DeviceRequest:
    """The bytes of a request, its kind (enrol, submit, batch), and the devices it is from."""

    data: bytes
    kind: str
    devices: tuple[Device, ...]


class DeviceFleet:
    """The devices of one campaign, with what each was told."""

    def __init__(self, campaign: RunningCampaign, random: Random, most: int = 5_000) -> None:
        self.campaign, self.random = campaign, random
        issued = campaign.server.operator.post(f"{campaign.path}/invites", {"count": most})
        self.invites = list(issued["invites"])
        self.devices: list[Device] = []
        self.statuses: Counter[int] = Counter()

    @property
    def waiting(self) -> list[Device]:
        """Devices with a ticket whose submission was not acknowledged yet."""
        return [
            device for device in self.devices if device.ticket is not None and not device.counted
        ]

    @property
    def counted(self) -> list[Device]:
        """Devices whose submission was acknowledged."""
        return [device for device in self.devices if device.counted]

    def add_devices(self, count: int) -> list[Device]:
        """Add devices that have an invite each and have asked for nothing yet."""
        added = [Device(self.invites.pop(), secrets.token_hex(32)) for _ in range(count)]
        self.devices += added
        return added

    def mixed_requests(self, enrolments: int = 300) -> list[DeviceRequest]:
        """Enrolments, submissions, batches and repetitions, shuffled.

        Devices that wait for an answer repeat their request; new ones make up the number of
        enrolments.
        """
        without_ticket = [device for device in self.devices if device.ticket is None]
        without_ticket += self.add_devices(enrolments - len(without_ticket))
        repeating = self.random.sample(self.counted, min(REPEATS, len(self.counted)))
        waiting = self.waiting
        half = len(waiting) // 2
        requests = [self.enrolment(device) for device in without_ticket]
        requests += [self.single(device) for device in [*waiting[:half], *repeating]]
        batches = (waiting[start : start + BATCH] for start in range(half, len(waiting), BATCH))
        requests += [self.batch(devices) for devices in batches]
        self.random.shuffle(requests)
        return requests

    def enrolment(self, device: Device) -> DeviceRequest:
        body = {"device": device.secret, "invite": device.invite}
        return DeviceRequest(post(f"{self.campaign.path}/tickets", body), "enrol", (device,))

    def single(self, device: Device) -> DeviceRequest:
        data = post(f"{self.campaign.path}/reports", device.submission)
        return DeviceRequest(data, "submit", (device,))

    def batch(self, devices: Sequence[Device]) -> DeviceRequest:
        body = {"submissions": [device.submission for device in devices]}
        data = post(f"{self.campaign.path}/reports/batch", body)
        return DeviceRequest(data, "batch", tuple(devices))

    def record_answers(self, requests: Iterable[DeviceRequest], outcome: Outcome) -> None:
        """Note what was answered; anything but 200 and the retryable statuses is a failure."""
        answers = zip(requests, outcome.statuses, outcome.answers, strict=True)
        for request, status, answer in answers:
            assert status == 200 or status in RETRYABLE, (status, answer)
            self.statuses[status] += 1
            if status == 200:
                self._record_answer(request, json.loads(answer))
            elif status == 503:
                assert json.loads(answer)["error"]["code"] == "unavailable"

    def _record_answer(self, request: DeviceRequest, answer: dict[str, Any]) -> None:
        if request.kind == "enrol":
            request.devices[0].take_ticket(answer, self.random, self.campaign.plan.cells)
            return
        results = answer["results"] if request.kind == "batch" else [answer]
        assert results == [{"status": "accepted"}] * len(request.devices)
        for device in request.devices:
            device.counted = True

    @contextmanager
    def sending(
        self, requests: Sequence[DeviceRequest], connections: int = CONNECTIONS
    ) -> Iterator[Future[Outcome]]:
        """Send requests during the block; after it all are answered, or never will be."""
        data = [request.data for request in requests]
        port = self.campaign.server.port
        with ThreadPoolExecutor(1) as thread:
            firing: Future[Outcome] = thread.submit(fire, port, data, None, connections)
            yield firing
            self.record_answers(requests, firing.result())

    def send(self, requests: Sequence[DeviceRequest]) -> None:
        """Send requests that must all be answered with 200."""
        data = [request.data for request in requests]
        outcome = fire(self.campaign.server.port, data, None, CONNECTIONS)
        assert set(outcome.statuses) <= {200}, Counter(outcome.statuses)
        self.record_answers(requests, outcome)

    def finish(self) -> None:
        """Let every device ask for its ticket and then report, for the first time or again."""
        self.send([self.enrolment(device) for device in self.devices])
        self.send([self.single(device) for device in self.devices])

    def send_until_stored(
        self,
        requests: Sequence[DeviceRequest],
        database: str,
        rows: int,
        then: Callable[[], object],
    ) -> None:
        """Send requests; once so many rows are added, or all are answered, call `then`."""
        with open_database(database) as opened, self.sending(requests) as firing:
            target = rows + count_rows(opened, self.campaign.id)
            eventually(lambda: firing.done() or count_rows(opened, self.campaign.id) >= target)
            # Not while this connection is open: the last one to close removes SQLite's log.
            opened.close()
            then()

    def assert_stored(self, database: str) -> CampaignRows:
        """Check that the database holds exactly what the devices were told."""
        rows = read_campaign_rows(database, self.campaign.id)
        rows.assert_consistent()
        for device in self.devices:
            if device.ticket is not None:
                assert rows.groups[device.number] == device.ticket["groups"][0]["group"]
                stored = rows.cells.get(device.number)
                assert stored == tuple(device.values) or (stored is None and not device.counted)
        return rows
