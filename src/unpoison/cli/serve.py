"""`unpoison serve`: runs the collector, or does one piece of maintenance on it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unpoison.cli.options import option, whole_number_option
from unpoison.errors import InvalidParameter, MissingExtra

if TYPE_CHECKING:
    from unpoison.collector.server import PreparedServer
    from unpoison.collector.settings import Settings

LONGEST_NAME = 64
"""Characters of an operator's name: the length of its column."""


def serve(
    database: Annotated[
        str | None,
        option("SQLite file, or a URL such as postgresql://host/name.", default="unpoison.db"),
    ] = None,
    host: Annotated[str | None, option("Address to listen at.", default="127.0.0.1")] = None,
    port: Annotated[
        int | None, whole_number_option("Port to listen at; 0 takes a free one.", default="8000")
    ] = None,
    workers: Annotated[
        int | None,
        whole_number_option(
            "Processes. With an SQLite file one writes and the others answer.", default="1"
        ),
    ] = None,
    config: Annotated[
        Path | None, option("TOML file with settings; see docs/collector.md for all.")
    ] = None,
    public: Annotated[
        bool | None,
        option("Let everybody read estimates, or operators only.", "--public/--private"),
    ] = None,
    keep_submissions: Annotated[
        float | None,
        option(
            "Forget the values of submissions after so many days; counts stay.",
            default="30",
            metavar="DAYS",
        ),
    ] = None,
    check: Annotated[
        bool, option("Check settings, database and keys; start nothing.", "--check")
    ] = False,
    new_token: Annotated[
        bool, option("Print a new operator token, and start nothing.", "--new-token")
    ] = False,
    name: Annotated[
        str | None,
        option("With --new-token: who gets it. With --revoke-tokens: whose go.", metavar="NAME"),
    ] = None,
    role: Annotated[
        str,
        option("With --new-token: operator, or reader, who may watch and change nothing."),
    ] = "operator",
    revoke_tokens: Annotated[
        bool,
        option(
            "Revoke all operator tokens (the next start makes one), or those of --name.",
            "--revoke-tokens",
        ),
    ] = False,
    rotate_key: Annotated[
        bool,
        option("Add a key, which signs tickets after the time key_grace.", "--rotate-key"),
    ] = False,
    forget_old_keys: Annotated[
        bool,
        option("Accept the newest key only: devices ask for tickets again.", "--forget-old-keys"),
    ] = False,
    new_keys: Annotated[
        bool,
        option(
            "Accept a key file that is new or another: devices ask for tickets again.", "--new-keys"
        ),
    ] = False,
) -> None:
    """Run the collector: campaigns, tickets, reports, estimates, and a page to watch them.

    Each setting can also stand in the environment, as UNPOISON_COLLECTOR_PORT=9000, or in the file
    of --config; options win over the environment, and that over the file. On its first start it
    makes an operator token and prints it, once.

    Example: unpoison serve --database reports.db --port 8000
    """
    settings = _load_settings(
        config,
        database=database,
        host=host,
        port=port,
        workers=workers,
        public=public,
        keep_submissions=keep_submissions,
    )
    # In this order: revoked first, a new token is not revoked at once; rotated first, the key that
    # stays is the new one.
    maintenance: dict[Callable[[Settings], None], bool] = {
        _print_check: check,
        partial(_revoke_tokens, name=name): revoke_tokens,
        partial(_print_new_token, name=name, role=role): new_token,
        _rotate_key: rotate_key,
        _forget_old_keys: forget_old_keys,
        _accept_new_keys: new_keys,
    }
    requested = [task for task, wanted in maintenance.items() if wanted]
    for task in requested:
        task(settings)
    if not requested:
        _run(settings)


def _load_settings(config: Path | None, **options: str | float | bool | None) -> Settings:
    # The first import of the collector, where a missing extra shows.
    try:
        from unpoison.collector.settings import Settings
    except ImportError:
        raise MissingExtra("the collector", "collector") from None
    return Settings.load(config, **options)


def _print_check(settings: Settings) -> None:
    from unpoison.collector.server import check

    for part, state in check(settings).items():
        typer.echo(f"{part}: {state}")


