"""Settings that name networks."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Network, IPv6Network, ip_network

from django.core.exceptions import ImproperlyConfigured


def networks(name: str, texts: Sequence[str]) -> tuple[IPv4Network | IPv6Network, ...]:
    """Return the networks of a setting; raise ImproperlyConfigured for an invalid network."""
    try:
        return tuple(ip_network(text.strip()) for text in texts)
    except ValueError as error:
        example = "10.0.0.0/8,192.0.2.7"
        raise ImproperlyConfigured(f"{name}: {error}. Write it as in {example}.") from error
