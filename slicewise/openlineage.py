"""The names under which OpenLineage knows the places that URIs name.

After OpenLineage's naming of datasets (its ``spec/Naming.md``).
"""

from urllib.parse import SplitResult, unquote, urlsplit

from slicewise.uri_schemes import uri_schemes
from slicewise.uris import checked_uri

__all__ = ["TEXT_NAMESPACE", "openlineage_name"]

TEXT_NAMESPACE = "slicewise"
"""The namespace of texts that are no URI."""


def openlineage_name(uri: str) -> tuple[str, str]:
    """OpenLineage's (namespace, name) of the dataset at a URI, however the URI is written.

    The URI is normalised first, so that it has no login. Names are decoded. A scheme without a
    naming of its own gets ``(scheme://authority, path)``, a query being part of the name. Text
    that is no URI, or breaks the rule of its scheme, has no semantics (AIP-60): it is the name
    itself, in the namespace ``slicewise``. Raises ValueError for ``airflow://``.
    """
    canonical, problem = checked_uri(uri)
    if problem is not None or "://" not in canonical:
        return TEXT_NAMESPACE, canonical
    try:
        parts = urlsplit(canonical)
    except ValueError:  # an x-... URI may be written in any way
        return TEXT_NAMESPACE, canonical
    if not parts.scheme or not canonical.lower().startswith(f"{parts.scheme}://"):
        return TEXT_NAMESPACE, canonical
    rule = uri_schemes().get(parts.scheme)
    naming = (rule and rule.openlineage) or _NAMINGS.get(parts.scheme, _general)
    return naming(parts)


def _table(parts: SplitResult) -> tuple[str, str]:
    return f"{parts.scheme}://{parts.netloc}", ".".join(_names(parts))


def _bigquery(parts: SplitResult) -> tuple[str, str]:
    return "bigquery", ".".join([parts.netloc, *_names(parts)])


def _object(parts: SplitResult) -> tuple[str, str]:
    scheme = "gs" if parts.scheme == "gcs" else parts.scheme
    return f"{scheme}://{parts.netloc}", _path(parts).removeprefix("/") or "/"


def _file(parts: SplitResult) -> tuple[str, str]:
    namespace = "file" if parts.netloc == "localhost" else f"file://{parts.netloc}"
    return namespace, _path(parts)


def _general(parts: SplitResult) -> tuple[str, str]:
    """As the specification has it: a namespace is scheme:[//authority], a name the path."""
    authority = parts.netloc.rpartition("@")[2]
    query = f"?{parts.query}" if parts.query else ""
    return f"{parts.scheme}://{authority}" if authority else parts.scheme, _path(parts) + query


def _path(parts: SplitResult) -> str:
    return unquote(parts.path) or "/"


def _names(parts: SplitResult) -> list[str]:
    return [unquote(component) for component in parts.path.removeprefix("/").split("/")]


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
