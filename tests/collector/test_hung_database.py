"""A database that hangs: devices are told to come back, and service resumes afterwards."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from support.running_collectors import in_process_collector
from support.waiting import eventually
from unpoison.collector.storage import writer


@pytest.mark.server
def test_a_database_that_hangs_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "TIMEOUT_SECONDS", 1.0)
    answers_again = threading.Event()
    with in_process_collector(tmp_path) as server:
        campaign = server.create_campaign()
        device = campaign.enrol_device()
        writing = server.collector.database.writing

        @contextmanager
        def hanging() -> Iterator[Any]:
            answers_again.wait(60)
            with writing() as connection:
                yield connection

        monkeypatch.setattr(server.collector.database, "writing", hanging)
        reply = campaign.submit(device.body())
        assert (reply.status, reply.code) == (503, "unavailable")
        assert int(reply.headers["retry-after"]) > 0
        assert server.request("GET", "/readyz").code == "unavailable"
        assert server.request("GET", "/healthz").status == 200
        answers_again.set()
        eventually(lambda: server.request("GET", "/readyz").status == 200)
        assert campaign.submit(device.body()).status == 200
        eventually(lambda: campaign.status()["submissions"] == 1)
