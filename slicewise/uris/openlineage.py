"""The names by which OpenLineage identifies the locations of URIs.

The names follow OpenLineage's naming of datasets (its ``spec/Naming.md``).
"""

import re
from urllib.parse import SplitResult, quote, unquote, urlsplit

from slicewise.uris.canonical import checked_uri
from slicewise.uris.schemes import uri_schemes

__all__ = ["TEXT_NAMESPACE", "openlineage_name", "openlineage_uri"]

TEXT_NAMESPACE = "slicewise"
"""The namespace of texts that are not URIs."""


def openlineage_name(uri: str) -> tuple[str, str]:
    """Return OpenLineage's (namespace, name) of the dataset at a URI, for any spelling of the URI.

    The URI is normalised first, so that the URI has no login. Names are decoded. A scheme without a
    naming of its own gets ``(scheme://authority, path)``, with the query as part of the name. A
    text that is not a URI, or that breaks the rules of its scheme, has no semantics (AIP-60): the
    text is the name, in the namespace ``slicewise``. Raises ValueError for ``airflow://``.
    """
    canonical, problem = checked_uri(uri)
    if problem is not None or "://" not in canonical:
        return TEXT_NAMESPACE, canonical
    try:
        url = urlsplit(canonical)
    except ValueError:  # an x-... URI may be written in any way
        return TEXT_NAMESPACE, canonical
    if not url.scheme or not canonical.lower().startswith(f"{url.scheme}://"):
        return TEXT_NAMESPACE, canonical
    scheme = uri_schemes().get(url.scheme)
    naming = (scheme and scheme.openlineage) or _NAMINGS.get(url.scheme, _general)
    return naming(url)


def openlineage_uri(namespace: str, name: str) -> str | None:
    """Return the canonical URI of the dataset that OpenLineage knows by a namespace and a name.

    The reverse of `openlineage_name`, for the names of any tool: ``s3a`` is ``s3``, and a missing
    port is the default port. Returns None for names that are of no location, such as a table whose
    name has too few parts.
    """
    if namespace == TEXT_NAMESPACE:
        return name
    scheme, _, authority = namespace.partition("://")
    scheme = _SPELLINGS.get(scheme.lower(), scheme.lower())
    if not _SCHEME.fullmatch(scheme) or scheme == "airflow":
        return None
    definition = uri_schemes().get(scheme)
    if definition is not None and definition.openlineage_uri is not None:
        uri = definition.openlineage_uri(namespace, name)
    else:
        canonical_scheme = definition.name if definition else scheme
        uri = _REVERSED.get(canonical_scheme, _general_uri)(scheme, authority, name)
    if not uri:
        return None
    canonical, problem = checked_uri(uri)
    return canonical if problem is None and "://" in canonical else None


def _table(url: SplitResult) -> tuple[str, str]:
    return f"{url.scheme}://{url.netloc}", ".".join(_names(url))


def _bigquery(url: SplitResult) -> tuple[str, str]:
    return "bigquery", ".".join([url.netloc, *_names(url)])


def _object(url: SplitResult) -> tuple[str, str]:
    scheme = "gs" if url.scheme == "gcs" else url.scheme
    return f"{scheme}://{url.netloc}", _path(url).removeprefix("/") or "/"


def _file(url: SplitResult) -> tuple[str, str]:
    namespace = "file" if url.netloc == "localhost" else f"file://{url.netloc}"
    return namespace, _path(url)


def _general(url: SplitResult) -> tuple[str, str]:
    """Return the default of the specification: the namespace scheme:[//authority], the path."""
    authority = url.netloc.rpartition("@")[2]
    query = f"?{url.query}" if url.query else ""
    return f"{url.scheme}://{authority}" if authority else url.scheme, _path(url) + query


def _path(url: SplitResult) -> str:
    return unquote(url.path) or "/"


def _names(url: SplitResult) -> list[str]:
    return [unquote(component) for component in url.path.removeprefix("/").split("/")]


def _table_uri(scheme: str, authority: str, name: str) -> str:
    return f"{scheme}://{authority}{_quoted('/' + name.replace('.', '/'))}"


def _bigquery_uri(scheme: str, authority: str, name: str) -> str:
    # The id of a project may contain dots.
    project, *table = name.rsplit(".", 2)
    return f"{scheme}://{project}{_quoted('/' + '/'.join(table))}"


def _path_uri(scheme: str, authority: str, name: str) -> str:
    return f"{scheme}://{authority}{_quoted('/' + name.removeprefix('/'))}"


def _general_uri(scheme: str, authority: str, name: str) -> str:
    path, question_mark, query = name.partition("?")
    return f"{_path_uri(scheme, authority, path)}{question_mark}{query}"


def _quoted(path: str) -> str:
    return quote(path, safe="/-._~!$&'()*+,;=:@")


_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*")
# Schemes as tools name a namespace, by the scheme of URIs.
_SPELLINGS = {"s3a": "s3", "s3n": "s3"}
_REVERSED = {
    "file": _path_uri,
    "s3": _path_uri,
    "gcs": _path_uri,
    "abfss": _path_uri,
    "wasbs": _path_uri,
    "postgres": _table_uri,
    "mysql": _table_uri,
    "trino": _table_uri,
    "bigquery": _bigquery_uri,
}
_NAMINGS = {
    "file": _file,
    "s3": _object,
    "gcs": _object,
    "abfss": _object,
    "wasbs": _object,
    "postgres": _table,
    "mysql": _table,
    "trino": _table,
    "bigquery": _bigquery,
}
