"""The storages of assets, as processes with Django reach them."""

from typing import Any

from assets_app.execution.connections import connection_of
from slicewise.io import Place, Storage, storage_at


def storage_of(uri: str, **facts: Any) -> Storage:
    """Return the storage at a canonical URI, with what this host knows of the place.

    ``facts`` are fields of a `Place`. Raises NoStorageError and ConnectionsError.
    """
    return storage_at(Place(uri=uri, connection=connection_of(uri), **facts))
