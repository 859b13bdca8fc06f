"""Refusals of the issuer: every error code with its HTTP status."""

from __future__ import annotations

from typing import Any

from unpoison.errors import UnpoisonError

REFUSALS: dict[str, tuple[int, str]] = {
    "unauthorized": (401, "This needs the token of an account."),
    "no-tokens-left": (403, "This account has had all its tokens of this key."),
    "not-found": (404, "There is nothing at this address."),
    "method-not-allowed": (405, "This address does not support this method."),
    "unsupported-media-type": (415, "The body must be application/private-token-request."),
    "invalid-request": (422, "The body is no request for a token of one of this issuer's keys."),
    "rate-limited": (429, "Too many wrong tokens of accounts: wait before you try another."),
}
"""Each code with its HTTP status and its message; 422 for all faults of a request by RFC 9578."""


class Refusal(UnpoisonError):
    """A refusal that is sent to the client; it repeats nothing of the request.

    >>> Refusal("no-tokens-left").status
    403
    """

    def __init__(self, code: str, retry_after: int | None = None) -> None:
        super().__init__(code)
        self.code, self.retry_after = code, retry_after
        self.status, self.message = REFUSALS[code]

    def __str__(self) -> str:
        return self.message

    def headers(self) -> dict[str, str]:
        """The headers that go with the refusal."""
        if self.retry_after is not None:
            return {"Retry-After": str(self.retry_after)}
        return {"WWW-Authenticate": "Bearer"} if self.code == "unauthorized" else {}

    def body(self) -> dict[str, Any]:
        """The JSON body that all refusals share."""
        return {"error": {"code": self.code, "message": self.message}}
