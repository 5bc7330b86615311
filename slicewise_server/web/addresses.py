"""The address of the client that sent a request, also behind proxies."""

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

from django.conf import settings
from django.http import HttpRequest

Network = IPv4Network | IPv6Network
Address = IPv4Address | IPv6Address
# A line of a provider, or a host in a data center, has a network of this length to itself.
_IPV6_PREFIX = 64


def client_address(request: HttpRequest, trusted: Sequence[Network] | None = None) -> str | None:
    """Return the client's address, or None where the peer has none, as on a socket of the host.

    Each proxy appends the address of its peer to ``X-Forwarded-For``. The first address from the
    right that is no trusted proxy is the client. Any client can write the text left of that
    address, or left of text that is no address.
    """
    proxies = settings.TRUSTED_PROXIES if trusted is None else trusted
    address = _parse_address(request.META.get("REMOTE_ADDR", ""))
    hops = request.headers.get("X-Forwarded-For", "").split(",")
    while address is not None and hops and _is_within(address, proxies):
        forwarded = _parse_address(hops.pop())
        if forwarded is None:
            break
        address = forwarded
    return None if address is None else str(address)


def limited_address(request: HttpRequest) -> str | None:
    """Return the address that limits on sign-ins count: for IPv6 the base of the network."""
    address = _parse_address(client_address(request) or "")
    if isinstance(address, IPv6Address):
        network = IPv6Network((address, _IPV6_PREFIX), strict=False)
        return str(network.network_address)
    return None if address is None else str(address)


def _is_within(address: Address, proxies: Sequence[Network]) -> bool:
    return any(address in network for network in proxies)


def _parse_address(text: str) -> Address | None:
    """Return the address of ``192.0.2.7``, ``192.0.2.7:80``, ``2001:db8::7``, ``[2001:db8::7]:80``.

    The name of an interface (``%eth0``) is left out, since only the proxy knows the interface.
    """
    text = text.strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address
