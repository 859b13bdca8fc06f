"""Databases of earlier versions are migrated at the start, without losing anything."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Inspector, insert, inspect, text

from support.command_line import Command
from support.database_audit import open_database
from support.forked_collectors import CollectorForker, ForkedCollector, ForkServer
from support.postgres import Cluster
from support.running_collectors import (
    SMALL_PLAN,
    RunningCampaign,
    RunningCollector,
    in_process_collector,
)
from support.waiting import eventually
from unpoison import InvalidFile, Plan, Summary
from unpoison.collector.campaigns.campaign import Campaign
from unpoison.collector.campaigns.campaigns import Campaigns
from unpoison.collector.campaigns.estimate_history import latest_estimates, past_estimates
from unpoison.collector.campaigns.invites import issue_invites
from unpoison.collector.campaigns.tallies import Tallies
from unpoison.collector.server import prepared_server
from unpoison.collector.service.signing_keys import KeyFile
from unpoison.collector.settings import Settings
from unpoison.collector.storage import schema
from unpoison.collector.storage.database import Database
from unpoison.collector.storage.migration import (
    SCRIPTS,
    _known_revisions,
    migrate,
    newest,
    revision,
)

FIRST = "0001"
TOKEN = "the-token-of-the-operator"
TABLES = {
    "campaigns": "campaigns",
    "invites": "invites",
    "seats": "group_counters",
    "submissions": "submissions",
    "tallies": "tallies",
    "tickets": "tickets",
    "operators": "operators",
}
"""The tables of the first version, and what they are called now."""
STEPS: list[list[str | None]] = [
    [None],
    [FIRST, None],
    [FIRST, "0002", "0003", "0008", None],
    ["0003", None],
]


def filled(database: Database) -> Campaign:
    """A database as the first version left it: one open campaign in which one device reported."""
    migrate(database, FIRST)
    plan = Plan.from_dict(SMALL_PLAN)
    campaign = Campaign.new("A test", plan, now=1, min_users=1)
    counts = np.zeros((len(plan.all_groups), plan.cells), dtype=np.int64)
    counts[0, 7] = 1
    ticket = {"campaign": campaign.id, "ticket": 0}
    with database.writing() as connection:
        add_to_first_version(connection, campaign)
        issue_invites(connection, campaign.id, 3, None, now=1)
        issued = {**ticket, "group_number": 0, "device_hash": b"1" * 16, "issued_at": 1}
        connection.execute(insert(schema.tickets), issued)
        cells = {"received_at": 2**40, "cells": np.array([7], "<u4").tobytes(), "proof": b"1" * 32}
        connection.execute(insert(schema.submissions), {**ticket, **cells})
        Tallies.add(connection, campaign.id, counts)
        Campaigns.open(connection, campaign.id, now=1)
    return campaign


def add_to_first_version(connection: Connection, campaign: Campaign) -> None:
    """Store a campaign, one device of which has reported, in the tables of the first version."""
    row = asdict(campaign)
    row["plan"] = row.pop("plan_json")
    connection.execute(insert(schema.campaigns), row)
    for group in range(len(campaign.plan.all_groups)):
        counters = {"campaign": campaign.id, "group": group, "devices": int(group == 0)}
        statement = "INSERT INTO seats VALUES (:campaign, :group, :devices, :devices)"
        connection.execute(text(statement), counters)


def contents(database: Database) -> dict[str, list[tuple[object, ...]]]:
    """All rows of the tables that there were at first, by the tables' present names."""
    with database.reading() as connection:
        present = inspect(connection).get_table_names()
        return {
            name: rows_of(connection, first_name if first_name in present else name)
            for first_name, name in TABLES.items()
        }


def rows_of(connection: Connection, table: str) -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in connection.execute(text(f"SELECT * FROM {table}")))


def test_what_an_earlier_version_stored_is_there_after_the_start(
    database: str, tmp_path: Path
) -> None:
    with open_database(database) as before:
        campaign = filled(before)
        rows = contents(before)
        assert revision(before) == FIRST
    keys = KeyFile(tmp_path / "tickets.keys")
    keys.load_or_make()
    settings = {"database": database, "key_file": str(keys.path)}
    with in_process_collector(tmp_path, **settings, operator_token=TOKEN) as server:
        assert contents(server.collector.database) == rows
        assert revision(server.collector.database) == newest()
        assert "seats" not in inspect(server.collector.database.engine).get_table_names()
        face = RunningCampaign(RunningCollector(server.port, TOKEN), campaign.id, campaign.plan)
        assert [face.status()[name] for name in ("enrolled", "reports")] == [1, 1]
        data = face.server.operator.download(f"{face.path}/summary")
        assert Summary.from_bytes(data).counts[0, 7] == 1
        assert face.submit(face.enrol_device().body()).status == 200


