"""The address of a client behind proxies, and headers that clients forge."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test import Client, RequestFactory

from accounts_app.models import AuditEntry
from accounts_app.policy import Role
from slicewise_server.networks import networks as networks_of
from slicewise_server.web.addresses import Network, client_address
from tests import factories


def networks(texts: list[str]) -> tuple[Network, ...]:
    return networks_of("TRUSTED_PROXIES", texts)


PROXIES = ["10.0.0.0/8", "2001:db8:ffff::/48"]
CLIENT = "203.0.113.9"


def address(peer: str, header: str | None, trusted: list[str] | None = None) -> str | None:
    more: dict[str, Any] = {} if header is None else {"HTTP_X_FORWARDED_FOR": header}
    request = RequestFactory().get("/", REMOTE_ADDR=peer, **more)
    return client_address(request, networks(PROXIES if trusted is None else trusted))


@pytest.mark.parametrize(
    ("peer", "header", "client"),
    [
        ("10.0.0.1", CLIENT, CLIENT),
        ("10.0.0.1", None, "10.0.0.1"),
        ("10.0.0.1", "", "10.0.0.1"),
        # Several proxies, each of which adds the one it heard from.
        ("10.0.0.1", f"{CLIENT}, 10.0.0.3, 10.0.0.2", CLIENT),
        ("10.0.0.1", f"{CLIENT},10.0.0.3", CLIENT),
        # Whatever the client itself has written stands left of its address.
        ("10.0.0.1", f"1.2.3.4, {CLIENT}", CLIENT),
        ("10.0.0.1", f"10.0.0.9, {CLIENT}, 10.0.0.2", CLIENT),
        ("10.0.0.1", f"unknown, {CLIENT}", CLIENT),
        # A client within the trusted networks.
        ("10.0.0.1", "10.0.0.7, 10.0.0.2", "10.0.0.7"),
        # Nothing is believed of a peer that is no proxy.
        ("198.51.100.4", CLIENT, "198.51.100.4"),
        ("198.51.100.4", f"{CLIENT}, 10.0.0.2", "198.51.100.4"),
        # IPv6, with and without ports, and IPv4 written as IPv6.
        ("2001:db8:ffff::1", "2001:db8:1::7", "2001:db8:1::7"),
        ("2001:db8:ffff::1", "2001:DB8:1:0:0:0:0:7", "2001:db8:1::7"),
        ("2001:db8:ffff::1", "[2001:db8:1::7]:4711", "2001:db8:1::7"),
        ("2001:db8:ffff::1", "[2001:db8:1::7]", "2001:db8:1::7"),
        ("::ffff:10.0.0.1", f"::ffff:{CLIENT}", CLIENT),
        ("10.0.0.1", f"{CLIENT}:4711", CLIENT),
        ("10.0.0.1", "fe80::1%eth0", "fe80::1"),
        # Junk: what stands left of it is not believed either.
        ("10.0.0.1", "junk", "10.0.0.1"),
        ("10.0.0.1", f"{CLIENT}, junk", "10.0.0.1"),
        ("10.0.0.1", f"{CLIENT}, junk, 10.0.0.2", "10.0.0.2"),
        ("10.0.0.1", f"{CLIENT},,", "10.0.0.1"),
        ("10.0.0.1", "999.1.1.1", "10.0.0.1"),
        ("10.0.0.1", "'; DROP TABLE accounts_app_user; --", "10.0.0.1"),
        ("10.0.0.1", "[", "10.0.0.1"),
        ("10.0.0.1", "%", "10.0.0.1"),
        ("10.0.0.1", "," * 10_000, "10.0.0.1"),
        # A socket of the host has no address.
        ("", CLIENT, None),
        ("junk", CLIENT, None),
    ],
)
def test_the_client_is_the_rightmost_address_that_is_no_proxy(
    peer: str, header: str | None, client: str | None
) -> None:
    assert address(peer, header) == client


def test_without_the_setting_the_header_is_never_believed() -> None:
    for peer in ("10.0.0.1", "127.0.0.1", "198.51.100.4"):
        assert address(peer, CLIENT, trusted=[]) == peer


def test_a_setting_that_cannot_be_read_stops_the_start() -> None:
    for wrong in ("10.0.0.1/8", "proxy.example", "10.0.0.0/33", ""):
        with pytest.raises(ImproperlyConfigured, match="TRUSTED_PROXIES"):
            networks([wrong])
    assert [str(network) for network in networks(["10.0.0.1", "::1"])] == ["10.0.0.1/32", "::1/128"]


@pytest.fixture
def behind_proxies(db: None, settings: Any) -> None:
    settings.TRUSTED_PROXIES = networks(PROXIES)
    settings.AXES_FAILURE_LIMIT = 3
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    factories.person("vera", Role.VIEWER, password="right")


def sign_in(password: str, client_at: str, path: str = "/sign-in/") -> Any:
    body = {"username": "vera", "password": password}
    more: dict[str, Any] = {} if path == "/sign-in/" else {"content_type": "application/json"}
    where: dict[str, Any] = {"REMOTE_ADDR": "10.0.0.1", "HTTP_X_FORWARDED_FOR": client_at}
    return Client().post(path, body, **more, **where)


@pytest.mark.parametrize("path", ["/sign-in/", "/api/v1/tokens/"])
def test_people_behind_one_proxy_do_not_lock_each_other_out(
    behind_proxies: None, path: str
) -> None:
    statuses = [sign_in("wrong", "203.0.113.66", path).status_code for _ in range(4)]
    assert statuses[-1] == 429
    assert sign_in("right", CLIENT, path).status_code in (201, 302)


def test_whoever_writes_the_header_does_not_get_around_the_limit(behind_proxies: None) -> None:
    for count in range(3):
        sign_in("wrong", f"198.51.100.{count}, 203.0.113.66")
    assert sign_in("right", "198.51.100.77, 203.0.113.66").status_code == 429


def test_the_trail_has_the_address_of_the_client(behind_proxies: None) -> None:
    sign_in("wrong", CLIENT)
    sign_in("right", CLIENT)
    assert set(AuditEntry.objects.values_list("address", flat=True)) == {CLIENT}


def test_addresses_of_one_ipv6_network_count_as_one(behind_proxies: None) -> None:
    """One line of a provider has all 2**64 addresses of its network."""
    statuses = [sign_in("wrong", f"2001:db8:1:2::{n}").status_code for n in range(1, 5)]
    assert statuses[-1] == 429
    assert sign_in("right", "2001:db8:1:3::1").status_code == 302
    assert "2001:db8:1:2::1" in AuditEntry.objects.values_list("address", flat=True)