def _print_new_token(settings: Settings, name: str | None, role: str) -> None:
    from unpoison.collector.campaigns.audit import COMMAND_LINE, AuditEntry, record
    from unpoison.collector.clock import Clock
    from unpoison.collector.server import open_database
    from unpoison.collector.storage.migration import migrate
    from unpoison.collector.storage.operator_tokens import FIRST_OPERATOR, ROLES, add_operator

    holder = FIRST_OPERATOR if name is None else _checked_name(name)
    if role not in ROLES:
        raise InvalidParameter("--role", f"must be one of {', '.join(ROLES)}", repr(role))
    now = Clock().now()
    with open_database(settings) as database:
        migrate(database)
        with database.writing() as connection:
            token = add_operator(connection, now, holder, role)
            entry = AuditEntry(COMMAND_LINE, "new token", detail=f"{holder}, {role}")
            record(connection, entry, now)
    typer.echo(token)


def _checked_name(name: str) -> str:
    if not name.isprintable() or not 1 <= len(name.strip()) <= LONGEST_NAME:
        rule = f"must be printable text of 1 to {LONGEST_NAME} characters"
        raise InvalidParameter("--name", rule, repr(name))
    return name.strip()


def _revoke_tokens(settings: Settings, name: str | None) -> None:
    from unpoison.collector.campaigns.audit import COMMAND_LINE, AuditEntry, record
    from unpoison.collector.clock import Clock
    from unpoison.collector.server import open_database
    from unpoison.collector.storage.migration import migrate
    from unpoison.collector.storage.operator_tokens import forget_operators

    with open_database(settings) as database:
        migrate(database)
        with database.writing() as connection:
            revoked = forget_operators(connection, name)
            entry = AuditEntry(COMMAND_LINE, "revoke tokens", detail=name or "all")
            record(connection, entry, Clock().now())
    typer.echo(f"Tokens revoked: {revoked}", err=True)


def _rotate_key(settings: Settings) -> None:
    from unpoison.collector.clock import Clock, iso
    from unpoison.collector.service.signing_keys import KeyFile

    keys = KeyFile(settings.keys).rotate(Clock().now() + int(settings.key_grace))
    moment = iso(keys[-1].signs_from)
    typer.echo(
        f"{settings.keys}: {len(keys)} keys; the newest signs from {moment}. Servers read it"
        " within seconds; copy it to other machines before that moment."
    )


def _forget_old_keys(settings: Settings) -> None:
    from unpoison.collector.clock import Clock
    from unpoison.collector.server import register_file_keys
    from unpoison.collector.service.signing_keys import KeyFile

    register_file_keys(settings, KeyFile(settings.keys).forget(Clock().now()))
    typer.echo(f"{settings.keys}: one key is left, which signs at once.")


def _accept_new_keys(settings: Settings) -> None:
    from unpoison.collector.server import register_file_keys
    from unpoison.collector.service.signing_keys import KeyFile

    keys = KeyFile(settings.keys).load_or_make()
    register_file_keys(settings, keys)
    typer.echo(f"{settings.keys}: accepted, with {len(keys)} keys. Tickets of others are invalid.")


def _run(settings: Settings) -> None:
    """Run the collector until Ctrl-C or SIGTERM, both of which are a normal end."""
    with suppress(KeyboardInterrupt, SystemExit):
        if settings.workers > 1:
            from unpoison.collector.supervisor import run_workers

            run_workers(settings, _print_addresses)
        else:
            from unpoison.collector.server import run

            run(settings, _print_addresses)


def _print_addresses(address: str, prepared: PreparedServer) -> None:
    """Print where the collector is, and a new token once.

    The link has the token in its fragment, which browsers send to no server.
    """
    if prepared.backup is not None:
        typer.echo(f"The database was brought up to date; a copy of it is {prepared.backup}")
    typer.echo(f"Collector: {address} (API: {address}/openapi.json)")
    if prepared.token is not None:
        typer.echo(f"Operator token, shown this once: {prepared.token}")
        typer.echo(f"Page for the operator: {address}/#token={prepared.token}")
