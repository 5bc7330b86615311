"""Shapes in which slices are read."""

from datetime import datetime
from typing import TYPE_CHECKING

from django.db import models
from django.db.models import Count, F, Min, Value
from django.db.models.functions import Coalesce

from partitions_app.rules import identity_of

if TYPE_CHECKING:
    from assets_app.models import Asset, AssetPartition  # noqa: F401


def present_identity(asset: str) -> Coalesce:
    """What slices and counts of assets, by that name of theirs, are kept under as they are cut now.

    Those of a definition that an asset had before are kept, and not counted.
    """
    return Coalesce(F(f"{asset}__partition_definition__identity"), Value(identity_of(None)))


class AssetPartitionQuerySet(models.QuerySet["AssetPartition"]):
    """Slices of assets."""

    def made_of(self, asset: "Asset") -> "AssetPartitionQuerySet":
        """Those of the asset, as it is cut now, that were ever made."""
        return self.filter(asset=asset, identity=asset.identity, version__gt=0)

    def first_start(self) -> datetime | None:
        """The start of their first window; None where none has one."""
        first: datetime | None = self.aggregate(first=Min("window_start"))["first"]
        return first

    def idle_by_state(self) -> dict[str, int]:
        """How many of those that no run holds are in which settled state: one statement."""
        idle = self.filter(held_by__isnull=True).order_by().values_list("state")
        return dict(idle.annotate(number=Count("pk")))
