"""Network addresses as rate limits count them."""

from __future__ import annotations

import ipaddress

IPV6_PREFIX_BITS = 64
"""Providers give each customer a network of at least this size, so it counts as one address."""


def network(address: str) -> str:
    """The unit that limits count by: an IPv4 address, or an IPv6 network of 64 bits.

    >>> network("192.0.2.7"), network("2001:db8:1:2:3:4:5:6"), network("unknown")
    ('192.0.2.7', '2001:db8:1:2::/64', 'unknown')
    """
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if parsed.version == 4:
        return str(parsed)
    # A socket for both families shows IPv4 clients as ::ffff:192.0.2.7.
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((parsed, IPV6_PREFIX_BITS), strict=False))
