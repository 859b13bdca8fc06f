"""`unpoison campaign`: an operator's requests to a running collector."""

from __future__ import annotations

import json as encoder
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unpoison.cli.operator_options import operator_command
from unpoison.cli.options import Json, number_option, option, whole_number_option
from unpoison.errors import InvalidFile, InvalidParameter

if TYPE_CHECKING:
    from unpoison.client.operator import Operator

campaign = typer.Typer(
    name="campaign",
    help="Create, watch and end campaigns of a running collector.\n\n"
    "Example: unpoison campaign create plan.json --name Rides --open",
    epilog="The operator's token is read from UNPOISON_TOKEN, or from the file of --token-file.",
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=True,
)

DEFAULT_MIN_USERS = 1000
"""The collector's own default, which is not imported: an operator may lack the extra for it."""
UNBALANCED = "groups do not report alike: somebody reports in some groups alone, or users stop"
CampaignId = Annotated[str, typer.Argument(metavar="CAMPAIGN", help="The campaign's id.")]
ClosesAt = Annotated[
    str | None,
    option("When it ends, as 2026-12-31 or 2026-12-31T12:00:00Z.", metavar="TIME"),
]


@campaign.command()
@operator_command
def create(
    operator: Operator,
    plan: Annotated[Path, typer.Argument(help="Plan file (see `unpoison plan`).")],
    name: Annotated[str, option("Its name, for people.")],
    access: Annotated[
        str,
        option(
            "invite: devices need one each; token: they need one of --issuer-key; open: anybody, "
            "rate-limited."
        ),
    ] = "invite",
    issuer_key: Annotated[
        Path | None, option("PEM file with the public key of the tokens' issuer.")
    ] = None,
    issuer_name: Annotated[
        str | None, option("The issuer's host, such as login.example.", metavar="HOST")
    ] = None,
    origin: Annotated[
        list[str] | None,
        option(
            "A host under which devices reach this collector; tokens are valid there only. May be "
            "repeated.",
            metavar="HOST",
        ),
    ] = None,
    min_users: Annotated[
        int, whole_number_option("No estimate before so many users have reported.")
    ] = DEFAULT_MIN_USERS,
    closes_at: ClosesAt = None,
    start: Annotated[bool, option("Open it at once.", "--open")] = False,
    json: Json = False,
) -> None:
    """Create a campaign from a plan.

    Example: unpoison campaign create plan.json --name "Ride starts" --open

    Example: unpoison campaign create plan.json --name Rides --access token --issuer-key
    rides.pub.pem --issuer-name login.example --origin collector.example
    """
    from unpoison.plan import Plan

    body = {
        "name": name,
        "plan": Plan.load(plan).to_dict(),
        "access": access,
        **_issuer(access, issuer_key, issuer_name, origin or []),
        "min_users": min_users,
        "closes_at": _utc_time(closes_at),
        "open": start,
    }
    created = operator.post("/v1/campaigns", body)
    # On standard error: --json leaves standard output to the one object.
    if created.get("notice"):
        typer.echo(f"unpoison: note: {created['notice']}", err=True)
    _print_campaign(created, json)


@campaign.command("list")
@operator_command
def list_campaigns(
    operator: Operator,
    search: Annotated[str | None, option("Only those with this text in their names.")] = None,
    state: Annotated[str | None, option("Only those in this state: draft, open or closed.")] = None,
    json: Json = False,
) -> None:
    """List campaigns, newest first.

    Example: unpoison campaign list --search rides --state open
    """
    campaigns = operator.campaigns(search, state)
    if json:
        typer.echo(encoder.dumps({"campaigns": campaigns}))
        return
    from unpoison.output.tables import print_table

    heads = ["id", "name", "state", "access", "enrolled", "reported", "closes"]
    keys = ["id", "name", "state", "access", "enrolled", "submissions", "closes_at"]
    print_table(heads, [[_cell(row[key]) for key in keys] for row in campaigns])


@campaign.command()
@operator_command
def show(operator: Operator, campaign_id: CampaignId, json: Json = False) -> None:
    """Show a campaign: how many enrolled and reported, group by group.

    Example: unpoison campaign show k3v9x2m4q7w1
    """
    _print_campaign(operator.get(f"{campaign_path(campaign_id)}/status"), json)


@campaign.command("open")
@operator_command
def open_campaign(operator: Operator, campaign_id: CampaignId, json: Json = False) -> None:
    """Open a campaign: devices may enrol and report.

    Example: unpoison campaign open k3v9x2m4q7w1
    """
    _change(operator, campaign_id, "open", json)


@campaign.command()
@operator_command
def close(operator: Operator, campaign_id: CampaignId, json: Json = False) -> None:
    """Close a campaign: counts stay as they are.

    Example: unpoison campaign close k3v9x2m4q7w1
    """
    _change(operator, campaign_id, "close", json)


@campaign.command()
@operator_command
def extend(
    operator: Operator,
    campaign_id: CampaignId,
    closes_at: ClosesAt = None,
    json: Json = False,
) -> None:
    """Move a campaign's end; without --closes-at it has none any more.

    Example: unpoison campaign extend k3v9x2m4q7w1 --closes-at 2026-12-31
    """
    _change(operator, campaign_id, "extend", json, {"closes_at": _utc_time(closes_at)})


@campaign.command()
@operator_command
def invite(
    operator: Operator,
    campaign_id: CampaignId,
    count: Annotated[int, whole_number_option("How many.", "--count", "-n")] = 1,
    days: Annotated[float | None, number_option("Valid for so many days.")] = None,
    json: Json = False,
) -> None:
    """Issue invites, one a line. The collector keeps only their hashes: save them.

    Example: unpoison campaign invite k3v9x2m4q7w1 -n 1000 > invites.txt
    """
    body = operator.post(f"{campaign_path(campaign_id)}/invites", {"count": count, "days": days})
    typer.echo(encoder.dumps(body) if json else "\n".join(body["invites"]))


