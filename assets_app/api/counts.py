"""The number of partitions that an asset should have."""

from datetime import datetime

from assets_app.models import Asset
from slicewise import UnboundedPartitionsError


def expected_count(asset: Asset, *, now: datetime) -> int | None:
    """Return the number of partitions whose windows have ended by ``now``.

    Return None where the definition has no first partition, and where no file declares the asset
    any more.
    """
    if not asset.active:
        return None
    if asset.definition is None:
        return 1
    try:
        return int(asset.definition.count(until=now))
    except UnboundedPartitionsError:
        return None
