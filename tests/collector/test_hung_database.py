"""A database that neither answers nor refuses: devices are told, and all goes on afterwards."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from support.running_collectors import collector_here, eventually
from unpoison.collector.storage import writer


def test_a_database_that_hangs_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "PATIENCE", 1.0)
    answers_again = threading.Event()
    with collector_here(tmp_path) as here:
        campaign = here.campaign()
        device = campaign.enrolled()
        writing = here.collector.database.writing

        @contextmanager
        def hanging() -> Iterator[Any]:
            answers_again.wait(60)
            with writing() as connection:
                yield connection

        monkeypatch.setattr(here.collector.database, "writing", hanging)
        told = campaign.submit(device.body())
        assert (told.status, told.code) == (503, "unavailable")
        assert int(told.headers["retry-after"]) > 0
        assert here.ask("GET", "/readyz").code == "unavailable"
        assert here.ask("GET", "/healthz").status == 200
        answers_again.set()
        eventually(lambda: here.ask("GET", "/readyz").status == 200)
        assert campaign.submit(device.body()).status == 200
        eventually(lambda: campaign.status()["submissions"] == 1)