@campaign.command()
@operator_command
def estimate(
    operator: Operator,
    campaign_id: CampaignId,
    method: Annotated[str | None, option("Another method than the default.")] = None,
    statistic: Annotated[
        str | None, option("mean, distribution or frequency; the plan's own by default.")
    ] = None,
    json: Json = False,
) -> None:
    """Print the estimate of a campaign, from all reports so far.

    Example: unpoison campaign estimate k3v9x2m4q7w1
    """
    from urllib.parse import urlencode

    from unpoison.cli.estimate_text import print_estimate
    from unpoison.estimate import Estimate
    from unpoison.plan import Plan

    path = campaign_path(campaign_id)
    wanted = {"method": method, "statistic": statistic}
    query = urlencode({key: text for key, text in wanted.items() if text is not None})
    body = operator.get(f"{path}/estimate?{query}" if query else f"{path}/estimate")
    if json:
        typer.echo(encoder.dumps(body))
        return
    plan = Plan.from_dict(operator.get(path)["plan"])
    print_estimate(Estimate.from_json(encoder.dumps(body)), plan)


@campaign.command()
@operator_command
def audit(operator: Operator, json: Json = False) -> None:
    """Print what operators did, newest first: at most 200 entries.

    Example: unpoison campaign audit
    """
    body = operator.get("/v1/audit")
    if json:
        typer.echo(encoder.dumps(body))
        return
    from unpoison.output.tables import print_table

    keys = ["at", "operator", "action", "campaign", "detail"]
    print_table(keys, [[_cell(entry[key]) for key in keys] for entry in body["entries"]])


@campaign.command()
@operator_command
def export(
    operator: Operator,
    campaign_id: CampaignId,
    output: Annotated[
        Path, option("Where to write (.zip, or .summary for counts).", "--output", "-o")
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
    data = operator.download(f"{campaign_path(campaign_id)}/{kind}")
    with whole_file(output) as file:
        file.write(data)
    facts = {"output": str(output), "bytes": len(data)}
    typer.echo(encoder.dumps(facts) if json else f"{output}: {len(data):,} bytes")


@campaign.command()
@operator_command
def delete(
    operator: Operator,
    campaign_id: CampaignId,
    yes: Annotated[bool, option("Do not ask.", "--yes")] = False,
) -> None:
    """Delete a draft or closed campaign, its counts and its submissions, for good.

    Example: unpoison campaign delete k3v9x2m4q7w1
    """
    # Checked before the question, which repeats the id on the terminal.
    path = campaign_path(campaign_id)
    if not yes:
        typer.confirm(f"Delete {campaign_id} with all its counts?", abort=True)
    operator.delete(path)
    typer.echo(f"{campaign_id}: deleted")


def _issuer(access: str, key: Path | None, name: str | None, origins: list[str]) -> dict[str, Any]:
    """The issuer of a campaign by token, for the body of its creation."""
    if access != "token":
        if key is not None or name is not None or origins:
            rule = "must be token for --issuer-key, --issuer-name and --origin"
            raise InvalidParameter("--access", rule, repr(access))
        return {}
    if key is None or name is None:
        raise InvalidParameter("--access", "token needs --issuer-key and --issuer-name", "token")
    try:
        text = key.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError):
        raise InvalidFile(key, "cannot be read as a public key in PEM") from None
    if "PRIVATE" in text:
        raise InvalidFile(key, "is a private key; the collector needs the public one")
    return {"issuer": {"name": name, "key": text, "origins": origins}}


def _change(
    operator: Operator,
    campaign_id: str,
    change: str,
    json: bool,
    body: dict[str, Any] | None = None,
) -> None:
    """Change a campaign, and print it as it is then."""
    _print_campaign(operator.post(f"{campaign_path(campaign_id)}/{change}", body), json)


def campaign_path(campaign_id: str) -> str:
    """The path of a campaign, whose id cannot be read as anything else in it.

    >>> campaign_path("k3v9x2m4q7w1")
    '/v1/campaigns/k3v9x2m4q7w1'
    """
    from unpoison.client import check_campaign_id

    check_campaign_id(campaign_id)
    return f"/v1/campaigns/{campaign_id}"


def _utc_time(text: str | None) -> str | None:
    """A time in full; one without a zone is UTC, whatever the operator's own zone is."""
    if text is None:
        return None
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        rule = "must be a time such as 2026-12-31 or 2026-12-31T12:00:00Z"
        raise InvalidParameter("--closes-at", rule, repr(text)) from None
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).isoformat()


def _cell(value: object) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return "–" if value is None else str(value)


def _print_campaign(body: dict[str, Any], json: bool) -> None:
    if json:
        typer.echo(encoder.dumps(body))
        return
    typer.echo(f"{body['id']}  {body['name']}")
    keys = ("state", "access", "enrolled", "submissions", "min_users", "closes_at")
    for key in keys:
        if body.get(key) is not None:
            typer.echo(f"  {key.replace('_', ' ')}: {_cell(body[key])}")
    for group in body.get("groups", []):
        numbers = f"{group['submissions']:,} of {group['enrolled']:,} reported"
        typer.echo(f"  group {group['group']} (epsilon {group['epsilon']:g}): {numbers}")
    balance = body.get("balance")
    if balance is not None and balance["broken"]:
        typer.echo(f"  {UNBALANCED} (p = {balance['p_value']:.2g})")
