"""The assets that the functions of a backfill make: those it names, and what is made with them."""

from collections.abc import Collection

from assets_app.models import Asset, ProducerVersion
from backfills_app.models import Backfill


def outlets_of(asset: Asset, version: ProducerVersion) -> list[Asset]:
    """Return the asset, and those that its function makes with it."""
    names = [name for name in version.outlets if name != asset.name]
    if not names:
        return [asset]
    others = Asset.objects.select_related("partition_definition").filter(name__in=names)
    return [asset, *others]


def assets_made(backfill: Backfill) -> list[Asset]:
    """Return all that a backfill makes: its assets, and what their frozen functions make with
    them.
    """
    pieces = backfill.assets.select_related("asset", "producer_version")
    return [
        outlet
        for piece in pieces.defer("producer_version__source")
        for outlet in outlets_of(piece.asset, piece.producer_version)
    ] or [backfill.asset]


def names_of(assets: Collection[Asset], *, most: int = 10) -> str:
    """Return the names of assets as text, the first of many."""
    names = [asset.name for asset in assets]
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
