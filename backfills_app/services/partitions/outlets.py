"""The assets that the functions of a backfill write: the backfill's own assets, and assets written
together with them.
"""

from collections.abc import Collection

from assets_app.models import Asset, ProducerVersion
from backfills_app.models import Backfill


def outlets_of(asset: Asset, version: ProducerVersion) -> list[Asset]:
    """Return the asset, and the assets that its function writes together with it."""
    names = [name for name in version.outlets if name != asset.name]
    if not names:
        return [asset]
    other_outlets = Asset.objects.select_related("partition_definition").filter(name__in=names)
    return [asset, *other_outlets]


def assets_made(backfill: Backfill) -> list[Asset]:
    """Return all assets that a backfill writes: its assets, and other outlets of the frozen
    functions.
    """
    asset_rows = backfill.assets.select_related("asset", "producer_version")
    return [
        outlet
        for asset_row in asset_rows.defer("producer_version__source")
        for outlet in outlets_of(asset_row.asset, asset_row.producer_version)
    ] or [backfill.asset]


def names_of(assets: Collection[Asset], *, most: int = 10) -> str:
    """Return the names of assets as text; of many assets the first ``most`` names."""
    names = [asset.name for asset in assets]
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
