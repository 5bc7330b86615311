"""The forms of URIs of each scheme (AIP-60), and schemes that packages add."""

import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from urllib.parse import SplitResult

from slicewise import plugins

__all__ = ["UriScheme", "uri_schemes"]

OpenLineageNaming = Callable[[SplitResult], tuple[str, str]]
OpenLineageLocating = Callable[[str, str], str | None]

_NAME = re.compile(r"[a-z][a-z0-9+.-]*")


@dataclass(frozen=True, kw_only=True)
class UriScheme:
    """The form of the URIs of one scheme.

    New schemes are added by the entry point group ``slicewise.uri_schemes``: the entry point's name
    is the scheme as people write it, its value a UriScheme. ``name`` is the canonical name; if the
    two names differ, the entry point is an alias. Raises ValueError for invalid arguments.
    """

    name: str
    components: int | None = None
    """The number of components of the path; None: any number."""
    default_host: str | None = None
    """The host that replaces an empty host; None: a host is required."""
    has_port: bool = False
    """Whether host and port name a server; else the host is a bucket or project without port."""
    port: int | None = None
    """The default port; None: the URI must name a port, if `has_port`."""
    drops_port: bool = False
    """Whether a port that should not be there is dropped; else such a URI breaks the rule."""
    has_container: bool = False
    """Whether the text before an ``@`` is part of the location's name, and not a login."""
    openlineage: OpenLineageNaming | None = None
    """OpenLineage's (namespace, name) of a split canonical URI; None: the default naming."""
    openlineage_uri: OpenLineageLocating | None = None
    """The URI of OpenLineage's (namespace, name), or None; None: the reverse of the default."""

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ValueError(f"{self.name!r} is no name of a scheme; write one like 'snowflake'")
        if self.name == "airflow" or self.name.startswith("x-"):
            raise ValueError(f"the scheme {self.name}:// is reserved (AIP-60); use another")
        if self.components is not None and self.components < 1:
            raise ValueError(f"components is a number from 1, or None, not {self.components!r}")
        if self.port is not None and not self.has_port:
            raise ValueError("a default port needs has_port=True")
        if self.port is not None and not 0 < self.port < 65_536:
            raise ValueError(f"port is a number from 1 to 65535, not {self.port!r}")


_FILE = UriScheme(name="file", default_host="localhost", drops_port=True)
_POSTGRES = UriScheme(name="postgres", has_port=True, port=5432, components=3)
_MYSQL = UriScheme(name="mysql", has_port=True, port=3306, components=2)
# Azure names a container before an "@": without it, two containers would share one name.
_ABFSS = UriScheme(name="abfss", has_container=True)
_WASBS = UriScheme(name="wasbs", has_container=True)
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
    "abfss": _ABFSS,
    "abfs": _ABFSS,
    "wasbs": _WASBS,
    "wasb": _WASBS,
}


@cache
def uri_schemes() -> dict[str, UriScheme]:
    """Return the definition of each scheme, by the scheme as people write it, in lower case.

    A plug-in that cannot be used is left out with a warning that names the plug-in.
    """
    schemes = dict(_BUILT_IN)
    for spelling, scheme in plugins.load(plugins.URI_SCHEMES).items():
        try:
            _add(spelling.lower(), scheme, schemes)
        except (TypeError, ValueError) as error:
            # A fault of another package must not prevent reading all URIs of a deployment.
            warnings.warn(
                f"the plug-in {spelling} ({plugins.URI_SCHEMES}) is left out: {error}", stacklevel=2
            )
    return schemes


def _add(spelling: str, scheme: object, schemes: dict[str, UriScheme]) -> None:
    if not isinstance(scheme, UriScheme):
        raise TypeError(f"it is not a UriScheme, but {scheme!r}")
    if not _NAME.fullmatch(spelling) or spelling == "airflow" or spelling.startswith("x-"):
        raise ValueError(f"{spelling}:// is no scheme, or is reserved (AIP-60)")
    # A canonical URI must have the same meaning by its own scheme as by its alias.
    for name in (spelling, scheme.name):
        if schemes.get(name, scheme) != scheme:
            owner = "built in" if name in _BUILT_IN else "another plug-in's"
            raise ValueError(f"the scheme {name}:// is {owner}, with a rule of its own")
    schemes[spelling] = schemes[scheme.name] = scheme
