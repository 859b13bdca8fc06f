"""The route of a campaign's alarms."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends
from pydantic import Field, StrictBool
from sqlalchemy import Connection

from unpoison.collector.campaigns.alarms import AlarmChange, alarms_of
from unpoison.collector.campaigns.audit import AuditEntry
from unpoison.collector.http.access import Actor, Service, need_operator
from unpoison.collector.http.errors import responses
from unpoison.collector.http.models import Body
from unpoison.collector.service.alarm_watch import log_changes
from unpoison.estimate.alarms import MOST_MINUTES, AlarmRules

router = APIRouter(prefix="/v1/campaigns/{campaign}/alarms", tags=["operators"])
# Shares and p-values lie between 0 and 1.
Share = Annotated[float, Field(ge=0, le=1, strict=True)]


class AlarmsBody(Body):
    """The rules of a campaign; those that are missing or null are off.

    >>> AlarmsBody(attackers_above=0.05).doubt
    False
    """

    attackers_above: Share | None = None
    p_below: Share | None = None
    doubt: StrictBool = False
    balance_below: Share | None = None
    silent_minutes: Annotated[float, Field(ge=0, le=MOST_MINUTES, strict=True)] | None = None


@router.put(
    "",
    dependencies=[Depends(need_operator)],
    responses=responses(
        "unauthorized", "forbidden", "rate-limited", "not-found", "unavailable", "invalid-request"
    ),
)
async def set_rules(
    campaign: str, body: AlarmsBody, collector: Service, actor: Actor
) -> dict[str, Any]:
    """Replace the rules of a campaign; an alarm whose rule goes has ended."""
    rules = AlarmRules(**body.model_dump())
    now = collector.clock.now()

    def replace(connection: Connection) -> tuple[list[AlarmChange], list[dict[str, Any]]]:
        changes = collector.alarms.replace(connection, campaign, rules, now)
        return changes, alarms_of(connection, campaign)

    detail = ", ".join(f"{rule} {limit:g}" for rule, limit in rules.thresholds.items()) or "none"
    changes, shown = await collector.change(
        replace, AuditEntry(actor.name, "alarms", campaign, detail)
    )
    log_changes(changes)
    return {"alarms": shown}
