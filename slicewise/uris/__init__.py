"""URIs of data: canonical forms, schemes, names for OpenLineage."""

from slicewise.uris.canonical import checked_location, checked_uri
from slicewise.uris.schemes import UriScheme

__all__ = ["UriScheme", "checked_location", "checked_uri"]
