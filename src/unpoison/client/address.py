"""Where a collector is: its URL, taken apart and written in one way."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from unpoison.errors import InvalidParameter

PORTS = {"http": 80, "https": 443}
NAME = re.compile(r"[a-z0-9_](?:[a-z0-9._-]*[a-z0-9_.])?")
PREFIX = re.compile(r"(?:/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)*")


@dataclass(frozen=True)
class Address:
    """Scheme, host, port and path of a collector; `str` gives the one way to write them.

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
        """An address from a URL without user name, query and fragment.

        >>> Address.parse("ftp://collector.example")
        Traceback (most recent call last):
            ...
        unpoison.errors.InvalidParameter: collector must be ...; received 'ftp://collector.example'
        """
        try:
            return cls._of(urlsplit(url if url.isprintable() and " " not in url else ""))
        except (ValueError, AttributeError):
            pass
        rule = "must be an address like https://collector.example"
        hidden = "@" in str(url)
        raise InvalidParameter("collector", rule, "one with a user name" if hidden else repr(url))

    @classmethod
    def trusted(cls, url: str, insecure: bool = False) -> Address:
        """An address to which secrets may be sent: encrypted, or on this machine, or allowed.

        >>> Address.trusted("http://collector.example")
        Traceback (most recent call last):
            ...
        unpoison.errors.InvalidParameter: collector must be https:// unless insecure; received ...
        """
        address = cls.parse(url)
        if not (address.secure or address.loopback or insecure):
            raise InvalidParameter("collector", "must be https:// unless insecure", address)
        return address

    @classmethod
    def _of(cls, parts: SplitResult) -> Address:
        port = PORTS.get(parts.scheme, 0) if parts.port is None else parts.port
        prefix = parts.path.rstrip("/")
        plain = "@" not in parts.netloc and not (parts.query or parts.fragment)
        if not (parts.scheme in PORTS and port and plain and PREFIX.fullmatch(prefix)):
            raise ValueError
        return cls(parts.scheme, _host(parts.hostname or ""), port, prefix)

    @property
    def secure(self) -> bool:
        """Whether all that is said there is encrypted."""
        return self.scheme == "https"

    @property
    def loopback(self) -> bool:
        """Whether it is this machine, so that nothing travels over a network."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{host}{port}{self.prefix}"


def _host(name: str) -> str:
    """A number or a name, in ASCII; anything else is a ValueError."""
    if ":" in name:
        return str(ipaddress.IPv6Address(name))
    encoded = name.encode("idna").decode()
    if not NAME.fullmatch(encoded):
        raise ValueError
    return encoded
