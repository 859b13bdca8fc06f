"""`unpoison campaign`: what an operator does, over HTTP."""

from __future__ import annotations

import inspect
import json as encoder
import os
from collections.abc import Callable
from datetime import UTC, datetime
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from unpoison.cli.app import Json, number, whole
from unpoison.errors import InvalidParameter

campaign = typer.Typer(
    name="campaign",
    help="Create, watch and end campaigns of a running collector.\n\n"
    "Example: unpoison campaign create plan.json --name Rides --open",
    epilog="The operator's token is read from UNPOISON_TOKEN, or from the file of --token-file.",
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=True,
)
TOKEN = "UNPOISON_TOKEN"

Collector = Annotated[
    str,
    typer.Option(
        "--collector",
        envvar="UNPOISON_COLLECTOR",
        help="The collector's address.",
    ),
]
TokenFile = Annotated[
    Path | None, typer.Option(help="File with the operator's token; else UNPOISON_TOKEN has it.")
]
Insecure = Annotated[
    bool, typer.Option("--insecure", help="Allow http:// to another machine: for tests only.")
]
Identity = Annotated[str, typer.Argument(metavar="CAMPAIGN", help="The campaign's id.")]
Closing = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="When it ends, as 2026-12-31 or 2026-12-31T12:00:00Z."),
]
LOCAL = "http://127.0.0.1:8000"


def _operator(
    collector: Collector = LOCAL, token_file: TokenFile = None, insecure: Insecure = False
) -> Any:
    """Whoever gives these options."""
    from unpoison.client.operator import Operator

    return Operator(collector, _token(token_file), insecure=insecure)


