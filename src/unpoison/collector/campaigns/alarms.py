"""Alarms of campaigns: their rules, which are active since when, and what starts and ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row, delete, func, insert, select, update

from unpoison.collector.campaigns.campaign import OPEN
from unpoison.collector.campaigns.campaigns import Campaigns
from unpoison.collector.campaigns.counters import MINUTE
from unpoison.collector.campaigns.figures import campaign_figures
from unpoison.collector.campaigns.locks import lock_campaign
from unpoison.collector.clock import iso
from unpoison.collector.storage.schema import activity, alarms, campaigns
from unpoison.estimate.alarms import AlarmRules, Observation

STARTED, ENDED = "started", "ended"


class AlarmChange(NamedTuple):
    """An alarm of a campaign that has started or ended.

    >>> AlarmChange("k3v9x2m4q7w1", "Rides", "doubt", STARTED, at=0).rule
    'doubt'
    """

    campaign: str
    name: str
    rule: str
    state: str
    at: int


def alarms_of(connection: Connection, campaign: str) -> list[dict[str, Any]]:
    """The rules of a campaign with their thresholds, and since when each has been active.

    >>> from unpoison.collector.campaigns.temporary_campaign import temporary_campaign
    >>> with temporary_campaign() as (connection, campaign):
    ...     changes = set_alarms(connection, campaign.id, AlarmRules(doubt=True), now=0)
    ...     alarms_of(connection, campaign.id)
    [{'rule': 'doubt', 'threshold': True, 'active': False, 'since': None}]
    """
    return [
        {
            "rule": row.rule,
            "threshold": True if row.rule == "doubt" else row.threshold,
            "active": row.since is not None,
            "since": iso(row.since),
        }
        for row in _rows(connection, [campaign])
    ]


def set_alarms(
    connection: Connection, campaign: str, rules: AlarmRules, now: int
) -> list[AlarmChange]:
    """Replace the rules of a campaign and judge them; one that was active and stays is kept.

    >>> from unpoison.collector.campaigns.temporary_campaign import temporary_campaign
    >>> with temporary_campaign() as (connection, campaign):
    ...     set_alarms(connection, campaign.id, AlarmRules(silent_minutes=5), now=0)
    []
    """
    name = Campaigns.get(connection, campaign).name
    lock_campaign(connection, campaign)
    before = {row.rule: row for row in _rows(connection, [campaign])}
    connection.execute(delete(alarms).where(alarms.c.campaign == campaign))
    for rule, threshold in rules.thresholds.items():
        kept = before.get(rule)
        since, counted_from = (None, None) if kept is None else (kept.since, kept.counted_from)
        row = {"campaign": campaign, "rule": rule, "threshold": threshold}
        row |= {"since": since, "counted_from": counted_from}
        connection.execute(insert(alarms), row)
    removed = [
        AlarmChange(campaign, name, rule, ENDED, now)
        for rule, row in before.items()
        if row.since is not None and rule not in rules.thresholds
    ]
    return removed + judge_alarms(connection, campaign, now)


def judge_alarms(connection: Connection, campaign: str, now: int) -> list[AlarmChange]:
    """Start and end the alarms of a campaign; returns those that have changed.

    Locked, so that of several servers one alone sees each change.

    >>> from unpoison.collector.campaigns.temporary_campaign import temporary_campaign
    >>> with temporary_campaign() as (connection, campaign):
    ...     changes = set_alarms(connection, campaign.id, AlarmRules(silent_minutes=5), now=0)
    ...     [change.state for change in judge_alarms(connection, campaign.id, now=301)]
    ['started']
    """
    lock_campaign(connection, campaign)
    changes = []
    for row, values in _differences(connection, [campaign], now):
        own = (alarms.c.campaign == campaign) & (alarms.c.rule == row.rule)
        connection.execute(update(alarms).where(own).values(**values))
        if "since" in values:
            state = ENDED if values["since"] is None else STARTED
            changes.append(AlarmChange(campaign, row.name, row.rule, state, now))
    return changes


def campaigns_to_judge(connection: Connection, now: int) -> list[str]:
    """The campaigns in which an alarm would start or end now; this only reads.

    >>> from unpoison.collector.campaigns.temporary_campaign import temporary_campaign
    >>> with temporary_campaign() as (connection, campaign):
    ...     changes = set_alarms(connection, campaign.id, AlarmRules(silent_minutes=5), now=0)
    ...     [len(campaigns_to_judge(connection, now)) for now in (299, 301)]
    [0, 1]
    """
    watched = list(connection.execute(select(alarms.c.campaign).distinct()).scalars())
    return sorted({row.campaign for row, _ in _differences(connection, watched, now)})


def _rows(connection: Connection, ids: Sequence[str]) -> Sequence[Row[Any]]:
    """The rules of campaigns, each with its campaign's name and state."""
    columns = (*alarms.c, campaigns.c.name, campaigns.c.state)
    joined = select(*columns).join(campaigns, campaigns.c.id == alarms.c.campaign)
    return connection.execute(
        joined.where(alarms.c.campaign.in_(ids)).order_by(alarms.c.rule)
    ).all()


def _differences(
    connection: Connection, ids: Sequence[str], now: int
) -> list[tuple[Row[Any], dict[str, int | None]]]:
    """The rows that are not as they should be now, with the columns to change."""
    rows = _rows(connection, ids)
    active = _active(connection, rows, now)
    differences = []
    for row in rows:
        values: dict[str, int | None] = {}
        if (row.state == OPEN) != (row.counted_from is not None):
            values["counted_from"] = now if row.state == OPEN else None
        if (row.rule in active[row.campaign]) != (row.since is not None):
            values["since"] = now if row.since is None else None
        if values:
            differences.append((row, values))
    return differences


def _active(connection: Connection, rows: Sequence[Row[Any]], now: int) -> dict[str, set[str]]:
    """The rules that raise an alarm now, by campaign."""
    ids = list({row.campaign for row in rows})
    thresholds: dict[str, dict[str, float]] = {campaign: {} for campaign in ids}
    for row in rows:
        thresholds[row.campaign][row.rule] = row.threshold
    silence = _silent_minutes(connection, rows, now)
    figures = {item.id: item for item in campaign_figures(connection, ids)}
    active: dict[str, set[str]] = {campaign: set() for campaign in ids}
    for campaign, shown in figures.items():
        observation = Observation(
            shown.attacker_share,
            shown.nobody_attacks_p_value,
            shown.doubt,
            shown.balance_p_value,
            silence.get(campaign),
        )
        active[campaign] = AlarmRules.from_thresholds(thresholds[campaign]).active(observation)
    return active


def _silent_minutes(connection: Connection, rows: Sequence[Row[Any]], now: int) -> dict[str, float]:
    """Minutes without a report, of open campaigns: since the last one, or since it was opened."""
    counted = {
        row.campaign: row.counted_from
        for row in rows
        if row.state == OPEN and row.counted_from is not None
    }
    reported = (activity.c.submissions > 0) & activity.c.campaign.in_(list(counted))
    last = select(activity.c.campaign, func.max(activity.c.minute)).where(reported)
    # The end of the last minute with a report: silence is never taken for longer than it is.
    ends = {row[0]: row[1] + MINUTE for row in connection.execute(last.group_by("campaign"))}
    return {
        campaign: max(0, now - max(counted_from, ends.get(campaign, 0))) / MINUTE
        for campaign, counted_from in counted.items()
    }
