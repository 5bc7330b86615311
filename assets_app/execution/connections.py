"""What this gateway knows of the places of data: logins and options, from a file of its own.

Credentials are never part of a URI, nor of what is stored. A run is told what it needs for the
places that it reads and writes, and no more.
"""

import json
from collections.abc import Mapping
from typing import Any

from django.conf import settings

from slicewise.uris import checked_uri

Connections = Mapping[str, Mapping[str, Any]]


class ConnectionsError(ValueError):
    """The file of connections cannot be read, or says something that is no connection."""


def connection_of(uri: str) -> dict[str, Any]:
    """Return the configuration for a canonical URI: of the longest location that contains the URI.

    The file is read each time, so that a new password is used at once. Raises ConnectionsError.
    """
    known = _connections()
    found = [place for place in known if _is_below(uri, place)]
    return dict(known[max(found, key=len)]) if found else {}


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
    return {_place(text): facts for text, facts in content.items()}


def _place(text: str) -> str:
    """The beginning of a URI in canonical form, as far as it has one of its own."""
    kept, _ = checked_uri(text)
    scheme, found, rest = kept.rstrip("/").partition("://")
    if scheme in ("postgresql", "postgres") and found:
        server, slash, path = rest.partition("/")
        name, _, port = server.partition(":")
        return f"postgres://{name.lower()}:{port or 5432}{slash}{path}"
    return f"{scheme}{found}{rest}"


def _is_below(uri: str, place: str) -> bool:
    return uri == place or uri.startswith(f"{place}/")
