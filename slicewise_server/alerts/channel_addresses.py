"""Addresses of channels: which ones messages are sent to, and how people see them."""

import logging
import re
from ipaddress import ip_address
from urllib.parse import SplitResult, unquote_plus, urlsplit

import apprise

from slicewise_server.alerts.models import ChannelKind
from slicewise_server.alerts.receiver_networks import BLOCKED_SENTENCE, is_allowed

# Apprise and urllib3 write addresses to their logs, and the addresses hold secrets.
for _name in ("apprise", "urllib3"):
    _log = logging.getLogger(_name)
    _log.propagate = False
    _log.setLevel(logging.CRITICAL)
    _log.addHandler(logging.NullHandler())

# Blanks and control characters, backslashes, and a comma before a second address.
_UNFIT = re.compile(r"[\s\x00-\x1f\x7f-\x9f\\\ud800-\udfff]|,[^,]*://")
# Options that make a send last minutes, follow redirects, or read files of the worker.
_REFUSED_OPTIONS = frozenset(
    ("retry", "wait", "rto", "cto", "redirect", "template", "keyfile", "subfile", "method")
)
# These plug-ins act on the worker's own host.
_LOCAL_PLUGINS = frozenset(
    f"apprise.plugins.{name}"
    for name in ("blink1", "dbus", "glib", "gnome", "macosx", "syslog", "windows")
)
CONNECT_SECONDS, READ_SECONDS = 5.0, 10.0


class UnfitAddress(ValueError):
    """No message can be sent to the address; the text does not show the address."""


def shown_address(kind: str, address: str) -> str:
    """Return scheme and host alone, for people; raise UnfitAddress."""
    if kind == ChannelKind.WEBHOOK:
        url = web_address(address)
        # The path of a webhook is often its secret.
        return f"{url.scheme}://{url.hostname}/…"[:500]
    service = service_of(address)
    url = urlsplit(str(service.url(privacy=True)))  # type: ignore[no-untyped-call]
    try:
        host = (url.hostname or "") if "host" in service.template_tokens else ""
    except ValueError:
        host = ""
    # Some services take a token or a topic in the place of the host.
    is_host = host == "localhost" or "." in host or ":" in host
    return f"{url.scheme}://{f'{host}/' if is_host else ''}…"[:500]


def web_address(address: str) -> SplitResult:
    """Return the parts of a webhook's address; raise UnfitAddress."""
    _check_characters(address)
    try:
        url = urlsplit(address)
        # Reading the port checks the port.
        is_web = url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
    except ValueError:
        is_web = False
    if not is_web:
        raise UnfitAddress("A webhook has an address with http:// or https://.")
    try:
        is_open = is_allowed(ip_address(url.hostname or ""))
    except ValueError:  # a name, whose addresses are checked when a message is sent
        is_open = True
    if not is_open:
        raise UnfitAddress(BLOCKED_SENTENCE)
    return url


def service_of(address: str) -> apprise.NotifyBase:
    """Return the service of Apprise at an address; raise UnfitAddress."""
    _check_characters(address)
    for option in re.split("[?&;]", address)[1:]:
        name = unquote_plus(option.partition("=")[0]).strip().lower()
        if name in _REFUSED_OPTIONS or name.startswith("pgp"):
            # The name is one of a few known ones, or a secret may be a part of it.
            shown = name if name in _REFUSED_OPTIONS else "pgp"
            raise UnfitAddress(f"An address must not have the option {shown!r}.")
    # Without async_mode, Apprise starts no thread of its own.
    asset = apprise.AppriseAsset(http_redirects=False, async_mode=False)
    service = apprise.Apprise.instantiate(address, asset=asset, suppress_exceptions=True)
    if service is None:
        raise UnfitAddress("Apprise knows no service with such an address.")
    if type(service).__module__ in _LOCAL_PLUGINS:
        raise UnfitAddress("The address names no service of the network.")
    service.retry, service.redirects = 0, False
    service.socket_connect_timeout, service.socket_read_timeout = CONNECT_SECONDS, READ_SECONDS
    return service


def _check_characters(address: str) -> None:
    if _UNFIT.search(address):
        raise UnfitAddress(
            "An address has no blanks, backslashes or control characters, and names one place."
        )
