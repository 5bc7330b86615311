"""How many partitions of an asset should be there."""

from datetime import datetime

from assets_app.models import Asset
from slicewise import UnboundedPartitionsError


def expected_count(asset: Asset, *, now: datetime) -> int | None:
    """How many partitions are over by ``now``; None where the definition has no first one."""
    if asset.definition is None:
        return 1
    try:
        return int(asset.definition.count(until=now))
    except UnboundedPartitionsError:
        return None
