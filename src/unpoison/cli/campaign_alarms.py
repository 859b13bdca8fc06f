"""`unpoison campaign alarms`: the rules by which a campaign raises an alarm."""

from __future__ import annotations

import json as encoder
from typing import TYPE_CHECKING, Annotated

import typer

from unpoison.cli.alarm_options import (
    AttackersAbove,
    BalanceBelow,
    Doubt,
    PBelow,
    SilentMinutes,
)
from unpoison.cli.campaign import CampaignId, campaign_path
from unpoison.cli.operator_options import operator_command
from unpoison.cli.options import Json, option
from unpoison.errors import InvalidParameter

if TYPE_CHECKING:
    from unpoison.client.operator import Operator


@operator_command
def alarms(
    operator: Operator,
    campaign_id: CampaignId,
    attackers_above: AttackersAbove = None,
    p_below: PBelow = None,
    doubt: Doubt = False,
    balance_below: BalanceBelow = None,
    silent_minutes: SilentMinutes = None,
    off: Annotated[bool, option("Remove all rules.", "--off")] = False,
    json: Json = False,
) -> None:
    """Replace the rules by which a campaign raises an alarm; without options, show them.

    Example: unpoison campaign alarms k3v9x2m4q7w1 --attackers-above 0.05 --silent-minutes 30
    """
    from unpoison.estimate.alarms import AlarmRules

    rules = AlarmRules(attackers_above, p_below, doubt, balance_below, silent_minutes)
    path = campaign_path(campaign_id)
    if off and rules.thresholds:
        raise InvalidParameter("--off", "must stand alone", "rules with it")
    if off or rules.thresholds:
        body = {**rules.thresholds, **({"doubt": True} if doubt else {})}
        shown = operator.put(f"{path}/alarms", body)["alarms"]
    else:
        shown = operator.get(f"{path}/status")["alarms"]
    if json:
        typer.echo(encoder.dumps({"alarms": shown}))
        return
    for alarm in shown:
        name = alarm["rule"].replace("_", " ")
        limit = "" if alarm["threshold"] is True else f" {alarm['threshold']:g}"
        state = f"active since {alarm['since']}" if alarm["active"] else "not active"
        typer.echo(f"{name}{limit}: {state}")
    if not shown:
        typer.echo("There are no rules.")
