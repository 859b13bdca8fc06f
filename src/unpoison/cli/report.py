"""`unpoison report`: reports one value to one campaign, as a device."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unpoison.cli.options import Json, number_option, option, parse_number
from unpoison.errors import InvalidFile, InvalidParameter

if TYPE_CHECKING:
    from unpoison.client import Issuer, Ledger, Policy, Receipt

FROM_STANDARD_INPUT = "-"
DEFAULT_MAX_EPSILON, DEFAULT_LIFETIME_EPSILON = 1.0, 8.0
"""The default budgets of `client.Policy`, which is not imported for the sake of a quick --help."""
MAX_LINE = 2**16
"""Bytes of standard input that are read: a value is a number or a category's name, not a file."""


def report(
    collector: Annotated[
        str, typer.Argument(help="The collector's address, such as https://collector.example.")
    ],
    campaign: Annotated[str, typer.Argument(help="The campaign's id.")],
    value: Annotated[
        str,
        option(
            "The value; - reads it from standard input, so that it stands neither in the "
            "list of processes nor in the history of the shell."
        ),
    ] = FROM_STANDARD_INPUT,
    invite: Annotated[
        str | None,
        typer.Option(
            envvar="UNPOISON_INVITE", help="The invite, for a campaign that is not open to all."
        ),
    ] = None,
    issuer: Annotated[
        str | None,
        option("Address of the issuer of the token, for a campaign by token.", metavar="URL"),
    ] = None,
    account: Annotated[
        str | None,
        typer.Option(envvar="UNPOISON_ACCOUNT", help="Your account's token at the issuer."),
    ] = None,
    issuer_key: Annotated[
        Path | None, option("PEM file: take tokens of this key only, whatever the campaign says.")
    ] = None,
    low: Annotated[float | None, number_option("The range that you agree to: from.")] = None,
    high: Annotated[
        float | None,
        number_option(
            "The range that you agree to: to. A value outside counts as the nearest end."
        ),
    ] = None,
    step: Annotated[
        float | None,
        number_option(
            "The step that you agree to, if the plan has one. A value between two steps counts as "
            "the nearest."
        ),
    ] = None,
    category: Annotated[
        list[str] | None,
        option("A category that you agree to, instead of a range; repeated, in the plan's order."),
    ] = None,
    max_epsilon: Annotated[
        float, number_option("The most that this campaign may spend.")
    ] = DEFAULT_MAX_EPSILON,
    lifetime_epsilon: Annotated[
        float, number_option("The most that all campaigns may spend together.")
    ] = DEFAULT_LIFETIME_EPSILON,
    collector_epsilon: Annotated[
        float | None,
        number_option(
            "The most that all campaigns of this collector may spend.",
            default="half of the lifetime's",
        ),
    ] = None,
    question: Annotated[
        str | None, option("Your name for what is asked; it stays in the ledger.")
    ] = None,
    reuse: Annotated[
        bool,
        option(
            "Send what this collector has had for the same question before, at no cost, where its "
            "ticket asks for the same draw: for values that do not change.",
            "--reuse",
        ),
    ] = False,
    ledger: Annotated[
        Path | None,
        option("The file that remembers what has been spent and sent.", default="the user's own"),
    ] = None,
    insecure: Annotated[
        bool, option("Allow http:// to another machine: all can be read.", "--insecure")
    ] = False,
    json: Json = False,
) -> None:
    """Report one value under local differential privacy, to a collector that is not trusted.

    The plan must have exactly the range and step, or the categories, that you give, and must keep
    to your budgets. Noise is drawn once and written to the ledger before it is sent: after a
    failure, give the same command again, and the same noisy reports are sent.

    Example: unpoison report https://collector.example k3v9x2m4q7w1 --low 0 --high 86400
    """
    from unpoison.client import Device, Ledger, Policy, Transport, check_campaign_id

    categories = None if category is None else tuple(category)
    budgets = (max_epsilon, lifetime_epsilon, step, collector_epsilon)
    policy = Policy(low, high, categories, *budgets, question, reuse)
    check_campaign_id(campaign)
    # Options first: an address that is refused must not cost the user a value that was typed in.
    with (
        Transport(collector, insecure=insecure) as transport,
        _token_issuer(issuer, account, issuer_key, insecure) as token_issuer,
    ):
        text = _value_text(value)
        parsed = text if categories else _number_or_nan(text)
        # Refuse a value that is none before the ledger's file is created.
        policy.encode(parsed)
        with Ledger.default() if ledger is None else Ledger(ledger) as opened:
            device = Device(collector, policy, opened, transport, issuer=token_issuer)
            receipt = device.report(campaign, parsed, invite)
    _print_receipt(receipt, policy, opened, json)


@contextmanager
def _token_issuer(
    url: str | None, account: str | None, key: Path | None, insecure: bool
) -> Iterator[Issuer | None]:
    """The issuer of the options, if they name one."""
    if url is None:
        if key is not None:
            raise InvalidParameter("--issuer-key", "needs --issuer", "no --issuer")
        yield None
        return
    from unpoison.client import Issuer

    if account is None:
        raise InvalidParameter("--issuer", "needs --account", "none")
    try:
        pem = None if key is None else key.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError):
        raise InvalidFile(key, "cannot be read as a public key in PEM") from None
    with Issuer(url, account, key=pem, insecure=insecure) as issuer:
        yield issuer


def _value_text(value: str) -> str:
    """The value as text, from standard input unless it stands in the command."""
    if value != FROM_STANDARD_INPUT:
        return value
    if sys.stdin.isatty():
        return str(typer.prompt("Value (not shown)", hide_input=True, err=True))
    # As bytes: what is no UTF-8 must be refused like any other value, without a traceback.
    line = typer.get_binary_stream("stdin").readline(MAX_LINE)
    return line.decode("utf-8-sig", errors="replace").rstrip("\r\n")


def _number_or_nan(text: str) -> float:
    """A number; what is none becomes NaN, which the policy refuses without repeating the text."""
    with suppress(typer.BadParameter):
        return parse_number(text)
    return math.nan


def _print_receipt(receipt: Receipt, policy: Policy, ledger: Ledger, json: bool) -> None:
    if json:
        from json import dumps

        facts = {"lifetime_epsilon": policy.lifetime_epsilon, "ledger": str(ledger.path)}
        typer.echo(dumps({**receipt.to_dict(), **facts}, indent=2))
        return
    noun = "report" if receipt.reports == 1 else "reports"
    campaign = f"campaign {receipt.campaign} at {receipt.collector}"
    if receipt.already:
        typer.echo(f"Nothing sent: {campaign} has had {receipt.reports} {noun} from here before.")
    else:
        typer.echo(f"Sent {receipt.reports} noisy {noun} to {campaign}.")
    groups = " and ".join(str(group) for group in receipt.groups)
    typer.echo(f"group     {groups}")
    typer.echo(f"spent     epsilon {float(receipt.epsilon):g} in this campaign")
    lifetime = f"{policy.lifetime_epsilon:g}"
    typer.echo(f"in all    epsilon {float(receipt.total):g} of {lifetime} (ledger {ledger.path})")
