"""The tables, as the newest migration leaves them; docs/collector.md has their rows' life cycles.

Moments are whole seconds since 1970, secrets are stored as hashes.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
)

metadata = MetaData()

operators = Table(
    "operators",
    metadata,
    Column("token_hash", LargeBinary, primary_key=True),
    Column("created_at", BigInteger, nullable=False),
    # Tokens from before there were names and roles have these.
    Column("name", String(64), nullable=False, server_default="operator"),
    Column("role", String(8), nullable=False, server_default="operator"),
)

ticket_keys = Table(
    "ticket_keys",
    metadata,
    # A keyed hash of the key, which itself is in the key file alone.
    Column("fingerprint", String(32), primary_key=True),
    Column("signs_from", BigInteger, nullable=False),
)

campaigns = Table(
    "campaigns",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("name", Text, nullable=False),
    Column("plan", Text, nullable=False),
    Column("state", String(8), nullable=False),
    Column("access", String(8), nullable=False),
    Column("min_users", BigInteger, nullable=False),
    Column("assignment_secret", LargeBinary, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("closes_at", BigInteger),
)


def _campaign(primary: bool = True) -> Column[str]:
    """The column `campaign`: rows go when their campaign is deleted."""
    return Column(
        "campaign",
        ForeignKey("campaigns.id", ondelete="CASCADE"),
        primary_key=primary,
        nullable=False,
    )


def _row_number() -> Column[int]:
    """The column `id`: SQLite numbers rows by itself only if the type is INTEGER."""
    return Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True)


def _device_counts(name: str, key: str, kind: type[Integer]) -> Table:
    """A table of the devices of a campaign that enrolled and that reported, by one more column."""
    return Table(
        name,
        metadata,
        _campaign(),
        Column(key, kind, primary_key=True, autoincrement=False),
        Column("enrolled", BigInteger, nullable=False),
        Column("submissions", BigInteger, nullable=False),
    )


write_probes = Table(
    "write_probes",
    metadata,
    _row_number(),
    Column("filler", LargeBinary, nullable=False),
)

invites = Table(
    "invites",
    metadata,
    Column("invite_hash", LargeBinary, primary_key=True),
    _campaign(primary=False),
    Column("issued_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger),
    # The ticket that the invite was spent on; null until then.
    Column("ticket", BigInteger),
    Index("invites_of_campaign", "campaign"),
)

tickets = Table(
    "tickets",
    metadata,
    _campaign(),
    Column("ticket", BigInteger, primary_key=True, autoincrement=False),
    Column("group_number", Integer, nullable=False),
    Column("device_hash", LargeBinary, nullable=False),
    Column("issued_at", BigInteger, nullable=False),
    # Unique: a device gets one ticket a campaign, however many invites it shows.
    Index("tickets_of_device", "campaign", "device_hash", unique=True),
)

# The campaigns whose devices need a token: what tokens must be for, and the key that signs them.
token_issuers = Table(
    "token_issuers",
    metadata,
    _campaign(),
    Column("challenge", LargeBinary, nullable=False),
    Column("public_key", LargeBinary, nullable=False),
)

spent_tokens = Table(
    "spent_tokens",
    metadata,
    _campaign(),
    Column("token_hash", LargeBinary, primary_key=True),
    # The ticket that the token was spent on.
    Column("ticket", BigInteger, nullable=False),
)

group_counters = _device_counts("group_counters", "group_number", Integer)

submissions = Table(
    "submissions",
    metadata,
    _campaign(),
    Column("ticket", BigInteger, primary_key=True, autoincrement=False),
    Column("received_at", BigInteger, nullable=False),
    # Null after the retention time; the row stays, so that the ticket stays used.
    Column("cells", LargeBinary),
    Column("proof", LargeBinary, nullable=False),
    Index("submissions_by_age", "received_at"),
)

tallies = Table(
    "tallies",
    metadata,
    _row_number(),
    _campaign(primary=False),
    Column("counts", LargeBinary, nullable=False),
    Index("tallies_of_campaign", "campaign"),
)

activity = _device_counts("activity", "minute", BigInteger)

rejections = Table(
    "rejections",
    metadata,
    _campaign(),
    Column("cause", String(32), primary_key=True),
    Column("count", BigInteger, nullable=False),
)

estimates = Table(
    "estimates",
    metadata,
    _row_number(),
    _campaign(primary=False),
    Column("at", BigInteger, nullable=False),
    Column("users", BigInteger, nullable=False),
    Column("method", Text, nullable=False),
    Column("mean", Float),
    Column("low", Float),
    Column("high", Float),
    Column("byzantine_fraction", Float, nullable=False),
    Column("verdict", Text, nullable=False),
    # Null for estimates that were stored before there were these columns.
    Column("finding", String(16)),
    Column("answer", Text),
    Column("answer_interval", Text),
    # The frequencies of categories as a JSON object; null for numbers.
    Column("frequencies", Text),
    Column("byzantine_low", Float),
    Column("byzantine_high", Float),
    Column("nobody_attacks_p_value", Float),
    Column("doubt", Boolean),
    Index("estimates_of_campaign", "campaign"),
)

alarms = Table(
    "alarms",
    metadata,
    _campaign(),
    Column("rule", String(32), primary_key=True),
    Column("threshold", Float, nullable=False),
    # When it started; null while it is not active.
    Column("since", BigInteger),
    # From when silence is counted; null while the campaign is not open.
    Column("counted_from", BigInteger),
)

outbox = Table(
    "outbox",
    metadata,
    _row_number(),
    Column("message", String(32), nullable=False),
    # No foreign key: what has been announced is sent even if the campaign is deleted meanwhile.
    Column("body", Text, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("next_at", BigInteger, nullable=False),
)

audit = Table(
    "audit",
    metadata,
    _row_number(),
    Column("at", BigInteger, nullable=False),
    Column("operator", String(64), nullable=False),
    Column("action", String(32), nullable=False),
    # No foreign key: that a campaign was deleted is in the log, too.
    Column("campaign", String(32)),
    Column("detail", Text),
)

rate_limits = Table(
    "rate_limits",
    metadata,
    Column("action", String(32), primary_key=True),
    # Keyed hash of an address or network; the key is not in the database.
    Column("address", LargeBinary, primary_key=True),
    # When the bucket is full again; a row whose moment has passed says nothing, and is deleted.
    Column("full_at", Float, nullable=False),
)
