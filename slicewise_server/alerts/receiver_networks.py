"""Networks that messages may reach: addresses of channels lead neither to the worker's own host nor
to the metadata service of a cloud, unless the settings allow it.

Each connection is checked when it is opened, by the address that the connection has: a name that
has another address by then is checked again. An audit hook of Python sees the connections of all
libraries.
"""

import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any

from django.conf import settings

BLOCKED_SENTENCE = (
    "The address of the receiver is in a blocked network (settings ALERT_ALLOWED_NETWORKS and"
    " ALERT_BLOCKED_NETWORKS)."
)
_BLOCKED = tuple(
    ip_network(text)
    for text in (
        # This host, and addresses that lead to this host.
        *("0.0.0.0/8", "127.0.0.0/8", "::/128", "::1/128"),
        # The link, where clouds have their metadata services.
        *("169.254.0.0/16", "fe80::/10"),
        # Metadata services elsewhere: Alibaba, Azure, Oracle, AWS.
        *("100.100.100.200/32", "168.63.129.16/32", "192.0.0.0/24", "fd00:ec2::/32"),
        # No single receiver.
        *("224.0.0.0/4", "240.0.0.0/4", "ff00::/8"),
    )
)
_NAT64 = ip_network("64:ff9b::/96")
_COMPATIBLE = ip_network("::/96")
_EVENTS = frozenset(("socket.connect", "socket.sendto", "socket.sendmsg"))

Address = IPv4Address | IPv6Address


class BlockedAddress(OSError):
    """A connection to an address that no message may reach."""


@dataclass
class Guard:
    """The connections of one message."""

    has_blocked: bool = False
    """Whether a connection was refused. Libraries may keep the error for themselves."""


# Apprise hands the context to the threads of its pool.
_guard: ContextVar[Guard | None] = ContextVar("guard", default=None)


def is_allowed(address: Address) -> bool:
    """Return whether a message may go to the address."""
    return all(_is_allowed(reached) for reached in _reached_by(address))


@contextmanager
def guarded_connections() -> Iterator[Guard]:
    """Refuse connections of this context to blocked addresses, with BlockedAddress."""
    _install_hook()
    guard = Guard()
    token = _guard.set(guard)
    try:
        yield guard
    finally:
        _guard.reset(token)


def _is_allowed(address: Address) -> bool:
    if any(address in network for network in settings.ALERT_ALLOWED_NETWORKS):
        return True
    blocked_networks = (*_BLOCKED, *settings.ALERT_BLOCKED_NETWORKS)
    return not any(address in network for network in blocked_networks)


def _reached_by(address: Address) -> Iterator[Address]:
    """Yield the addresses at which a connection to the address may end."""
    if isinstance(address, IPv4Address):
        yield address
    elif address.ipv4_mapped is not None:
        yield address.ipv4_mapped
    else:
        yield address
        if address.sixtofour is not None:
            yield address.sixtofour
        if address in _NAT64 or (address in _COMPATIBLE and int(address) > 1):
            yield IPv4Address(int(address) & 0xFFFF_FFFF)


@cache
def _install_hook() -> None:
    # A hook cannot be removed, so processes that send no messages have none.
    sys.addaudithook(_check_event)


def _check_event(event: str, args: tuple[Any, ...]) -> None:
    if event not in _EVENTS:
        return
    guard = _guard.get()
    if guard is None:
        return
    connection, address = args
    if address is not None and not _is_open(connection, address):
        guard.has_blocked = True
        raise BlockedAddress("a blocked address")


def _is_open(connection: socket.socket, address: Any) -> bool:
    if connection.family not in (socket.AF_INET, socket.AF_INET6):
        return False  # a service of this host
    host = str(address[0])
    try:
        return is_allowed(ip_address(host))
    except ValueError:  # a name, which the system resolves for the connection
        infos = socket.getaddrinfo(host, None, connection.family)
        return all(is_allowed(ip_address(info[4][0])) for info in infos)
