"""The names by which OpenLineage identifies the locations of URIs.

The names follow OpenLineage's naming of datasets (its ``spec/Naming.md``).
"""

from urllib.parse import SplitResult, unquote, urlsplit

from slicewise.uri_schemes import uri_schemes
from slicewise.uris import checked_uri

__all__ = ["TEXT_NAMESPACE", "openlineage_name"]

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
        split_uri = urlsplit(canonical)
    except ValueError:  # an x-... URI may be written in any way
        return TEXT_NAMESPACE, canonical
    if not split_uri.scheme or not canonical.lower().startswith(f"{split_uri.scheme}://"):
        return TEXT_NAMESPACE, canonical
    scheme = uri_schemes().get(split_uri.scheme)
    naming = (scheme and scheme.openlineage) or _NAMINGS.get(split_uri.scheme, _general)
    return naming(split_uri)


def _table(split_uri: SplitResult) -> tuple[str, str]:
    return f"{split_uri.scheme}://{split_uri.netloc}", ".".join(_names(split_uri))


def _bigquery(split_uri: SplitResult) -> tuple[str, str]:
    return "bigquery", ".".join([split_uri.netloc, *_names(split_uri)])


def _object(split_uri: SplitResult) -> tuple[str, str]:
    scheme = "gs" if split_uri.scheme == "gcs" else split_uri.scheme
    return f"{scheme}://{split_uri.netloc}", _path(split_uri).removeprefix("/") or "/"


def _file(split_uri: SplitResult) -> tuple[str, str]:
    namespace = "file" if split_uri.netloc == "localhost" else f"file://{split_uri.netloc}"
    return namespace, _path(split_uri)


def _general(split_uri: SplitResult) -> tuple[str, str]:
    """Return the default of the specification: the namespace scheme:[//authority], the path."""
    authority = split_uri.netloc.rpartition("@")[2]
    query = f"?{split_uri.query}" if split_uri.query else ""
    return f"{split_uri.scheme}://{authority}" if authority else split_uri.scheme, _path(
        split_uri
    ) + query


def _path(split_uri: SplitResult) -> str:
    return unquote(split_uri.path) or "/"


def _names(split_uri: SplitResult) -> list[str]:
    return [unquote(component) for component in split_uri.path.removeprefix("/").split("/")]


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
