"""The benchmark of the list of campaigns, on a real server with few of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from unpoison.bench import campaign_list as module
from unpoison.collector.process import collector_process


@pytest.mark.server
def test_each_size_of_a_page_has_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CAMPAIGNS", 12)
    monkeypatch.setattr(module, "PAGES", (5, 10))
    with collector_process(tmp_path) as server:
        results = module.campaign_list("SQLite", server)
        assert len(server.operator.campaigns()) == 12
    assert [", 5 a page" in results[0].name, ", 10 a page" in results[1].name] == [True, True]
    for result in results:
        assert result.name.startswith("collector, SQLite: list of 12 campaigns")
        assert result.ours != "nan ns", "the server's metrics have its processor time"
        assert result.met is not None
