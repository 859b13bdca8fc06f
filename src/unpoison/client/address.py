"""The address of a collector: a URL in one normal form, and the campaign ids that extend it."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from unpoison.errors import InvalidParameter

# The ports of RFC 9110, left out of the normal form; the keys are the schemes a collector may have.
DEFAULT_PORTS = {"http": 80, "https": 443}
HOST_NAME = re.compile(r"[a-z0-9_](?:[a-z0-9._-]*[a-z0-9_.])?")
# No segment may begin with a dot, so that ".." cannot climb out of the prefix.
PATH_PREFIX = re.compile(r"(?:/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)*")
# Wider than the twelve letters and digits that our own collector issues, but nothing in it has a
# meaning in a URL, and a ledger row that it is a key of stays short.
CAMPAIGN_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True)
class Address:
    """Scheme, host, port and path prefix of a collector; `str` writes them in normal form.

    The normal form is the key of the ledger: two spellings of one collector must not give a device
    two budgets.

    >>> str(Address.parse("HTTPS://Collector.Example:443/"))
    'https://collector.example'
    >>> Address.parse("http://[::1]:8000/dap").loopback
    True
    """

    scheme: str
    host: str
    port: int
    prefix: str = ""

    @classmethod
    def parse(cls, url: str) -> Address:
        """Parse a URL without user name, query and fragment.

        >>> Address.parse("ftp://collector.example")
        Traceback (most recent call last):
            ...
        unpoison.errors.InvalidParameter: collector must be ...; received 'ftp://collector.example'
        """
        try:
            # urlsplit drops line breaks and tabs silently, so they are refused before it.
            return cls._from_parts(urlsplit(url if url.isprintable() and " " not in url else ""))
        except (ValueError, AttributeError):
            pass
        rule = "must be an address like https://collector.example"
        # A user name may come with a password, which no message may repeat.
        has_user_name = "@" in str(url)
        raise InvalidParameter(
            "collector", rule, "one with a user name" if has_user_name else repr(url)
        )

    @classmethod
    def parse_for_secrets(cls, url: str, insecure: bool = False) -> Address:
        """Parse a URL to which secrets may be sent: encrypted, on this machine, or allowed.

        >>> Address.parse_for_secrets("http://collector.example")
        Traceback (most recent call last):
            ...
        unpoison.errors.InvalidParameter: collector must be https:// unless insecure; received ...
        """
        address = cls.parse(url)
        if not (address.secure or address.loopback or insecure):
            raise InvalidParameter("collector", "must be https:// unless insecure", address)
        return address

    @classmethod
    def _from_parts(cls, parts: SplitResult) -> Address:
        port = DEFAULT_PORTS.get(parts.scheme, 0) if parts.port is None else parts.port
        prefix = parts.path.rstrip("/")
        plain = "@" not in parts.netloc and not (parts.query or parts.fragment)
        if not (parts.scheme in DEFAULT_PORTS and port and plain and PATH_PREFIX.fullmatch(prefix)):
            raise ValueError
        return cls(parts.scheme, _normal_host(parts.hostname or ""), port, prefix)

    @property
    def secure(self) -> bool:
        """Whether the connection is encrypted."""
        return self.scheme == "https"

    @property
    def loopback(self) -> bool:
        """Whether the host is this machine, so that nothing travels over a network."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == DEFAULT_PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{host}{port}{self.prefix}"


def check_campaign_id(campaign: str) -> None:
    """Refuse a campaign id that could be read as something else in a request's path.

    >>> check_campaign_id("../tickets")
    Traceback (most recent call last):
        ...
    unpoison.errors.InvalidParameter: campaign must be letters, ...; received '../tickets'
    """
    if not isinstance(campaign, str) or not CAMPAIGN_ID.fullmatch(campaign):
        rule = "must be letters, digits, - and _, at most 64"
        raise InvalidParameter("campaign", rule, repr(campaign))


def _normal_host(host: str) -> str:
    """An IP address or a host name in ASCII; anything else is a ValueError."""
    if ":" in host:
        return str(ipaddress.IPv6Address(host))
    encoded = host.encode("idna").decode()
    if not HOST_NAME.fullmatch(encoded):
        raise ValueError
    return encoded
