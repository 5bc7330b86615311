"""How many partitions of an asset should be there."""

from datetime import datetime

from assets_app.models import Asset
from slicewise import UnboundedPartitionsError


def expected_count(asset: Asset, *, now: datetime) -> int | None:
    """Return how many partitions are over by ``now``; None where the definition has no first one,
    and where no file declares the asset any more.
    """
    if not asset.active:
        return None
    if asset.definition is None:
        return 1
    try:
        return int(asset.definition.count(until=now))
    except UnboundedPartitionsError:
        return None
