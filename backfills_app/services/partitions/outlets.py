"""The assets that the functions of a backfill write: the backfill's own assets, and assets written
together with them.
"""

from collections.abc import Collection

from assets_app.models import Asset
from backfills_app.models import Backfill
from backfills_app.services.partitions.frozen_assets import outlets_of
from slicewise.texts import listed


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
    return listed([asset.name for asset in assets], most)
