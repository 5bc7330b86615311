"""URIs in one canonical form (AIP-60), so that one place has one name."""

import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from urllib.parse import SplitResult, quote, unquote, urlsplit

__all__ = ["UriScheme", "masked_text", "masked_uri", "normalize_uri", "uri_path"]

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_BROKEN_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
# A password may hold anything, also what ends a host by RFC 3986; so it goes on to the last "@".
_USER_PASSWORD = re.compile(r"(//[^/?#@:]*):.*@", re.DOTALL)
_HIDDEN = (
    r"[^=&;?#]*(?:pass|pwd|secret|token|credential|signature"
    r"|(?:api|access|account|private)[_-]?key)[^=&;?#]*="
)
_HIDDEN_VALUE = re.compile(rf"([?&]{_HIDDEN})[^&]*|(;{_HIDDEN})[^;&]*", re.IGNORECASE)
_URI_IN_TEXT = re.compile(r"[A-Za-z][A-Za-z0-9+.:-]*//[^\s\"'`<>]*")
# What has a colon before its path that is followed by no port, and an "@" only later.
_BROKEN_USER_INFO = re.compile(r"[^:]*://[^/?#@:]*:(?!\d*(?:[/?#]|$))[^/?#@]*[/?#][^@]*@")
# RFC 3986: what may stand in a path component as it is, besides letters and digits.
_PATH_SAFE = "-._~!$&'()*+,;=:@%"


@dataclass(frozen=True, kw_only=True)
class UriScheme:
    """How URIs of one scheme are written.

    New schemes come by the entry point group ``slicewise.uri_schemes``: the entry point's name is
    the scheme as people write it, its value a UriScheme. ``name`` is the canonical name.
    """

    name: str
    components: int | None = None
    """How many components the path has; None: any number."""
    default_host: str | None = None
    """What stands for an empty host; None: a host is required."""
    has_port: bool = False
    """Whether host and port name a server; else the host is a bucket or project without port."""
    port: int | None = None
    """The default port; None: the URI must name one, if `has_port`."""
    drops_port: bool = False
    """Whether a port is dropped, where there should be none; else such a URI breaks the rule."""


_FILE = UriScheme(name="file", default_host="localhost", drops_port=True)
_POSTGRES = UriScheme(name="postgres", has_port=True, port=5432, components=3)
_MYSQL = UriScheme(name="mysql", has_port=True, port=3306, components=2)
_BUILT_IN = {
    "file": _FILE,
    "s3": UriScheme(name="s3"),
    "gcs": UriScheme(name="gcs"),
    "gs": UriScheme(name="gcs"),
    "postgres": _POSTGRES,
    "postgresql": _POSTGRES,
    "mysql": _MYSQL,
    "mariadb": _MYSQL,
    "bigquery": UriScheme(name="bigquery", components=2),
    "trino": UriScheme(name="trino", has_port=True, port=8080, components=3),
}


@cache
def _schemes() -> dict[str, UriScheme]:
    found = {entry.name: entry.load() for entry in entry_points(group="slicewise.uri_schemes")}
    return {**found, **_BUILT_IN}


def normalize_uri(text: str) -> str:
    """The canonical form of a URI; text that is no URI is returned as it is (AIP-60).

    A URI that breaks its scheme's rule loses its user info and is otherwise returned as written,
    with a warning. A password is never part of what is returned: what would stay as written comes
    masked. Normalising twice changes nothing. Raises ValueError for ``airflow://``.
    """
    if not _SCHEME.match(text):
        return masked_uri(text)
    scheme = text.partition("://")[0].lower()
    if scheme == "airflow":
        raise ValueError("the scheme airflow:// is reserved (AIP-60); use another, or x-airflow://")
    if scheme.startswith("x-"):
        return masked_uri(text)
    if _BROKEN_USER_INFO.match(text):
        text = masked_uri(text)
    text = _without_secrets(text)
    try:
        parts = urlsplit(text)
        return _canonical(parts, _schemes().get(scheme))
    except ValueError as error:
        if (safe := masked_uri(text)) != text:
            return normalize_uri(safe)  # a password may have looked like a port and a path
        warnings.warn(f"{_without_user_info(text)!r} stays as written: {error}", stacklevel=2)
        return _without_user_info(text)