def test_a_copy_is_made_before(tmp_path: Path) -> None:
    database = str(tmp_path / "reports.db")
    with open_database(database) as before:
        filled(before)
        rows = contents(before)
    settings = Settings.load(database=database, operator_token=TOKEN)
    KeyFile(settings.keys).load_or_make()
    with prepared_server(settings) as parts:
        copy = tmp_path / f"reports.db.before-{newest()}"
        assert parts.backup == str(copy)
    with open_database(str(copy)) as copied:
        assert (revision(copied), contents(copied)) == (FIRST, rows)
    with closing(sqlite3.connect(copy)) as plain:
        assert plain.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    with prepared_server(settings) as parts:
        assert parts.backup is None, "there was nothing more to do"


def test_the_copy_holds_what_is_only_in_the_write_ahead_log(tmp_path: Path) -> None:
    with open_database(str(tmp_path / "reports.db")) as running:
        filled(running)
        rows = contents(running)
        with running.engine.connect():
            assert (tmp_path / "reports.db-wal").stat().st_size > 0
            copy = migrate(running)
    assert copy is not None
    with open_database(str(copy)) as copied:
        assert contents(copied) == rows


def test_a_copy_that_cannot_be_made_stops_the_start_and_changes_nothing(tmp_path: Path) -> None:
    with open_database(str(tmp_path / "reports.db")) as database:
        filled(database)
        (tmp_path / f"reports.db.before-{newest()}").write_bytes(b"not a database" * 1000)
        with pytest.raises(InvalidFile, match="cannot be written"):
            migrate(database)
        assert revision(database) == FIRST


def at_newer(database: str) -> None:
    with open_database(database) as opened:
        migrate(opened)
        with opened.writing() as connection:
            connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))


@pytest.mark.parametrize("words", [[], ["--check"], ["--new-token"], ["--revoke-tokens"]])
def test_a_newer_database_is_refused_in_one_line(
    database: str, tmp_path: Path, unpoison: Command, words: list[str]
) -> None:
    at_newer(database)
    outcome = unpoison("serve", "--database", database, "--port", "0", *words)
    assert outcome.code == 2
    assert outcome.out == ""
    assert outcome.err.count("\n") == 1
    assert "is of a newer version of unpoison (schema 9999)" in outcome.err
    if "://" in database:
        password = database.partition("@")[0].rpartition(":")[2]
        assert password not in outcome.err
    with open_database(database) as opened:
        assert revision(opened) == "9999"


@pytest.mark.parametrize(
    "steps", STEPS, ids=["at once", "from the first", "step by step", "from the third"]
)
def test_migrations_make_the_schema_that_the_code_works_with(
    database: str, steps: list[str | None]
) -> None:
    with open_database(database) as opened:
        for step in steps:
            migrate(opened, step)
        with opened.reading() as connection:
            options = {"compare_type": True, "compare_server_default": True}
            context = MigrationContext.configure(connection, opts=options)
            assert compare_metadata(context, schema.metadata) == []


def tables_of(database: Database) -> dict[str, object]:
    """All tables as the database itself describes them, whatever the order of their columns."""
    tables = inspect(database.engine)
    return {name: described(tables, name) for name in tables.get_table_names()}


def described(tables: Inspector, name: str) -> dict[str, object]:
    columns = {
        column["name"]: {**column, "type": str(column["type"])}
        for column in tables.get_columns(name)
    }
    indexes = sorted(tables.get_indexes(name), key=lambda index: str(index["name"]))
    parts = [tables.get_pk_constraint(name), tables.get_foreign_keys(name), indexes]
    return {"columns": columns, "keys and indexes": parts}


def test_an_empty_database_gets_the_tables_that_the_migrations_make(database: str) -> None:
    with open_database(database) as opened:
        migrate(opened)
        made_at_once = tables_of(opened)
        assert revision(opened) == newest()
        with opened.writing() as connection:
            schema.metadata.drop_all(connection)
            connection.execute(text("DROP TABLE alembic_version"))
        assert tables_of(opened) == {}
        for step in (FIRST, newest()):
            migrate(opened, step)
        assert tables_of(opened) == made_at_once
        assert set(made_at_once) == {*schema.metadata.tables, "alembic_version"}