def _by_operator(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose first parameter is an operator, by the options that `_operator` takes."""
    _, *own = inspect.signature(command, eval_str=True).parameters.values()
    shared = inspect.signature(_operator, eval_str=True).parameters

    @wraps(command)
    def run(**given: Any) -> None:
        options = {name: given.pop(name) for name in shared}
        command(_operator(**options), **given)

    named = [each.replace(kind=each.KEYWORD_ONLY) for each in (*own, *shared.values())]
    run.__signature__ = inspect.Signature(named)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in named}
    return run


@campaign.command()
@_by_operator
def create(
    operator: Any,
    plan: Annotated[Path, typer.Argument(help="Plan file (see `unpoison plan`).")],
    name: Annotated[str, typer.Option(help="What people call it.")],
    access: Annotated[
        str, typer.Option(help="invite: devices need one each; open: anybody, rate-limited.")
    ] = "invite",
    min_users: Annotated[
        int,
        typer.Option(
            parser=whole, metavar="INTEGER", help="No estimate before so many users have reported."
        ),
    ] = 1000,
    closes_at: Closing = None,
    start: Annotated[bool, typer.Option("--open", help="Open it at once.")] = False,
    json: Json = False,
) -> None:
    """Create a campaign from a plan.

    Example: unpoison campaign create plan.json --name "Ride starts" --open
    """
    from unpoison.plan import Plan

    body = {
        "name": name,
        "plan": Plan.load(plan).to_dict(),
        "access": access,
        "min_users": min_users,
        "closes_at": _moment(closes_at),
        "open": start,
    }
    made = operator.post("/v1/campaigns", body)
    if made.get("notice"):
        typer.echo(f"unpoison: note: {made['notice']}", err=True)
    _show(made, json)


@campaign.command("list")
@_by_operator
def list_campaigns(
    operator: Any,
    json: Json = False,
) -> None:
    """List all campaigns, newest first.

    Example: unpoison campaign list --collector https://collector.example
    """
    found = operator.get("/v1/campaigns")
    if json:
        typer.echo(encoder.dumps(found))
        return
    from unpoison.output.tables import print_table

    heads = ["id", "name", "state", "access", "enrolled", "reported", "closes"]
    keys = ["id", "name", "state", "access", "enrolled", "submissions", "closes_at"]
    rows = [[_cell(each[key]) for key in keys] for each in found["campaigns"]]
    print_table(heads, rows)


@campaign.command()
@_by_operator
def show(
    operator: Any,
    identity: Identity,
    json: Json = False,
) -> None:
    """Show a campaign: how many enrolled and reported, group by group.

    Example: unpoison campaign show k3v9x2m4q7w1
    """
    path = f"/v1/campaigns/{_checked(identity)}/status"
    _show(operator.get(path), json)


@campaign.command("open")
@_by_operator
def open_campaign(
    operator: Any,
    identity: Identity,
    json: Json = False,
) -> None:
    """Open a campaign: devices may enrol and report.

    Example: unpoison campaign open k3v9x2m4q7w1
    """
    _change(operator, identity, "open", json)


@campaign.command()
@_by_operator
def close(
    operator: Any,
    identity: Identity,
    json: Json = False,
) -> None:
    """Close a campaign: counts stay as they are.

    Example: unpoison campaign close k3v9x2m4q7w1
    """
    _change(operator, identity, "close", json)


@campaign.command()
@_by_operator
def extend(
    operator: Any,
    identity: Identity,
    closes_at: Closing = None,
    json: Json = False,
) -> None:
    """Move a campaign's end; without --closes-at it has none any more.

    Example: unpoison campaign extend k3v9x2m4q7w1 --closes-at 2026-12-31
    """
    _change(operator, identity, "extend", json, {"closes_at": _moment(closes_at)})


@campaign.command()
@_by_operator
def invite(
    operator: Any,
    identity: Identity,
    count: Annotated[
        int, typer.Option("--count", "-n", parser=whole, metavar="INTEGER", help="How many.")
    ] = 1,
    days: Annotated[
        float | None,
        typer.Option(parser=number, metavar="NUMBER", help="Valid for so many days."),
    ] = None,
    json: Json = False,
) -> None:
    """Issue invites, one a line. The collector keeps only their hashes: save them.

    Example: unpoison campaign invite k3v9x2m4q7w1 -n 1000 > invites.txt
    """
    path = f"/v1/campaigns/{_checked(identity)}/invites"
    made = operator.post(path, {"count": count, "days": days})
    typer.echo(encoder.dumps(made) if json else "\n".join(made["invites"]))


@campaign.command()
@_by_operator
def export(
    operator: Any,
    identity: Identity,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Where to write (.zip, or .summary for counts).")
    ],
    json: Json = False,
) -> None:
    """Download a campaign: plan, counts and kept reports (.zip), or its counts alone (.summary).

    Example: unpoison campaign export k3v9x2m4q7w1 -o rides.summary
    """
    from unpoison.system.atomic_files import whole_file
    from unpoison.system.paths import check_output

    check_output(output, "--output", (".zip", ".summary"))
    kind = "export" if output.suffix.lower() == ".zip" else "summary"
    data = operator.download(f"/v1/campaigns/{_checked(identity)}/{kind}")
    with whole_file(output) as file:
        file.write(data)
    told = {"output": str(output), "bytes": len(data)}
    typer.echo(encoder.dumps(told) if json else f"{output}: {len(data):,} bytes")


@campaign.command()
@_by_operator
def delete(
    operator: Any,
    identity: Identity,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Delete a draft or closed campaign, its counts and its submissions, for good.

    Example: unpoison campaign delete k3v9x2m4q7w1
    """
    path = f"/v1/campaigns/{_checked(identity)}"
    if not yes:
        typer.confirm(f"Delete {identity} with all its counts?", abort=True)
    operator.delete(path)
    typer.echo(f"{identity}: deleted")


def _token(file: Path | None) -> str:
    from unpoison.errors import InvalidFile

    if file is None:
        token = os.environ.get(TOKEN, "").strip()
    else:
        try:
            token = file.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError):
            raise InvalidFile(file, "cannot be read as a token") from None
    if not token:
        raise InvalidParameter("token", f"must be in {TOKEN} or in --token-file", "nothing")
    return token


def _change(operator: Any, identity: str, what: str, json: bool, body: Any = None) -> None:
    """Change a campaign, and show it as it is then."""
    _show(operator.post(f"/v1/campaigns/{_checked(identity)}/{what}", body), json)


def _checked(identity: str) -> str:
    """An id goes into an address: only letters and digits may."""
    if not identity.isascii() or not identity.isalnum():
        raise InvalidParameter("campaign", "must be an id of letters and digits", repr(identity))
    return identity


def _moment(text: str | None) -> str | None:
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        rule = "must be a time such as 2026-12-31 or 2026-12-31T12:00:00Z"
        raise InvalidParameter("--closes-at", rule, repr(text)) from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).isoformat()


def _cell(value: object) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return "–" if value is None else str(value)


def _show(told: dict[str, Any], json: bool) -> None:
    """A campaign in a few lines."""
    if json:
        typer.echo(encoder.dumps(told))
        return
    typer.echo(f"{told['id']}  {told['name']}")
    keys = ("state", "access", "enrolled", "submissions", "min_users", "closes_at")
    for key in keys:
        if told.get(key) is not None:
            typer.echo(f"  {key.replace('_', ' ')}: {_cell(told[key])}")
    for group in told.get("groups", []):
        numbers = f"{group['submissions']:,} of {group['enrolled']:,} reported"
        typer.echo(f"  group {group['group']} (epsilon {group['epsilon']:g}): {numbers}")
