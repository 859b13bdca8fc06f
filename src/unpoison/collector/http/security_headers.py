"""Headers that every response carries unless it has its own."""

from __future__ import annotations

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'"
)
"""The page runs no inline script and loads nothing from elsewhere, so nothing else is allowed."""
HEADERS = {
    b"content-security-policy": CONTENT_SECURITY_POLICY.encode(),
    b"x-content-type-options": b"nosniff",
    # Addresses of pages contain campaign ids.
    b"referrer-policy": b"no-referrer",
    b"cross-origin-opener-policy": b"same-origin",
    # Tickets and invites must not stay in a cache.
    b"cache-control": b"no-store",
}
STATIC_FILE_HEADERS = HEADERS | {b"cache-control": b"no-cache"}
"""A browser may keep files, but asks whether they are still the same: they carry no version."""
STATIC_PATHS = ("/static/", "/client.js", "/privacy-pass.js")


def default_headers(path: str, origin: str, allowed_origins: list[str]) -> dict[bytes, bytes]:
    """The headers of a response to a request for a path, from a page of an origin.

    Also refusals that are made before the routes get the header by which a page of an allowed
    origin can read them.

    >>> default_headers("/static/page.css", "", [])[b"cache-control"]
    b'no-cache'
    >>> default_headers("/", "https://a.example", ["https://a.example"])[b"vary"]
    b'Origin'
    """
    headers = STATIC_FILE_HEADERS if path.startswith(STATIC_PATHS) else HEADERS
    if origin not in allowed_origins:
        return headers
    readable = {b"access-control-allow-origin": origin.encode("latin-1"), b"vary": b"Origin"}
    return headers | readable