def masked_uri(uri: str) -> str:
    """The URI with `***` for the password in its user info and for secrets in its query."""
    return _without_secrets(_USER_PASSWORD.sub(r"\1:***@", uri))


def masked_text(text: str) -> str:
    """Any text, such as source code, with its URIs masked."""
    return _URI_IN_TEXT.sub(lambda found: masked_uri(found[0]), text)


def _without_secrets(uri: str) -> str:
    return _HIDDEN_VALUE.sub(lambda found: f"{found[1] or found[2]}***", uri)


def uri_path(uri: str) -> Path:
    """The folder that a ``file:`` URI names, decoded. Raises ValueError for any other URI."""
    parts = urlsplit(uri)
    if parts.scheme.lower() != "file":
        raise ValueError(f"{uri!r} is not a file: URI")
    if (parts.hostname or "localhost") != "localhost":
        raise ValueError(f"{uri!r} is on the host {parts.hostname}, not on this one")
    return Path("/" + unquote(parts.path).strip("/"))


def _canonical(parts: SplitResult, scheme: UriScheme | None) -> str:
    path = _canonical_path(parts.path)
    if scheme is None:
        netloc = parts.netloc.rpartition("@")[2]
        return _joined(parts.scheme.lower(), netloc, path, parts.query)
    if scheme.components is not None:
        _check_components(path, scheme)
    return _joined(scheme.name, _canonical_host(parts, scheme), path, parts.query)


def _joined(scheme: str, netloc: str, path: str, query: str) -> str:
    ordered = _ordered_query(query)
    return f"{scheme}://{netloc}{path}" + (f"?{ordered}" if ordered else "")


def _canonical_host(parts: SplitResult, scheme: UriScheme) -> str:
    # Names of buckets and projects keep their case: `parts.hostname` would lower it.
    host, port = parts.netloc.rpartition("@")[2], parts.port
    if port is not None or host.endswith(":"):
        host = host.rpartition(":")[0]
    host = host or scheme.default_host or ""
    if not host:
        raise ValueError(f"a {scheme.name} URI needs a host")
    if scheme.has_port:
        port = port or scheme.port
        if port is None:
            raise ValueError(f"a {scheme.name} URI needs a port")
        return f"{host.lower()}:{port}"
    if port is not None and not scheme.drops_port:
        raise ValueError(f"a {scheme.name} URI has no port")
    return host.lower() if scheme.default_host else host


def _canonical_path(path: str) -> str:
    components = path.rstrip("/").split("/")
    return "/".join(_encode(component) for component in components) or "/"


def _encode(component: str) -> str:
    # A percent sign that is part of an escape stays, so that nothing is encoded twice.
    return quote(_BROKEN_ESCAPE.sub("%25", component), safe=_PATH_SAFE)


def _ordered_query(query: str) -> str:
    key: Callable[[str], str] = lambda item: item.partition("=")[0]  # noqa: E731
    return "&".join(sorted(query.split("&"), key=key)) if query else ""


def _check_components(path: str, scheme: UriScheme) -> None:
    components = path.strip("/").split("/")
    if len(components) != scheme.components or not all(components):
        raise ValueError(f"the path of a {scheme.name} URI has {scheme.components} components")


def _without_user_info(text: str) -> str:
    scheme, _, rest = text.partition("://")
    end = re.search(r"[/?#]", rest)
    netloc, tail = (rest[: end.start()], rest[end.start() :]) if end else (rest, "")
    return f"{scheme}://{netloc.rpartition('@')[2]}{tail}"
