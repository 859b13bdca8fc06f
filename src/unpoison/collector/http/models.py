"""Models of request and response bodies: unknown keys are errors, types are not converted."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, FailFast, Field, StrictBool, StrictInt

from unpoison.collector.campaigns.campaign import DEFAULT_MIN_USERS

Device = Annotated[
    str,
    Field(
        pattern="^[0-9a-f]{64}$",
        description="32 random bytes as hex digits, made by the device for this campaign alone.",
    ),
]
# Eight times as long as the longest ticket, so that nothing long is hashed.
TicketText = Annotated[str, Field(min_length=1, max_length=1024, description="As it was issued.")]
# A token of 354 bytes in base64url, which needs no padding.
TokenText = Annotated[
    str, Field(pattern="^[A-Za-z0-9_-]{472}$", description="A Privacy Pass token, in base64url.")
]
# A host, perhaps with a port; the bound is that of DNS, and some digits.
ServerName = Annotated[str, Field(min_length=1, max_length=260)]
# Without control characters, which could forge lines where names are printed.
Name = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")]
# Years of four digits: databases and clients format no others.
End = Annotated[AwareDatetime, Field(lt=datetime(9999, 1, 1, tzinfo=UTC))]
MOST_VALUES = 2**16
"""The most values of a submission: in the baseline a user reports in two groups, each with at most
2¹⁵ reports."""
MOST_SUBMISSIONS = 10_000
"""The most submissions of a batch: the writer commits so many in one transaction in well under its
time limit."""
MOST_INVITES = 100_000
"""The most invites of a request: the response then has about 4 MB of codes."""


class Body(BaseModel):
    """The base of all request bodies.

    Lists of values stop at their first error (`FailFast`): a body could have a million of them.


    >>> Body.model_config["extra"]
    'forbid'
    """

    model_config = ConfigDict(extra="forbid")
    most_keys: ClassVar[int] = 100
    """Keys beyond which a body is refused unparsed; devices' bodies have three."""


class EnrolBody(Body):
    """A device's request for its ticket.

    >>> EnrolBody(device="ab" * 32).tier
    0
    """

    device: Device
    invite: Annotated[str, Field(min_length=1, max_length=64)] | None = None
    token: TokenText | None = None
    tier: Annotated[StrictInt, Field(ge=0, le=1000)] = 0
    ticket: TicketText | None = None


class SubmissionBody(Body):
    """The reports of a ticket: cell numbers, group after group.

    >>> SubmissionBody(ticket="t", device="ab" * 32, values=[3]).values
    [3]
    """

    ticket: TicketText
    device: Device
    values: Annotated[list[StrictInt], Field(max_length=MOST_VALUES), FailFast()]


class BatchBody(Body):
    """Submissions that a gateway has collected.

    >>> BatchBody(submissions=[]).submissions
    []
    """

    # `submissions`, and the three keys of each.
    most_keys: ClassVar[int] = 1 + 3 * MOST_SUBMISSIONS
    submissions: Annotated[list[SubmissionBody], Field(max_length=MOST_SUBMISSIONS), FailFast()]


class IssuerBody(Body):
    """Who issues the tokens of a campaign, and for which names of this collector.

    >>> IssuerBody(name="login.example", key="…").origins
    []
    """

    name: ServerName
    # Four times as long as a key of the size that tokens have.
    key: Annotated[str, Field(max_length=2048, description="The issuer's public key, in PEM.")]
    origins: Annotated[list[ServerName], Field(max_length=16), FailFast()] = []


class CampaignBody(Body):
    """A campaign to create.

    >>> CampaignBody(name="Rides", plan={}).access
    'invite'
    """

    name: Name
    plan: Annotated[dict[str, Any], Field(description="A plan in its short or full form.")]
    access: Literal["invite", "open", "token"] = "invite"
    issuer: Annotated[IssuerBody, Field(description="For access by token only.")] | None = None
    min_users: Annotated[StrictInt, Field(ge=1, le=10**12)] = DEFAULT_MIN_USERS
    closes_at: End | None = None
    open: StrictBool = False


