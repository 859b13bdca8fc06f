"""Refusals: every error code with its HTTP status, and the one exception that carries them."""

from __future__ import annotations

from typing import Any, Self

from unpoison.errors import UnpoisonError

CAUSES: dict[str, tuple[int, str]] = {
    "invalid-request": (422, "The request is not valid."),
    "unauthorized": (401, "This needs the operator's token."),
    "forbidden": (403, "This token may read, but change nothing."),
    "invalid-invite": (403, "There is no such invite, or it has expired."),
    "invalid-ticket": (403, "This ticket was not issued for this device and campaign."),
    "invalid-token": (403, "There is no token of the campaign's issuer for this campaign."),
    "ticket-expired": (403, "The ticket has expired: ask for it again."),
    "not-found": (404, "There is nothing at this address."),
    "method-not-allowed": (405, "This address does not support this method."),
    "too-slow": (408, "The request came too slowly."),
    "invite-used": (409, "The invite was used by another device."),
    "token-used": (409, "The token was used by another device."),
    "ticket-used": (409, "Another submission was counted for this ticket."),
    "campaign-not-open": (409, "The campaign is not open."),
    "not-enough-users": (409, "Too few users have reported for an estimate."),
    "wrong-state": (409, "The campaign's state does not allow this."),
    "too-large": (413, "The request is too large."),
    "unsupported-media-type": (415, "The body must be application/json."),
    "wrong-number-of-values": (422, "The ticket is for another number of values."),
    "out-of-domain": (422, "A value is not a cell of the plan."),
    "invalid-plan": (422, "The plan cannot be used."),
    "unknown-tier": (422, "The plan has no such tier."),
    "rate-limited": (429, "Too many requests from this address: try again later."),
    "internal": (500, "An internal error occurred; it has been logged."),
    "unavailable": (503, "The collector cannot store anything now: try again later."),
}
"""Each code with its HTTP status and its default message."""

RETRY_SECONDS = {"rate-limited": 60, "unavailable": 2}
"""Default `Retry-After`: a rate limit refills within a minute, a busy database recovers sooner."""


class Fault(UnpoisonError):
    """A refusal that is sent to the client.

    >>> fault = Fault("ticket-used")
    >>> fault.status, fault.body()["error"]["code"]
    (409, 'ticket-used')
    """

    def __init__(
        self,
        code: str,
        message: str | None = None,
        field: str | None = None,
        status: int | None = None,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(code, message, field, status, retry_after)
        self.code = code
        self.status = status or CAUSES[code][0]
        self.message = message or CAUSES[code][1]
        self.field = field
        self.retry_after = retry_after or RETRY_SECONDS.get(code)

    def __str__(self) -> str:
        return self.message

    @property
    def error(self) -> dict[str, str]:
        """Code, message and field, as they appear in a response."""
        field = {} if self.field is None else {"field": self.field}
        return {"code": self.code, "message": self.message, **field}

    @property
    def headers(self) -> dict[str, str]:
        """Response headers: when to retry, or how to authenticate."""
        wait = {} if self.retry_after is None else {"Retry-After": str(self.retry_after)}
        login = {"WWW-Authenticate": "Bearer"} if self.status == 401 else {}
        return {**wait, **login}

    def without_trace(self) -> Self:
        """The fault without its traceback, for results that are kept by the thousand.

        A traceback keeps the frames that it goes through, with all that their variables hold.
        """
        self.__context__ = None
        return self.with_traceback(None)

    def body(self) -> dict[str, Any]:
        """The JSON body that all errors share."""
        return {"error": self.error}
