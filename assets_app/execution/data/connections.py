"""Logins and options of data locations, as the connections file of this gateway gives them.

Credentials are never part of a URI, nor of stored rows. A run gets the connections of the locations
that it reads and writes, and no more.
"""

import json
from collections.abc import Mapping
from typing import Any

from django.conf import settings

from slicewise.uris import checked_uri

Connections = Mapping[str, Mapping[str, Any]]


class ConnectionsError(ValueError):
    """The file of connections cannot be read, or has an entry that is no connection."""


def connection_of(uri: str) -> dict[str, Any]:
    """Return the connection for a canonical URI: that of the longest location containing the URI.

    The file is read each time, so that a new password is used at once. Raises ConnectionsError.
    """
    connections = _connections()
    locations = [location for location in connections if _is_below(uri, location)]
    return dict(connections[max(locations, key=len)]) if locations else {}


def _connections() -> Connections:
    path = settings.SLICEWISE_CONNECTIONS
    if path is None:
        return {}
    try:
        content = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise ConnectionsError(f"SLICEWISE_CONNECTIONS names {path}: {error}") from error
    if not isinstance(content, dict) or not all(isinstance(v, dict) for v in content.values()):
        raise ConnectionsError(
            f"{path} maps the beginnings of URIs to objects, such as"
            ' {"postgres://db:5432/shop": {"user": "...", "password": "..."}}'
        )
    return {_canonical_location(text): facts for text, facts in content.items()}


def _canonical_location(text: str) -> str:
    """Return the beginning of a URI in canonical form, if the scheme has a form of its own."""
    canonical, _ = checked_uri(text)
    scheme, separator, rest = canonical.rstrip("/").partition("://")
    if scheme in ("postgresql", "postgres") and separator:
        server, slash, path = rest.partition("/")
        name, _, port = server.partition(":")
        return f"postgres://{name.lower()}:{port or 5432}{slash}{path}"
    return f"{scheme}{separator}{rest}"


def _is_below(uri: str, location: str) -> bool:
    return uri == location or uri.startswith(f"{location}/")