class ExtendBody(Body):
    """The new end of a campaign; null for none.

    >>> ExtendBody(closes_at=None).closes_at
    """

    closes_at: End | None


class InvitesBody(Body):
    """How many invites, and for how many days they are valid.

    >>> InvitesBody().count
    1
    """

    count: Annotated[StrictInt, Field(ge=1, le=MOST_INVITES)] = 1
    days: Annotated[float, Field(gt=0, le=3650, strict=True)] | None = None


class ErrorDetail(BaseModel):
    """Why a request was refused.

    >>> ErrorDetail(code="ticket-used", message="…").field
    """

    code: str
    message: str
    field: str | None = None


class ErrorBody(BaseModel):
    """The body of all errors.

    >>> ErrorBody(error=ErrorDetail(code="not-found", message="…")).error.code
    'not-found'
    """

    error: ErrorDetail


class GroupPart(BaseModel):
    """A group in which a ticket's device reports, and how often.

    >>> GroupPart(group=2, reports=4).reports
    4
    """

    group: int
    reports: int


class TicketAnswer(BaseModel):
    """A ticket, and what it says.

    >>> sorted(TicketAnswer.model_fields)[:2]
    ['campaign', 'expires_at']
    """

    ticket: str
    campaign: str
    fingerprint: str
    tier: int
    groups: list[GroupPart]
    expires_at: str


class Accepted(BaseModel):
    """The submission is stored and counted, now or before.

    >>> Accepted().status
    'accepted'
    """

    status: Literal["accepted"] = "accepted"


class Refused(BaseModel):
    """One submission of a batch was refused.

    >>> Refused(error=ErrorDetail(code="ticket-used", message="…")).status
    'refused'
    """

    status: Literal["refused"] = "refused"
    error: ErrorDetail


class BatchAnswer(BaseModel):
    """One result for each submission, in their order.

    >>> BatchAnswer(results=[Accepted()]).results[0].status
    'accepted'
    """

    results: list[Accepted | Refused]


class CampaignHead(BaseModel):
    """What everybody who may see a campaign sees of it, without its plan.

    >>> sorted(CampaignHead.model_fields)
    ['access', 'closes_at', 'fingerprint', 'id', 'name', 'state']
    """

    id: str
    name: str
    state: Literal["draft", "open", "closed"]
    access: Literal["invite", "open", "token"]
    fingerprint: str
    closes_at: str | None


class OperatorFields(BaseModel):
    """What operators see of a campaign besides.

    >>> sorted(OperatorFields.model_fields)
    ['created_at', 'min_users']
    """

    created_at: str
    min_users: int


class CampaignAnswer(CampaignHead):
    """A campaign as devices see it.

    >>> "plan" in CampaignAnswer.model_fields
    True
    """

    plan: dict[str, Any]
    token_challenge: str | None = None
    token_key: str | None = None


class OperatorCampaign(OperatorFields, CampaignAnswer):
    """A campaign as its operator sees it.

    >>> "notice" in OperatorCampaign.model_fields
    True
    """

    notice: str | None = None


class Invites(BaseModel):
    """Codes of new invites, which cannot be read again.

    >>> Invites(invites=["…"]).invites
    ['…']
    """

    invites: list[str]


class ListedCampaign(OperatorFields, CampaignHead):
    """A campaign of a list, with how many users enrolled and reported.

    >>> "plan" in ListedCampaign.model_fields
    False
    """

    enrolled: int
    submissions: int
    last_estimate: dict[str, Any] | None = None


class CampaignList(BaseModel):
    """A page of campaigns, and the cursor of the next page, if there is one.

    >>> CampaignList(campaigns=[]).next
    """

    campaigns: list[ListedCampaign]
    next: str | None = None
