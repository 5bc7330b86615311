"""Who may read the metrics: a client with the token, or a client of a named network."""

from enum import Enum, auto
from ipaddress import ip_address
from secrets import compare_digest

from django.conf import settings
from django.http import HttpRequest

from slicewise_server.web.addresses import client_address

# Headers by which proxies name the client. `client_address` reads the first one, from trusted
# proxies.
_FORWARDED = ("X-Forwarded-For", "Forwarded", "X-Real-IP", "Via")


class Access(Enum):
    """The answer to whether a request may read the metrics."""

    GRANTED = auto()
    WRONG_TOKEN = auto()
    FOREIGN = auto()


def access_of(request: HttpRequest) -> Access:
    """Return whether a request may read the metrics.

    A request by network needs a name of this server, like all others: otherwise a page of another
    site, open in a browser on this host, could read the metrics. Raises DisallowedHost.
    """
    header = request.headers.get("Authorization", "")
    if header:
        return Access.GRANTED if _has_token(header) else Access.WRONG_TOKEN
    if not _is_from_network(request):
        return Access.FOREIGN
    request.get_host()
    return Access.GRANTED


def _has_token(header: str) -> bool:
    scheme, _, token = header.partition(" ")
    expected: str = settings.METRICS_TOKEN
    is_equal = compare_digest(token.strip().encode(), expected.encode())
    return bool(expected) and scheme.lower() == "bearer" and is_equal


def _is_from_network(request: HttpRequest) -> bool:
    """Return whether the client is in one of the networks of the setting.

    With the header of a proxy that is not trusted, the client is unknown: a proxy on this host
    would bring all the world in as this host.
    """
    client = client_address(request)
    if client is None:
        return False
    is_forwarded = any(name in request.headers for name in _FORWARDED)
    if is_forwarded and client == client_address(request, ()):
        return False
    return any(ip_address(client) in network for network in settings.METRICS_NETWORKS)
