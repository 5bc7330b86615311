"""Networks of receivers: which addresses a message reaches, however the address is written."""

from __future__ import annotations

import socket
import threading
from ipaddress import ip_address, ip_network
from typing import Any

import pytest
import requests

from accounts_app.models import User
from slicewise_server.alerts import sending, services
from slicewise_server.alerts.channel_addresses import UnfitAddress
from slicewise_server.alerts.models import Channel
from slicewise_server.alerts.receiver_networks import (
    BLOCKED_SENTENCE,
    BlockedAddress,
    guarded_connections,
    is_allowed,
)
from slicewise_server.web.request_errors import InvalidRequest
from tests.alerts.conftest import Mailbox, Receiver

BODY = {"title": "t", "text": "x"}
BLOCKED = [
    *("127.0.0.1", "127.9.9.9", "0.0.0.0", "169.254.169.254", "100.100.100.200", "224.0.0.1"),
    *("255.255.255.255", "::1", "::", "fe80::1", "fe80::1%eth0", "fd00:ec2::254", "ff02::1"),
    # Ways to write an address of IPv4 in IPv6: mapped, compatible, 6to4, NAT64.
    *("::ffff:127.0.0.1", "::127.0.0.1", "2002:7f00:1::", "64:ff9b::7f00:1"),
]
OPEN = ["10.1.2.3", "192.168.0.7", "172.16.0.1", "93.184.216.34", "fd12::1", "2001:db8::1"]


@pytest.fixture
def defaults(settings: Any) -> Any:
    """Let the settings be those of a new installation."""
    settings.ALERT_ALLOWED_NETWORKS = settings.ALERT_BLOCKED_NETWORKS = ()
    return settings


@pytest.mark.parametrize("address", BLOCKED)
@pytest.mark.usefixtures("defaults")
def test_this_host_its_links_and_metadata_services_are_blocked(address: str) -> None:
    assert not is_allowed(ip_address(address))


@pytest.mark.parametrize("address", OPEN)
@pytest.mark.usefixtures("defaults")
def test_internal_and_public_receivers_are_open(address: str) -> None:
    assert is_allowed(ip_address(address))


def test_settings_block_networks_and_open_some_of_them(defaults: Any) -> None:
    defaults.ALERT_BLOCKED_NETWORKS = (ip_network("0.0.0.0/0"), ip_network("::/0"))
    defaults.ALERT_ALLOWED_NETWORKS = (ip_network("10.1.2.0/24"), ip_network("127.0.0.1"))
    addresses = (
        "10.1.2.3",
        "127.0.0.1",
        "::ffff:127.0.0.1",
        "10.1.3.3",
        "93.184.216.34",
        "fd12::1",
    )
    assert [is_allowed(ip_address(address)) for address in addresses] == [True] * 3 + [False] * 3


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "0x7f.1", "2130706433", "[::ffff:127.0.0.1]"]
)
@pytest.mark.usefixtures("defaults")
def test_a_webhook_to_a_blocked_network_is_not_sent(receiver: Receiver, host: str) -> None:
    address = receiver.address.replace("127.0.0.1", host)
    with pytest.raises((UnfitAddress, requests.ConnectionError)) as refused:
        sending.post_signed(address, "key", "id", BODY)
    assert BLOCKED_SENTENCE in (str(refused.value), sending.failure(refused.value).text)
    assert receiver.requests == []


@pytest.mark.usefixtures("defaults")
def test_a_name_that_changes_its_address_gains_nothing(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = int(receiver.address.rpartition(":")[2].partition("/")[0])
    addresses = iter(["93.184.216.34", "127.0.0.1", "127.0.0.1"])

    def rebinding(*_: object, **__: object) -> list[Any]:
        sockaddr = (next(addresses), port)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", sockaddr)]

    monkeypatch.setattr(socket, "getaddrinfo", rebinding)
    socket.getaddrinfo("rebinding.example", port)  # a check before the request would see this one
    with pytest.raises(requests.ConnectionError) as refused:
        sending.post_signed(f"http://rebinding.example:{port}/", "key", "id", BODY)
    assert sending.failure(refused.value).text == BLOCKED_SENTENCE
    assert receiver.requests == []


@pytest.mark.usefixtures("defaults")
def test_a_service_of_apprise_is_blocked_like_a_webhook(
    receiver: Receiver, mailbox: tuple[Mailbox, str]
) -> None:
    mails, mail_address = mailbox
    port = receiver.address.rpartition(":")[2].partition("/")[0]
    for address in (mail_address, f"json://localhost:{port}/hooks"):
        answer = sending.notify(address, BODY)
        assert (answer.accepted, answer.text) == (False, BLOCKED_SENTENCE)
    assert (mails.mails, receiver.requests) == ([], [])


@pytest.mark.usefixtures("defaults")
def test_sockets_of_all_kinds_are_checked_and_those_of_other_threads_are_not() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        target = server.getsockname()
        with guarded_connections() as guard:
            acts = (
                lambda: socket.create_connection(target),
                lambda: socket.socket().connect(("localhost", target[1])),
                lambda: socket.socket(type=socket.SOCK_DGRAM).sendto(b"x", target),
                lambda: socket.socket(type=socket.SOCK_DGRAM).sendmsg([b"x"], [], 0, target),
                lambda: socket.socket(socket.AF_UNIX).connect("/run/dbus/system_bus_socket"),
            )
            for act in acts:
                with pytest.raises(BlockedAddress):
                    act()
            assert guard.has_blocked
            other = threading.Thread(target=lambda: socket.create_connection(target).close())
            other.start()
            other.join()
            server.accept()[0].close()
        socket.create_connection(target).close()


@pytest.mark.django_db
@pytest.mark.usefixtures("defaults")
def test_a_channel_to_a_blocked_number_is_refused_with_the_names_of_the_settings(
    admin: User,
) -> None:
    with pytest.raises(InvalidRequest, match="ALERT_ALLOWED_NETWORKS"):
        services.create_channel("hook", "webhook", address="http://169.254.169.254/x", user=admin)
    assert not Channel.objects.exists()