def test_the_renamed_table_keeps_its_rows_its_key_and_its_cascade(database: str) -> None:
    with open_database(database) as upgraded:
        campaign = filled(upgraded)
        migrate(upgraded, "0002")
        counters = contents(upgraded)["group_counters"]
        assert counters == [
            (campaign.id, group, int(group == 0), int(group == 0)) for group in range(len(counters))
        ]
        assert len(counters) == len(campaign.plan.all_groups)
        migrate(upgraded, "0003")
        assert contents(upgraded)["group_counters"] == counters
        tables = inspect(upgraded.engine)
        key = tables.get_pk_constraint("group_counters")
        assert key["constrained_columns"] == ["campaign", "group_number"]
        (foreign_key,) = tables.get_foreign_keys("group_counters")
        assert foreign_key["referred_table"] == "campaigns"
        assert not any("seats" in str(name) for name in (key["name"], foreign_key["name"]))
        with upgraded.writing() as connection:
            Campaigns.close(connection, campaign.id)
            Campaigns.delete(connection, campaign.id)
        assert contents(upgraded)["group_counters"] == []


@contextmanager
def started_at_once(
    folder: Path, fork_server: ForkServer, database: str
) -> Iterator[list[ForkedCollector]]:
    """Two servers that find the same database, with one file of keys that is not there yet."""
    with CollectorForker(folder, fork_server) as forker:
        servers = [forker.begin(database, TOKEN) for _ in range(2)]
        for server in servers:
            server.wait_until_it_answers()
        yield servers


@pytest.mark.parametrize("earlier", [False, True], ids=["empty", "earlier version"])
def test_two_servers_that_start_at_once_share_a_database_and_its_keys(
    postgres: Cluster, fork_server: ForkServer, tmp_path: Path, earlier: bool
) -> None:
    with postgres.database() as database:
        if earlier:
            with open_database(database) as opened:
                filled(opened)
            KeyFile(tmp_path / "tickets.keys").load_or_make()
        with started_at_once(tmp_path, fork_server, database) as (first, second):
            campaign = first.create_campaign()
            device = campaign.enrol_device()
            elsewhere = RunningCampaign(second, campaign.id, campaign.plan)
            assert elsewhere.submit(device.body()).status == 200
            other = elsewhere.enrol_device()
            assert campaign.submit(other.body()).status == 200
            eventually(lambda: campaign.status()["submissions"] == 2)
        with open_database(database) as opened:
            assert revision(opened) == newest()


def test_the_newest_revision_is_the_head_of_the_scripts() -> None:
    scripts = ScriptDirectory(str(SCRIPTS))
    assert newest() == scripts.get_current_head()
    assert {script.revision for script in scripts.walk_revisions()} == _known_revisions()


@pytest.mark.slow
@pytest.mark.parametrize("is_new", [False, True], ids=["later start", "first start"])
def test_a_start_without_an_upgrade_does_not_load_what_upgrades_need(
    tmp_path: Path, is_new: bool
) -> None:
    if not is_new:
        with open_database(str(tmp_path / "reports.db")) as database:
            migrate(database)
    code = (
        "import sys; from unpoison.collector.server import prepared_server\n"
        "from unpoison.collector.settings import Settings\n"
        f"with prepared_server(Settings.load(database={str(tmp_path / 'reports.db')!r})): pass\n"
        "heavy = {'alembic', 'pyarrow', 'psycopg', 'sqlalchemy.dialects.postgresql'}\n"
        "sys.stdout.write(' '.join(heavy & set(sys.modules)))"
    )
    started = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert started.stdout == ""


def test_estimates_of_earlier_versions_stay_in_the_history(database: str) -> None:
    with open_database(database) as upgraded:
        campaign = filled(upgraded)
        migrate(upgraded, "0003")
        columns = "campaign, at, users, method, mean, byzantine_fraction, verdict"
        values = {"campaign": campaign.id, "method": "joint", "verdict": "As it was."}
        row = ":campaign, 1, 9, :method, 4.5, 0.1, :verdict"
        stored = f"INSERT INTO estimates ({columns}) VALUES ({row})"
        with upgraded.writing() as connection:
            connection.execute(text(stored), values)
        migrate(upgraded)
        with upgraded.reading() as connection:
            (entry,) = past_estimates(connection, campaign.id)
            last = latest_estimates(connection, [campaign.id])[campaign.id]
        assert (entry["mean"], entry["verdict"]) == (4.5, "As it was.")
        assert (entry["finding"], entry["frequencies"]) == (None, None)
        assert (last["answer"], last["byzantine_fraction"]) == (None, 0.1)
