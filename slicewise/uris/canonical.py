"""URIs in one canonical form (AIP-60), so that one location has one name."""

import re
import warnings
from pathlib import Path, PurePosixPath
from urllib.parse import SplitResult, quote, unquote, urlsplit

from slicewise.texts.masking import mask_parameters, masked_uri
from slicewise.uris.schemes import UriScheme, uri_schemes

__all__ = [
    "UriScheme",
    "checked_location",
    "checked_uri",
    "normalize_uri",
    "uri_path",
]

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_FILE_WITHOUT_HOST = re.compile("file:/(?!/)", re.IGNORECASE)  # RFC 8089: file:/lake/raw
_BROKEN_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
# `urlsplit`, with which AIP-60 reads URIs, removes these characters everywhere.
_DROPPED = dict.fromkeys(map(ord, "\t\r\n"))
# A URI with a colon before the path that no port follows, and with an "@" only later.
_BROKEN_USER_INFO = re.compile(r"[^:]*://[^/?#@:]*:(?!\d*(?:[/?#]|$))[^/?#@]*[/?#][^@]*@")
# RFC 3986: characters that need no escape in a path component, besides letters and digits.
_PATH_SAFE = "-._~!$&'()*+,;=:@%"


def normalize_uri(text: str) -> str:
    """Return the canonical form of a URI; a text that is not a URI is returned unchanged (AIP-60).

    A URI that breaks its scheme's rule loses its user info and is otherwise returned as written,
    with a warning. The result never contains a password: a password in a text that stays as written
    is masked. Normalising twice changes nothing. Raises ValueError for ``airflow://``.
    """
    canonical, problem = checked_uri(text)
    if problem is not None:
        warnings.warn(f"{canonical!r} stays as written: {problem}", stacklevel=2)
    return canonical


def checked_location(text: str) -> tuple[str, str | None]:
    """Return `checked_uri` of an asset's uri; an absolute path becomes the ``file:`` URI of its
    folder.

    So one folder has one canonical URI.
    """
    return checked_uri(Path(text).as_uri() if text.startswith("/") else text)


def checked_uri(text: str) -> tuple[str, str | None]:
    """Return (URI, problem): the result of `normalize_uri`, and the broken rule or None."""
    if _FILE_WITHOUT_HOST.match(text):
        text = f"file://{text[len('file:') :]}"
    if not _SCHEME.match(text):
        return masked_uri(text), None
    scheme = text.partition("://")[0].lower()
    if scheme == "airflow":
        raise ValueError("the scheme airflow:// is reserved (AIP-60); use another, or x-airflow://")
    if scheme.startswith("x-"):
        return masked_uri(text), None
    text = text.translate(_DROPPED)
    if _BROKEN_USER_INFO.match(text):
        text = masked_uri(text)
    uri_scheme = uri_schemes().get(scheme)
    uri_without_login = _without_login(mask_parameters(text), uri_scheme)
    try:
        return _canonical(urlsplit(uri_without_login), uri_scheme), None
    except ValueError as error:
        for written in (text, uri_without_login):
            if (safe := masked_uri(written)) != written:
                return checked_uri(safe)  # a password looked like a host, a port or a path
        return uri_without_login, str(error)


def uri_path(uri: str) -> Path:
    """Return the folder of a ``file:`` URI, decoded. Raises ValueError for any other URI."""
    url = urlsplit(uri)
    if url.scheme.lower() != "file":
        raise ValueError(f"{uri!r} is not a file: URI")
    if (url.hostname or "localhost") != "localhost":
        raise ValueError(f"{uri!r} is on the host {url.hostname}, not on this one")
    return Path("/" + unquote(url.path).strip("/"))


def _canonical(url: SplitResult, scheme: UriScheme | None) -> str:
    path = _canonical_path(url.path)
    if scheme is None:
        return _joined(url.scheme, url.netloc, path, url.query)
    if scheme.name == "file":
        path = _file_path(path)
    if scheme.components is not None:
        _check_components(path, scheme)
    return _joined(scheme.name, _canonical_host(url, scheme), path, url.query)


def _joined(scheme: str, netloc: str, path: str, query: str) -> str:
    ordered = _ordered_query(query)
    return f"{scheme}://{netloc}{path}" + (f"?{ordered}" if ordered else "")


def _canonical_host(url: SplitResult, scheme: UriScheme) -> str:
    # Names of buckets and projects keep their case: `url.hostname` would lower it.
    container, separator, host = url.netloc.rpartition("@")
    if url.port is not None or host.endswith(":"):
        host = host.rpartition(":")[0]
    host = host or scheme.default_host or ""
    if not host:
        raise ValueError(f"a {scheme.name} URI needs a host")
    if scheme.has_port:
        host = f"{host.lower()}:{_port(url, scheme)}"
    elif url.port is not None and not scheme.drops_port:
        raise ValueError(f"a {scheme.name} URI has no port")
    elif scheme.default_host:
        host = host.lower()
    return f"{container}{separator}{host}"


def _port(url: SplitResult, scheme: UriScheme) -> int:
    port = scheme.port if url.port is None else url.port
    if port is None:
        raise ValueError(f"a {scheme.name} URI needs a port")
    return port


def _canonical_path(path: str) -> str:
    components = path.rstrip("/").split("/")
    return "/".join(_encode(component) for component in components) or "/"


def _file_path(path: str) -> str:
    """Return the path of a folder in one spelling: no ``//``, no ``/./``, no ``%6B`` for ``k``.

    ``..`` stays, because a folder may be a link.
    """
    folder = PurePosixPath("/" + unquote(path).strip("/"))
    return quote(str(folder), safe=_PATH_SAFE.replace("%", "/"))


def _encode(component: str) -> str:
    # A percent sign that is part of an escape stays, so that nothing is encoded twice.
    return quote(_BROKEN_ESCAPE.sub("%25", component), safe=_PATH_SAFE)


def _ordered_query(query: str) -> str:
    # Items with one key keep their order, because the order may have a meaning: `x=2&x=1`.
    return "&".join(sorted(query.split("&"), key=lambda item: item.partition("=")[0]))


def _check_components(path: str, scheme: UriScheme) -> None:
    components = path.removeprefix("/").split("/")
    if len(components) != scheme.components or not all(components):
        raise ValueError(f"the path of a {scheme.name} URI has {scheme.components} components")


def _without_login(text: str, uri_scheme: UriScheme | None) -> str:
    """Return the URI without user info; a container's name only loses a text like a password."""
    scheme, _, rest = text.partition("://")
    netloc = re.split("[/?#]", rest, maxsplit=1)[0]
    user_info, separator, host = netloc.rpartition("@")
    container = (
        user_info.partition(":")[0] + separator
        if uri_scheme is not None and uri_scheme.has_container
        else ""
    )
    return f"{scheme}://{container.lstrip('@')}{host}{rest[len(netloc) :]}"
